//! A real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager) as plain processes of this
//! machine, from the binaries that `make tools` builds; with [`Options::node`] a whole cluster, with a node that
//! runs pods, Services, DNS and volumes.
//!
//! Guarantees: every control plane has a folder, keys and tokens of its own, so any number of them run side by
//! side and the leftovers of a crash disturb no later run; when the process that holds a [`ControlPlane`] ends,
//! however it ends, its processes end too and its folder goes. Without a node everything listens on 127.0.0.1
//! alone, on ports that were free. With one, all of it lives in a network, mounts and processes of its own, which
//! the kernel clears away with the last of them, and this machine has a route to its pods and Services.
//!
//! Assumes: Linux (`/proc`), `sh` and a folder for temporary files; for a node also root and the packages of
//! `tools/node-packages.sh`.
//!
//! Never: pulls an image; the archives that a node runs are loaded by [`ControlPlane::load_image`]. Without a
//! node, Pods are made by the controllers and then stay `Pending`. Data is not synced to disk.
//!
//! ```no_run
//! use testbed::{ControlPlane, Options};
//!
//! let cluster = ControlPlane::start(&Options::from_env()?)?;
//! let namespaces = cluster.kubectl().args(["get", "namespaces"]).output();
//! # Ok::<(), testbed::Error>(())
//! ```

mod audit;
mod command;
mod component;
mod control_plane;
mod credentials;
mod error;
mod etcd;
mod files;
pub mod instance;
mod kubeconfig;
mod launch;
mod logs;
mod node;
mod options;
mod plan;
mod process;
mod reaper;
mod teardown;
mod tools;
mod version;
mod wait;

pub use control_plane::{ControlPlane, RunningProcess};
pub use error::Error;
pub use etcd::{EtcdBed, EtcdPem, EtcdState, EtcdVersion};
pub use options::Options;
pub use process::ProcessId;
pub use version::KubernetesVersion;
