//! What the tests of the node share.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use testbed::{ControlPlane, Options};

const PATIENCE: Duration = Duration::from_mins(1);

/// A cluster with a node, whatever `KUBECONFIG` says: what is tested is the testbed.
pub fn options(name: &str) -> Options {
    Options { node: true, name: Some(name.to_owned()), existing: None, ..Options::from_env().unwrap() }
}

/// The archive of an image that `tools/build.sh images` makes.
pub fn image(name: &str) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/build.sh");
    let folder = succeed(Command::new(script).args(["--print", "images"]));
    PathBuf::from(folder.trim()).join(format!("{name}.tar"))
}

pub fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// kubectl's words about these arguments.
pub fn kubectl(cluster: &ControlPlane, arguments: &str) -> String {
    succeed(cluster.kubectl().args(arguments.split_whitespace()))
}

pub fn apply(mut kubectl: Command, manifest: &str) {
    let command = kubectl.args(["apply", "--filename=-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{manifest}");
}

pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    vanishes(what, || if check() { Vec::new() } else { vec!["not yet"] });
}

#[expect(clippy::disallowed_methods, reason = "other processes are waited for")]
pub fn vanishes<T: std::fmt::Debug>(what: &str, mut list: impl FnMut() -> Vec<T>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = list();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {left:#?}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// A web server that does not run as root, may do nothing special, and serves what it wrote to its volume.
pub const WEB: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  securityContext:
    {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: web
    image: docker.io/library/busybox:1.35
    command: [sh, -c, "hostname >/data/index.html; echo ready to serve; exec httpd -f -p 8080 -h /data"]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    resources: {requests: {cpu: 10m}, limits: {cpu: 500m, memory: 64Mi}}
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: web}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"#;
