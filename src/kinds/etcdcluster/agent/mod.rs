//! What runs in the pod of a member beside etcd: the guard.
//!
//! ```text
//!   init container     gatehouse etcd guard   waits for an entry, checks the volume, marks it
//!   container "etcd"   gatehouse etcd run     checks the volume again, becomes etcd
//! ```
//!
//! Kubernetes gives a pod the volume of its name, whatever is on it: a claim that was deleted and made again is empty,
//! and etcd would start on it under the identity of a member that has voted. It also starts a container again without
//! its init containers, which is why both check.
//!
//! Guarantees: etcd starts only by the operator's entry for this very pod and volume; an empty volume is never given to
//! a member that has had data; a recovery from a lost quorum begins with a copy of the data beside them.
//! Never: asks Kubernetes or etcd for anything. What it has to know is in the pod's command line, in the mounted
//! ConfigMap and on the volume.

mod config;
mod copy;
pub mod decision;
pub mod entry;
pub mod guard;
pub mod marker;
pub mod run;
mod volume;
mod work;

use std::io;
use std::path::{Path, PathBuf};

use decision::Cause;

/// The guard could not do its work. The error says nothing about the data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("failed to {verb} {}", path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is there and says nothing that is understood.
    #[error("failed to understand {}", path.display())]
    Content {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Etcd's container was started without its guard.
    #[error("the guard of this pod has not let etcd start")]
    NotLet,
}

impl Error {
    fn file(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { verb, path: path.to_owned(), source }
    }
}

/// A volume on which etcd does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong with it.
    pub cause: Cause,
    /// The same, for a person.
    pub words: &'static str,
}
