//! gatehouse as its users deploy it, in one way after the other.

use std::process::Command;

use crate::cluster::Bed;
use crate::etcd::told;
use crate::kubectl::Call;
use crate::{root, tools};

/// The namespace of both ways.
pub const NAMESPACE: &str = "gatehouse-system";

/// How users deploy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `helm install`
    Chart,
    /// `kubectl apply --kustomize`
    Kustomize,
}

impl Way {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chart => "chart",
            Self::Kustomize => "kustomize",
        }
    }

    /// Deploys it, and returns when it says that it is ready.
    pub fn deploy(self, bed: &Bed) {
        match self {
            Self::Chart => {
                // A comma would begin another value.
                let filter = format!("log.filter={}", told::FILTER.replace(',', "\\,"));
                let install = ["install", "gatehouse", &chart(), "--create-namespace", "--wait"];
                helm(bed, &[&install[..], &["--timeout=2m", "--set-string", &filter]].concat());
            }
            Self::Kustomize => {
                let base = root().join("deploy/base");
                bed.kubectl(&["apply", "--kustomize", &base.to_string_lossy()]).ok();
                bed.kubectl(&["rollout", "status", "deployment/gatehouse", "-n", NAMESPACE, "--timeout=2m"])
                    .ok();
            }
        }
    }

    /// Takes it away, its namespace too, and returns when all of it is gone. What is told to end while it works does not
    /// get the time for its drain.
    pub fn remove(self, bed: &Bed) {
        match self {
            Self::Chart => {
                helm(bed, &["uninstall", "gatehouse", "--wait", "--timeout=3m"]);
                bed.until_ended();
                bed.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=3m"]).ok();
            }
            Self::Kustomize => {
                let base = root().join("deploy/base");
                bed.kubectl(&["delete", "--kustomize", &base.to_string_lossy(), "--wait=false"]).ok();
                bed.until_ended();
                let namespace = format!("namespace/{NAMESPACE}");
                bed.kubectl(&["wait", "--for=delete", &namespace, "--timeout=3m"]).ok();
            }
        }
    }
}

fn chart() -> String {
    root().join("deploy/chart/gatehouse").to_string_lossy().into_owned()
}

/// helm in the namespace of gatehouse, with nothing of whoever runs the tests.
fn helm(bed: &Bed, words: &[&str]) -> String {
    let home = bed.cluster.folder().join("helm");
    let mut command = Command::new(tools::folder("helm").join("helm"));
    command.args(words).args(["--namespace", NAMESPACE]).env("KUBECONFIG", bed.cluster.kubeconfig());
    for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(name, &home);
    }
    Call::new(command).ok()
}
