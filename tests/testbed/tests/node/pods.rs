//! What runs on the node, each test in a namespace of its own.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use testbed::ControlPlane;

use crate::support::{WEB, apply, call, eventually, kubectl, options};

/// A test, and its name.
type Test = (&'static str, fn(&ControlPlane));

pub const TESTS: &[Test] = &kit::tests![
    a_restricted_pod_serves_from_its_volume,
    pods_reach_services_by_name,
    pods_have_a_token_and_reach_the_api_server,
    the_audit_log_has_what_gatehouse_asks_and_nothing_else,
    logs_of_components_and_containers_are_collected,
    two_clusters_run_side_by_side,
];

fn namespace(cluster: &ControlPlane, name: &str) {
    kubectl(cluster, &format!("create namespace {name}"));
    // Pods are refused until the controllers have made it.
    kubectl(cluster, &format!("wait --for=create serviceaccount/default --namespace={name} --timeout=30s"));
}

fn kubectl_in(cluster: &ControlPlane, namespace: &str) -> Command {
    let mut command = cluster.kubectl();
    command.arg(format!("--namespace={namespace}"));
    command
}

fn web(cluster: &ControlPlane, name: &str) {
    namespace(cluster, name);
    apply(kubectl_in(cluster, name), WEB);
    kubectl(cluster, &format!("wait --for=condition=Ready pod/web --namespace={name} --timeout=60s"));
}

/// What a web server says, asked from this machine.
fn get(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn a_restricted_pod_serves_from_its_volume(cluster: &ControlPlane) {
    namespace(cluster, "volumes");
    kubectl(cluster, "label namespace volumes pod-security.kubernetes.io/enforce=restricted");
    apply(kubectl_in(cluster, "volumes"), WEB);
    kubectl(cluster, "wait --for=condition=Ready pod/web --namespace=volumes --timeout=60s");
    let written = kubectl(cluster, "exec --namespace=volumes web -- cat /data/index.html");
    assert_eq!(written.trim(), "web");
    let said = kubectl(cluster, "logs --namespace=volumes web");
    assert!(said.contains("ready to serve"), "{said}");

    let path = "get persistentvolumeclaim web --namespace=volumes --output=jsonpath={.status.phase}";
    assert_eq!(kubectl(cluster, path), "Bound");
    kubectl(cluster, "delete namespace volumes --timeout=60s");
    eventually("the volume to go with its claim", || {
        !kubectl(cluster, "get persistentvolumes --output=jsonpath={.items[*].spec.claimRef.namespace}")
            .contains("volumes")
    });
}

fn pods_reach_services_by_name(cluster: &ControlPlane) {
    web(cluster, "names");
    let client = |name: &str, extra: &str| {
        let manifest = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{terminationGracePeriodSeconds: 1, {extra}
              containers: [{{name: sh, image: 'busybox:1.35', command: [sleep, '600']}}]}}}}"
        );
        apply(kubectl_in(cluster, "names"), &manifest);
        kubectl(cluster, &format!("wait --for=condition=Ready pod/{name} --namespace=names --timeout=60s"));
    };
    client("client", "");
    client("on-node", "hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet,");
    for pod in ["client", "on-node", "web"] {
        // A pod that asks its own Service reaches itself; by its own name it means itself without the Service.
        let short = (pod != "web").then_some("web");
        for host in ["web.names.svc", "web.names.svc.cluster.local"].into_iter().chain(short) {
            let answer =
                kubectl(cluster, &format!("exec --namespace=names {pod} -- wget -qO- http://{host}/"));
            assert_eq!(answer.trim(), "web", "{pod} asks {host}");
        }
        let lookup = format!("exec --namespace=names {pod} -- nslookup example.com.");
        call(cluster.kubectl(), &lookup.split_whitespace().collect::<Vec<_>>()).fails();
    }
    let address = kubectl(cluster, "get service web --namespace=names --output=jsonpath={.spec.clusterIP}");
    assert!(get(&format!("{address}:80")).unwrap().contains("web"));
    let address = kubectl(cluster, "get pod web --namespace=names --output=jsonpath={.status.podIP}");
    assert!(get(&format!("{address}:8080")).unwrap().contains("web"));
    kubectl(cluster, "delete namespace names --wait=false");
}

fn pods_have_a_token_and_reach_the_api_server(cluster: &ControlPlane) {
    namespace(cluster, "accounts");
    // It does not speak TLS as the API server wants it, but the answer tells who answered.
    let script = "cd /var/run/secrets/kubernetes.io/serviceaccount; test -s token -a -s ca.crt && \
        printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT";
    let run = ["run", "client", "--image=busybox:1.35", "--restart=Never", "--", "sh", "-c", script];
    call(kubectl_in(cluster, "accounts"), &run).ok();
    let path = "get pod client --namespace=accounts --output=jsonpath={.status.phase}";
    eventually("the pod to end", || matches!(kubectl(cluster, path).as_str(), "Succeeded" | "Failed"));
    let said = kubectl(cluster, "logs --namespace=accounts client");
    assert!(kubectl(cluster, path) == "Succeeded" && said.contains("HTTPS server"), "{said}");
    kubectl(cluster, "delete namespace accounts --wait=false");
}

fn the_audit_log_has_what_gatehouse_asks_and_nothing_else(cluster: &ControlPlane) {
    namespace(cluster, "gatehouse-system");
    let log = cluster.audit_log().unwrap();
    let get = |namespace: &str| {
        let kubeconfig = cluster.kubeconfig_for_service_account(namespace, "default").unwrap();
        call(cluster.kubectl_as(&kubeconfig), &["get", "secrets", "--namespace=default"]).fails();
    };
    get("default");
    get("gatehouse-system");
    eventually("the request in the audit log", || {
        fs::read_to_string(log).is_ok_and(|text| text.contains("secrets"))
    });
    for line in fs::read_to_string(log).unwrap().lines() {
        assert!(line.contains(r#""username":"system:serviceaccount:gatehouse-system:default""#), "{line}");
        assert!(line.contains(r#""level":"Metadata""#), "{line}");
    }
    kubectl(cluster, "delete namespace gatehouse-system --wait=false");
}

fn logs_of_components_and_containers_are_collected(cluster: &ControlPlane) {
    web(cluster, "collected");
    let folder = tempfile::tempdir().unwrap();
    cluster.collect_logs(folder.path()).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for component in
        ["etcd", "kube-apiserver", "kubelet", "containerd", "coredns", "kube-proxy", "kube-scheduler"]
    {
        assert!(folder.path().join(format!("{component}.log")).is_file(), "{component}");
    }
    assert!(read("objects.txt").contains("pod/web"));
    assert!(read("pods.txt").contains("Started"), "{}", read("pods.txt"));
    assert!(read("events.txt").contains("Scheduled"));
    let containers = folder.path().join("containers");
    let found = call(Command::new("grep"), &["-rl", "ready to serve", &containers.to_string_lossy()]).ok();
    assert!(found.contains("collected_web"), "{found}");

    let existing = Some(cluster.kubeconfig().to_owned());
    let guest = ControlPlane::start(&testbed::Options { existing, ..options("guest") }).unwrap();
    assert!(guest.has_node() && !guest.load_image(Path::new("/nowhere.tar")).unwrap());
    let folder = tempfile::tempdir().unwrap();
    guest.collect_logs(folder.path()).unwrap();
    let log = folder.path().join("containers/collected_web_web.log");
    assert!(fs::read_to_string(log).unwrap().contains("ready to serve"));
    kubectl(cluster, "delete namespace collected --wait=false");
}

fn two_clusters_run_side_by_side(cluster: &ControlPlane) {
    let other = ControlPlane::start(&options("other")).unwrap();
    assert_ne!(other.server(), cluster.server());
    for each in [cluster, &other] {
        let name = if each.server() == other.server() { "this" } else { "that" };
        namespace(each, &format!("beside-{name}"));
    }
    let namespaces = kubectl(cluster, "get namespaces --output=name");
    assert!(namespaces.contains("beside-that") && !namespaces.contains("beside-this"), "{namespaces}");
    let folder = other.folder().to_owned();
    drop(other);
    assert!(!folder.exists());
    kubectl(cluster, "get --raw /readyz");
    web(cluster, "beside");
    kubectl(cluster, "delete namespace beside beside-that --wait=false");
}
