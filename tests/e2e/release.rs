//! gatehouse as its users deploy it, in one way after the other.

use std::process::Command;

use kit::call::Call;
use kit::deploy::IMAGE;
use kit::random::is_night;
use kit::wait::{PATIENCE, timeout};

use crate::cluster::Bed;
use crate::etcd::replayed;
use crate::{root, tools};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/chart/gatehouse");

/// The namespace of both ways.
pub const NAMESPACE: &str = "gatehouse-system";

/// How long a replica that was installed by the chart leaves connections idle while it ends. As it ships that is 90
/// seconds, which a rolling restart waits for twice. What ships is restarted at night, and where kustomize deploys it.
const DRAIN: &str = "drain.deadlineSeconds=20";

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
                let filter = format!("log.filter={}", replayed::FILTER.replace(',', "\\,"));
                let limit = timeout(PATIENCE);
                let mut install = vec!["install", "gatehouse", CHART, "--create-namespace", "--wait", &limit];
                install.extend(["--set-string", &filter, "--set", IMAGE]);
                if !is_night() {
                    install.extend(["--set", DRAIN]);
                }
                helm(bed, &install);
            }
            Self::Kustomize => {
                let base = root().join("deploy/base");
                bed.kubectl(&["apply", "--kustomize", &base.to_string_lossy()]).ok();
                bed.kubectl(&[
                    "rollout",
                    "status",
                    "deployment/gatehouse",
                    "-n",
                    NAMESPACE,
                    &timeout(PATIENCE),
                ])
                .ok();
            }
        }
    }

    /// Takes it away, its namespace too, and returns when all of it is gone. What works until then does not get the
    /// time for its drain.
    pub fn remove(self, bed: &Bed) {
        match self {
            Self::Chart => {
                helm(bed, &["uninstall", "gatehouse", "--wait", &timeout(PATIENCE * 2)]);
                bed.until_ended();
                bed.kubectl(&["delete", "namespace", NAMESPACE, &timeout(PATIENCE * 2)]).ok();
            }
            Self::Kustomize => {
                let base = root().join("deploy/base");
                bed.kubectl(&["delete", "--kustomize", &base.to_string_lossy(), "--wait=false"]).ok();
                bed.until_ended();
                let namespace = format!("namespace/{NAMESPACE}");
                bed.kubectl(&["wait", "--for=delete", &namespace, &timeout(PATIENCE * 2)]).ok();
            }
        }
    }
}

/// helm in the namespace of gatehouse, with nothing of the user who runs the tests.
fn helm(bed: &Bed, words: &[&str]) -> String {
    let home = bed.cluster.folder().join("helm");
    let mut command = Command::new(tools::folder("helm").join("helm"));
    command.args(words).args(["--namespace", NAMESPACE]).env("KUBECONFIG", bed.cluster.kubeconfig());
    for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(name, &home);
    }
    Call::new(command).ok()
}
