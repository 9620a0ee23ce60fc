//! One control plane, worked in all the ways that the tests of gatehouse rely on.

#![expect(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use kit::call::Call;
use kit::harness::{Harness, Test};
use kit::wait::eventually;
use testbed::{ControlPlane, Error, Options};

/// A call of a kubectl, or of another program, with these words more.
fn call(mut command: Command, words: &[&str]) -> Call {
    command.args(words);
    Call::new(command)
}

fn a_control_plane_works_and_leaves_nothing() {
    let begin = Instant::now();
    let options = Options { existing: None, ..Options::from_env().unwrap() };
    let cluster = ControlPlane::start(&options).unwrap();
    let processes = cluster.processes();
    let memory: u64 = processes.iter().filter_map(|process| process.id.resident_kib()).sum();
    eprintln!("ready in {:.1?}, {} MiB", begin.elapsed(), memory / 1024);

    administrator_sees_namespaces(&cluster);
    assert!(
        cluster.has_controller_manager(),
        "KUBEBUILDER_ASSETS names a folder without kube-controller-manager: unset it and run `make tools`"
    );
    controllers_make_pods_and_collect_garbage(&cluster);
    service_accounts_have_their_own_kubeconfig(&cluster);
    other_users_are_distinguished(&cluster);
    etcd_answers(&cluster);
    an_api_server_comes_back(&cluster);
    a_cluster_of_others_is_left_alone(&cluster);

    let folder = cluster.folder().to_owned();
    let processes = cluster.processes();
    let begin = Instant::now();
    drop(cluster);
    eprintln!("gone in {:.1?}", begin.elapsed());
    assert!(processes.iter().all(|process| !process.id.runs()));
    assert!(!folder.exists());
}

fn administrator_sees_namespaces(cluster: &ControlPlane) {
    let namespaces = call(cluster.kubectl(), &["get", "namespaces", "--output=name"]).ok();
    assert!(namespaces.contains("namespace/kube-system"), "{namespaces}");
    let version = call(cluster.kubectl(), &["version"]).ok();
    eprintln!("{}", version.trim().replace('\n', ", "));
    assert!(!version.contains("v0.0.0"), "{version}");
}

fn controllers_make_pods_and_collect_garbage(cluster: &ControlPlane) {
    call(cluster.kubectl(), &["create", "deployment", "web", "--image=none", "--replicas=2"]).ok();
    let phases = || {
        let path = "--output=jsonpath={.items[*].status.phase}";
        call(cluster.kubectl(), &["get", "pods", "--selector=app=web", path]).ok()
    };
    eventually(|| match phases().as_str() {
        "Pending Pending" => Ok(()),
        other => Err(format!("phases of the pods of the deployment: {other}")),
    });
    let begin = Instant::now();
    call(cluster.kubectl(), &["delete", "deployment", "web", "--wait=false"]).ok();
    eventually(|| match phases().as_str() {
        "" => Ok(()),
        left => Err(format!("pods that are to be collected: {left}")),
    });
    eprintln!("garbage collected in {:.1?}", begin.elapsed());
}

fn service_accounts_have_their_own_kubeconfig(cluster: &ControlPlane) {
    let kubeconfig = cluster.kubeconfig_for_service_account("default", "default").unwrap();
    let name = call(cluster.kubectl_as(&kubeconfig), &["auth", "whoami"]).ok();
    assert!(name.contains("system:serviceaccount:default:default"), "{name}");
}

fn other_users_are_distinguished(cluster: &ControlPlane) {
    let nobody = cluster.kubeconfig_for("nobody", &["strangers"]).unwrap();
    let refused = call(cluster.kubectl_as(&nobody), &["get", "secrets"]).fails();
    assert!(refused.contains("User \"nobody\" cannot list"), "{refused}");
    let ruler = cluster.kubeconfig_for("somebody", &["system:masters"]).unwrap();
    call(cluster.kubectl_as(&ruler), &["get", "secrets"]).ok();
}

fn etcd_answers(cluster: &ControlPlane) {
    let words = ["get", "/registry/namespaces/", "--prefix", "--keys-only"];
    let keys = call(cluster.etcdctl().unwrap(), &words).ok();
    assert!(keys.contains("/registry/namespaces/default"), "{keys}");
}

fn a_cluster_of_others_is_left_alone(cluster: &ControlPlane) {
    let existing = Some(cluster.kubeconfig().to_owned());
    let guest = ControlPlane::start(&Options { existing, ..Options::default() }).unwrap();
    assert_eq!(guest.server(), cluster.server());
    assert!(guest.is_existing() && guest.processes().is_empty());
    let nobody = guest.kubeconfig_for("nobody", &[]).unwrap();
    let name = call(guest.kubectl_as(&nobody), &["auth", "whoami"]).ok();
    assert!(name.contains("nobody"), "{name}");
    assert!(matches!(guest.restart_api_server(), Err(Error::NotOurs)));
    let folder = guest.folder().to_owned();
    drop(guest);
    assert!(!folder.exists());
    call(cluster.kubectl(), &["get", "--raw", "/readyz"]).ok();
}

fn an_api_server_comes_back(cluster: &ControlPlane) {
    call(cluster.kubectl(), &["create", "configmap", "kept"]).ok();
    let before = Instant::now();
    cluster.restart_api_server().unwrap();
    eprintln!("api server restarted in {:.1?}", before.elapsed());
    call(cluster.kubectl(), &["get", "configmap", "kept"]).ok();
    cluster.kill_api_server().unwrap();
    call(cluster.kubectl(), &["get", "--raw", "/readyz"]).fails();
    cluster.start_api_server().unwrap();
    call(cluster.kubectl(), &["get", "configmap", "kept"]).ok();
}

/// For all of it.
const LIMIT: Duration = Duration::from_mins(10);

fn main() -> ExitCode {
    let name = "control_plane::a_control_plane_works_and_leaves_nothing";
    let mut harness = Harness::from_args();
    harness.run(vec![Test::new(name, LIMIT, a_control_plane_works_and_leaves_nothing)], 1);
    harness.end()
}
