//! What the tests of the node share.

use std::{path::PathBuf, process::Command};

use kit::{call::Call, wait};
use testbed::{ControlPlane, Options};

/// A cluster with a node, whatever `KUBECONFIG` says: what is tested is the testbed.
pub fn options(name: &str) -> Options {
    Options { node: true, name: Some(name.to_owned()), existing: None, ..Options::from_env().unwrap() }
}

/// The archive of an image that `tools/build.sh images` makes.
pub fn image(name: &str) -> PathBuf {
    built("images").join(format!("{name}.tar"))
}

/// Where `tools/build.sh` has what it builds of a family.
pub fn built(family: &str) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/build.sh");
    PathBuf::from(call(Command::new(script), &["--print", family]).ok().trim())
}

/// A call of a program with these words more.
pub fn call(mut command: Command, words: &[&str]) -> Call {
    command.args(words);
    Call::new(command)
}

/// What kubectl prints for these words.
pub fn kubectl(cluster: &ControlPlane, words: &str) -> String {
    call(cluster.kubectl(), &words.split_whitespace().collect::<Vec<_>>()).ok()
}

/// Applies a manifest by this kubectl.
pub fn apply(kubectl: Command, manifest: &str) {
    call(kubectl, &["apply"]).input(manifest).ok();
}

/// Waits until that is so.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    wait::eventually(|| if check() { Ok(()) } else { Err(what) });
}

/// Waits until nothing is left.
pub fn vanishes<T: std::fmt::Debug>(what: &str, mut list: impl FnMut() -> Vec<T>) {
    wait::eventually(|| {
        let left = list();
        if left.is_empty() { Ok(()) } else { Err(format!("{what}: {left:#?}")) }
    });
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
