//! One control plane, worked in all the ways that the tests of gatehouse rely on.

#![expect(clippy::unwrap_used, reason = "tests say what they expect by unwrapping")]

use std::{
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use testbed::{ControlPlane, Error, Options};

const PATIENCE: Duration = Duration::from_secs(30);

fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "controllers of other processes are waited for")]
fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !check() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_control_plane_works_and_leaves_nothing() {
    let begin = Instant::now();
    let options = Options { existing: None, ..Options::from_env().unwrap() };
    let cluster = ControlPlane::start(&options).unwrap();
    let processes = cluster.processes();
    let memory: u64 = processes.iter().filter_map(|process| process.id.resident_kib()).sum();
    eprintln!("ready in {:.1?}, {} MiB", begin.elapsed(), memory / 1024);

    administrator_sees_namespaces(&cluster);
    if cluster.has_controller_manager() {
        controllers_make_pods_and_collect_garbage(&cluster);
        service_accounts_have_their_own_kubeconfig(&cluster);
    }
    others_are_told_apart(&cluster);
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
    let namespaces = succeed(cluster.kubectl().args(["get", "namespaces", "--output=name"]));
    assert!(namespaces.contains("namespace/kube-system"), "{namespaces}");
    let version = succeed(cluster.kubectl().arg("version"));
    eprintln!("{}", version.trim().replace('\n', ", "));
    assert!(!version.contains("v0.0.0"), "{version}");
}

fn controllers_make_pods_and_collect_garbage(cluster: &ControlPlane) {
    succeed(cluster.kubectl().args(["create", "deployment", "web", "--image=none", "--replicas=2"]));
    let phases = || {
        let path = "--output=jsonpath={.items[*].status.phase}";
        succeed(cluster.kubectl().args(["get", "pods", "--selector=app=web", path]))
    };
    eventually("two pods of the deployment", || phases() == "Pending Pending");
    let begin = Instant::now();
    succeed(cluster.kubectl().args(["delete", "deployment", "web", "--wait=false"]));
    eventually("the pods to be collected", || phases().is_empty());
    eprintln!("garbage collected in {:.1?}", begin.elapsed());
}

fn service_accounts_have_their_own_kubeconfig(cluster: &ControlPlane) {
    let kubeconfig = cluster.kubeconfig_for_service_account("default", "default").unwrap();
    let name = succeed(cluster.kubectl_as(&kubeconfig).args(["auth", "whoami"]));
    assert!(name.contains("system:serviceaccount:default:default"), "{name}");
}

fn others_are_told_apart(cluster: &ControlPlane) {
    let nobody = cluster.kubeconfig_for("nobody", &["strangers"]).unwrap();
    let refused = cluster.kubectl_as(&nobody).args(["get", "secrets"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("User \"nobody\" cannot list"));
    let ruler = cluster.kubeconfig_for("somebody", &["system:masters"]).unwrap();
    succeed(cluster.kubectl_as(&ruler).args(["get", "secrets"]));
}

fn etcd_answers(cluster: &ControlPlane) {
    let mut etcdctl = cluster.etcdctl().unwrap();
    if std::path::Path::new(etcdctl.get_program()).is_file() {
        let keys = succeed(etcdctl.args(["get", "/registry/namespaces/", "--prefix", "--keys-only"]));
        assert!(keys.contains("/registry/namespaces/default"), "{keys}");
    }
}

fn a_cluster_of_others_is_left_alone(cluster: &ControlPlane) {
    let existing = Some(cluster.kubeconfig().to_owned());
    let guest = ControlPlane::start(&Options { existing, ..Options::default() }).unwrap();
    assert_eq!(guest.server(), cluster.server());
    assert!(guest.is_existing() && guest.processes().is_empty());
    let nobody = guest.kubeconfig_for("nobody", &[]).unwrap();
    let name = succeed(guest.kubectl_as(&nobody).args(["auth", "whoami"]));
    assert!(name.contains("nobody"), "{name}");
    assert!(matches!(guest.restart_api_server(), Err(Error::NotOurs)));
    let folder = guest.folder().to_owned();
    drop(guest);
    assert!(!folder.exists());
    succeed(cluster.kubectl().args(["get", "--raw", "/readyz"]));
}

fn an_api_server_comes_back(cluster: &ControlPlane) {
    succeed(cluster.kubectl().args(["create", "configmap", "kept"]));
    let before = Instant::now();
    cluster.restart_api_server().unwrap();
    eprintln!("api server restarted in {:.1?}", before.elapsed());
    succeed(cluster.kubectl().args(["get", "configmap", "kept"]));
    cluster.kill_api_server().unwrap();
    assert!(!cluster.kubectl().args(["get", "--raw", "/readyz"]).output().unwrap().status.success());
    cluster.start_api_server().unwrap();
    succeed(cluster.kubectl().args(["get", "configmap", "kept"]));
}
