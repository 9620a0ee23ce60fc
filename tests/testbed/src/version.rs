//! The Kubernetes versions that are pinned below `tools/`, which alone says what they are.

use std::{fmt, str::FromStr};

use crate::{Error, EtcdVersion};

const ETCD: &str = include_str!("../../../tools/etcd/go.mod");
const ETCD_3_5: &str = include_str!("../../../tools/etcd-3.5.33/go.mod");
const ETCD_3_7: &str = include_str!("../../../tools/etcd-3.7/go.mod");
const CONTAINERD: &str = include_str!("../../../tools/containerd/go.mod");
const COREDNS: &str = include_str!("../../../tools/coredns/go.mod");
const KUBERNETES_1_37: &str = include_str!("../../../tools/kubernetes-1.37/go.mod");
const KUBERNETES_1_34: &str = include_str!("../../../tools/kubernetes-1.34/go.mod");

/// A Kubernetes minor version that the testbed can run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KubernetesVersion {
    /// The older one that is supported.
    V1_34,
    /// The one that is worked with.
    #[default]
    V1_37,
}

impl KubernetesVersion {
    /// Every version that the testbed can run, oldest first.
    pub const ALL: [Self; 2] = [Self::V1_34, Self::V1_37];

    /// `1.37`
    #[must_use]
    pub fn minor(self) -> &'static str {
        match self {
            Self::V1_34 => "1.34",
            Self::V1_37 => "1.37",
        }
    }

    /// The pinned release, such as `1.37.2`.
    #[must_use]
    pub fn release(self) -> &'static str {
        let file = match self {
            Self::V1_34 => KUBERNETES_1_34,
            Self::V1_37 => KUBERNETES_1_37,
        };
        required(file, "k8s.io/kubernetes").unwrap_or_else(|| self.minor())
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.minor())
    }
}

impl FromStr for KubernetesVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let plain = text.strip_prefix('v').unwrap_or(text);
        Self::ALL
            .into_iter()
            .find(|version| plain == version.minor() || plain == version.release())
            .ok_or_else(|| Error::UnknownVersion(text.to_owned()))
    }
}

/// The pinned release of etcd.
pub(crate) fn etcd_release() -> &'static str {
    etcd_release_of(EtcdVersion::V3_6)
}

/// The pinned release of a minor version of etcd.
pub(crate) fn etcd_release_of(version: EtcdVersion) -> &'static str {
    let file = match version {
        EtcdVersion::V3_5 => ETCD_3_5,
        EtcdVersion::V3_6 => ETCD,
        EtcdVersion::V3_7 => ETCD_3_7,
    };
    required(file, "go.etcd.io/etcd/server/v3").unwrap_or("unknown")
}

/// The pinned release of containerd.
pub(crate) fn containerd_release() -> &'static str {
    required(CONTAINERD, "github.com/containerd/containerd/v2").unwrap_or("unknown")
}

/// The pinned release of CoreDNS.
pub(crate) fn coredns_release() -> &'static str {
    required(COREDNS, "github.com/coredns/coredns").unwrap_or("unknown")
}

/// The version, without the `v`, at which a go.mod requires a module.
fn required(file: &'static str, module: &str) -> Option<&'static str> {
    file.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next()? == module).then_some(())?;
        words.next()?.strip_prefix('v')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_releases_are_read_from_the_modules() {
        for version in KubernetesVersion::ALL {
            assert!(version.release().starts_with(&format!("{version}.")), "{}", version.release());
        }
        assert!(etcd_release().starts_with("3."), "{}", etcd_release());
        assert!(containerd_release().starts_with("2."), "{}", containerd_release());
        assert!(coredns_release().starts_with("1."), "{}", coredns_release());
    }

    #[test]
    fn versions_are_read_in_three_spellings() {
        let default = KubernetesVersion::default();
        for text in [default.minor().to_owned(), format!("v{default}"), default.release().to_owned()] {
            assert_eq!(text.parse::<KubernetesVersion>().unwrap(), default);
        }
        assert!("1.2".parse::<KubernetesVersion>().is_err());
    }
}
