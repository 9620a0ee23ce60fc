//! Where the binaries are: the folders that `tools/build.sh` fills, or the one that `KUBEBUILDER_ASSETS`
//! names.
//!
//! Never builds or downloads anything.

use std::path::{Path, PathBuf};

use crate::{Error, KubernetesVersion, version};

/// The folders that hold the binaries of one Kubernetes version.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    kubernetes: PathBuf,
    etcd: PathBuf,
    cache: PathBuf,
    /// The pinned release of Kubernetes, which the parts of a node are of.
    release: &'static str,
    assets: bool,
}

impl Tools {
    /// Assets stand for the default version only, as they do for `tools/build.sh`.
    pub(crate) fn of(kubernetes: KubernetesVersion, assets: Option<&Path>) -> Self {
        let (cache, release) = (cache(), kubernetes.release());
        match assets {
            Some(folder) if kubernetes == KubernetesVersion::default() => {
                Self { kubernetes: folder.to_owned(), etcd: folder.to_owned(), cache, release, assets: true }
            }
            _ => Self {
                kubernetes: cache.join(format!("kubernetes-{release}/bin")),
                etcd: cache.join(format!("etcd-{}/bin", version::etcd_release())),
                cache,
                release,
                assets: false,
            },
        }
    }

    /// Where a tool of this name is expected.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match name {
            "etcd" | "etcdctl" | "etcdutl" => self.etcd.join(name),
            "containerd" | "containerd-shim-runc-v2" | "ctr" => {
                self.cache.join(format!("containerd-{}/bin", version::containerd_release())).join(name)
            }
            "coredns" => self.cache.join(format!("coredns-{}/bin/coredns", version::coredns_release())),
            "kubelet" | "kube-proxy" | "kube-scheduler" => {
                self.cache.join(format!("kubernetes-{}/bin", self.release)).join(name)
            }
            _ => self.kubernetes.join(name),
        }
    }

    /// Where a part that only a node needs is. It is never one of the assets.
    pub(crate) fn require_for_node(&self, name: &'static str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        if path.is_file() { Ok(path) } else { Err(Error::NodeToolMissing { name, path }) }
    }

    /// Whether there are parts of a node of this version.
    pub(crate) fn has_node(&self) -> bool {
        self.release == KubernetesVersion::default().release()
    }

    /// The archive of an image that `tools/build.sh images` makes.
    pub(crate) fn require_image(&self, name: &'static str) -> Result<PathBuf, Error> {
        let path = self.cache.join("images").join(format!("{name}.tar"));
        if path.is_file() { Ok(path) } else { Err(Error::ImageMissing { name, path }) }
    }

    /// Where this tool is.
    pub(crate) fn require(&self, name: &'static str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        match (path.is_file(), self.assets) {
            (true, _) => Ok(path),
            (false, true) => Err(Error::AssetMissing { name, path }),
            (false, false) => Err(Error::ToolMissing { name, path }),
        }
    }

    /// Where the controller manager is. Assets may lack it, as those of envtest do, and so may every version
    /// but the default: for those `tools/build.sh all` builds none, as nothing that is tested on them is the
    /// work of controllers.
    pub(crate) fn controller_manager(&self) -> Result<Option<PathBuf>, Error> {
        match self.require("kube-controller-manager") {
            Err(Error::AssetMissing { .. }) => Ok(None),
            Err(Error::ToolMissing { .. }) if !self.has_node() => Ok(None),
            found => found.map(Some),
        }
    }

    /// A kubectl for a cluster of others: ours if it has been built, else the one on PATH.
    pub(crate) fn any_kubectl(&self) -> PathBuf {
        self.require("kubectl").unwrap_or_else(|_| PathBuf::from("kubectl"))
    }
}

/// The folder that `tools/build.sh` builds into; the two must agree.
pub(crate) fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("GATEHOUSE_TOOLS").unwrap_or_else(|| {
        set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .unwrap_or_default()
            .join("gatehouse/tools")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_binary_is_named_with_its_path_and_its_cure() {
        let tools = Tools {
            kubernetes: "/nowhere/k/bin".into(),
            etcd: "/nowhere/e/bin".into(),
            cache: "/nowhere".into(),
            release: KubernetesVersion::default().release(),
            assets: false,
        };
        let words = tools.require("kube-apiserver").unwrap_err().to_string();
        assert_eq!(words, "`kube-apiserver` is missing at /nowhere/k/bin/kube-apiserver: run `make tools`");
        assert!(tools.require("etcdctl").unwrap_err().to_string().contains("/nowhere/e/bin/etcdctl"));
        assert!(tools.controller_manager().is_err());
        let older = Tools { release: KubernetesVersion::V1_34.release(), ..tools };
        assert_eq!(older.controller_manager().unwrap(), None);
    }

    #[test]
    fn assets_stand_for_the_default_version_and_may_lack_a_controller_manager() {
        let assets = Path::new("/nowhere/assets");
        let tools = Tools::of(KubernetesVersion::default(), Some(assets));
        assert!(matches!(tools.require("etcd"), Err(Error::AssetMissing { .. })));
        assert_eq!(tools.controller_manager().unwrap(), None);
        assert!(!Tools::of(KubernetesVersion::V1_34, Some(assets)).assets);
    }
}
