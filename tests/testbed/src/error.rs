//! What can go wrong with a control plane, in words that say what to do about it.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

/// Why a control plane did not start, or an operation on it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum Error {
    /// A pinned binary has not been built.
    #[error("`{name}` is missing at {}: run `make tools`", path.display())]
    ToolMissing { name: &'static str, path: PathBuf },

    /// A pinned release of etcd has not been built.
    #[error("etcd is missing at {}: run `tools/build.sh {family}`", path.display())]
    EtcdMissing { family: &'static str, path: PathBuf },

    #[error("etcd-{0} does not run, or never did")]
    NoMember(usize),

    /// The folder of `KUBEBUILDER_ASSETS` is incomplete.
    #[error("`{name}` is missing at {}, the folder that KUBEBUILDER_ASSETS names", path.display())]
    AssetMissing { name: &'static str, path: PathBuf },

    /// A pinned binary that only a node needs has not been built.
    #[error("`{name}` is missing at {}: run `tools/build.sh node`", path.display())]
    NodeToolMissing { name: &'static str, path: PathBuf },

    /// The archive of an image has not been made.
    #[error("the image `{name}` is missing at {}: run `tools/build.sh images`", path.display())]
    ImageMissing { name: &'static str, path: PathBuf },

    /// A program or plugin of the machine is not installed.
    #[error("`{0}` is not installed, which a node needs: run `tools/node-packages.sh`")]
    PackageMissing(String),

    #[error("a node needs root: run this as root, or do without `--node`")]
    NotRoot,

    #[error("a node is pinned for kubernetes {} alone", crate::KubernetesVersion::default())]
    NoNodeOfVersion,

    #[error("this cluster has no node")]
    NoNode,

    #[error("every block of addresses for clusters (198.18.0.0/15) is taken: take a cluster down")]
    NoFreeBlock,

    #[error("`{command}` failed: {stderr}")]
    Command { command: String, stderr: String },

    #[error("kubernetes {0} is not known to the testbed, which has 1.37 and 1.34")]
    UnknownVersion(String),

    #[error("KUBECONFIG names several files ({0}); the testbed takes one")]
    SeveralKubeconfigs(String),

    #[error("{doing}")]
    Io { doing: String, source: io::Error },

    #[error("making a key or certificate")]
    Certificate(#[from] rcgen::Error),

    #[error("{} is not empty; the testbed takes a folder that is new or empty", .0.display())]
    FolderInUse(PathBuf),

    /// A component ended by itself.
    #[error("{label} ended with {status}\n{logs}")]
    Exited { label: &'static str, status: ExitStatus, address_in_use: bool, logs: String },

    #[error("waited {} s for {what}\n{logs}", waited.as_secs())]
    NotReady { what: &'static str, waited: Duration, logs: String },

    #[error("this is a cluster that others run; the testbed does not stop or start its parts")]
    NotOurs,

    #[error("{0} is not a process of this machine")]
    NoSuchProcess(u32),

    #[error("{0} still runs although it was killed")]
    Immortal(u32),

    #[error("`{0}` does not do as a name: lower-case letters, digits and dashes, 40 at most")]
    BadName(String),

    #[error("nothing is up under the name `{0}`; `testbed up` starts a control plane")]
    NotUp(String),

    #[error("`{name}` is up with kubernetes {running}; take it down before another version")]
    OtherVersion { name: String, running: String },

    #[error("`{name}` is up {}; take it down first, or take another name", if *node { "with a node" } else { "without a node" })]
    OtherKind { name: String, node: bool },

    #[error("`{label}` of `{name}` runs already, as process {pid}")]
    AlreadyRuns { name: String, label: String, pid: u32 },

    #[error("{} cannot be understood", path.display())]
    BadRecord { path: PathBuf, source: serde_json::Error },

    #[error("neither XDG_STATE_HOME nor HOME is set")]
    NoHome,
}

impl Error {
    /// For `map_err`: an I/O error with what was being done.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Whether another process took a port between choosing and using it.
    pub(crate) fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Exited { address_in_use: true, .. })
    }
}
