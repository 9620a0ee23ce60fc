//! What a control plane is started with.

use std::{ffi::OsString, path::PathBuf};

use crate::{Error, KubernetesVersion};

/// How to start a control plane. The default starts the default version with a controller manager, in a
/// folder below the temporary one that is removed at the end.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of its own to a question of its own")]
pub struct Options {
    /// What is started.
    pub version: KubernetesVersion,
    /// Where data, keys and logs go: a folder that is new or empty. It is removed at the end unless `keep`.
    pub folder: Option<PathBuf>,
    /// Whether controllers work Deployments, Jobs, garbage collection and so on.
    pub controller_manager: bool,
    /// Whether there is a node that runs pods, with scheduler, Services, DNS and volumes. It needs root.
    pub node: bool,
    /// Whether the API server keeps an audit log of what gatehouse asks of it. It always does with a node.
    pub audit: bool,
    /// What the control groups and the network interface of a node are called after.
    pub name: Option<String>,
    /// Leaves the folder behind for a look at data and logs. The processes are stopped nevertheless.
    pub keep: bool,
    /// The kubeconfig of a cluster that others run. With it nothing is started and nothing is ever stopped.
    pub existing: Option<PathBuf>,
    /// A folder with etcd, kube-apiserver and kubectl that stands for the pinned default version.
    pub assets: Option<PathBuf>,
    /// More flags for kube-apiserver, after the testbed's own.
    pub api_server_flags: Vec<String>,
    /// More flags for kube-controller-manager, after the testbed's own.
    pub controller_manager_flags: Vec<String>,
    /// More flags for etcd, after the testbed's own.
    pub etcd_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: KubernetesVersion::default(),
            folder: None,
            controller_manager: true,
            node: false,
            audit: false,
            name: None,
            keep: false,
            existing: None,
            assets: None,
            api_server_flags: Vec::new(),
            controller_manager_flags: Vec::new(),
            etcd_flags: Vec::new(),
        }
    }
}

impl Options {
    /// The default, changed by the environment: `KUBECONFIG` (an existing cluster), `KUBEBUILDER_ASSETS`,
    /// `TESTBED_KUBERNETES` (a version) and `TESTBED_KEEP` (anything but nothing or `0` keeps the folder).
    ///
    /// # Errors
    /// A value cannot be honoured: a version that is not known, a `KUBECONFIG` of several files.
    pub fn from_env() -> Result<Self, Error> {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let mut options = Self {
            existing: set("KUBECONFIG").map(PathBuf::from),
            assets: set("KUBEBUILDER_ASSETS").map(PathBuf::from),
            keep: set("TESTBED_KEEP").is_some_and(|value| value != "0"),
            ..Self::default()
        };
        if let Some(version) = set("TESTBED_KUBERNETES") {
            options.version = version.to_string_lossy().parse()?;
        }
        if let Some(path) = &options.existing
            && path.to_string_lossy().contains(':')
        {
            return Err(Error::SeveralKubeconfigs(path.display().to_string()));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Options, Error> {
        Options::from_lookup(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_environment_is_honoured() {
        let options =
            from(&[("KUBECONFIG", "/k"), ("TESTBED_KUBERNETES", "1.34"), ("TESTBED_KEEP", "1")]).unwrap();
        assert_eq!(options.existing, Some(PathBuf::from("/k")));
        assert_eq!(options.version, KubernetesVersion::V1_34);
        assert!(options.keep && options.controller_manager);
    }

    #[test]
    fn empty_values_are_as_good_as_none() {
        let options = from(&[("KUBECONFIG", ""), ("KUBEBUILDER_ASSETS", ""), ("TESTBED_KEEP", "0")]).unwrap();
        assert_eq!((options.existing, options.assets, options.keep), (None, None, false));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        assert!(matches!(from(&[("KUBECONFIG", "/a:/b")]), Err(Error::SeveralKubeconfigs(_))));
        assert!(matches!(from(&[("TESTBED_KUBERNETES", "2")]), Err(Error::UnknownVersion(_))));
    }
}
