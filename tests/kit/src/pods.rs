//! The pods of runs, run on this machine as a kubelet would: their volumes are written down in a folder, their program is
//! started with their arguments, and its end is written into their status.
//!
//! Assumes: the image has this program at `/gatehouse`. Never: decides anything that a kubelet does not.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::bed::Namespace;
use crate::objects::Ask;
use crate::wait::{PATIENCE, eventually, reached};

/// What stands for a node of one namespace.
#[derive(Debug)]
pub struct Node<'a> {
    namespace: &'a Namespace<'a>,
    /// Where its volumes are, those of claims below `claims`.
    pub folder: PathBuf,
    seen: Cell<usize>,
    logs: RefCell<Vec<String>>,
}

/// A pod that has to be run.
#[derive(Debug)]
pub struct Pod {
    /// As the API server has it.
    pub object: Value,
    /// The name of its Job.
    pub job: String,
}

impl<'a> Node<'a> {
    /// One with an empty volume for each claim.
    pub fn new(namespace: &'a Namespace<'a>) -> Self {
        let folder = namespace.bed.cluster.folder().join(format!("node-{}", namespace.name));
        fs::create_dir_all(folder.join("claims")).expect("a folder");
        Self { namespace, folder, seen: Cell::new(0), logs: RefCell::default() }
    }

    /// How many pods have been run here, or are about to be.
    pub fn pods(&self) -> usize {
        self.pending().len() + self.seen.get()
    }

    /// All that the programs of the pods wrote, but for what they ended with. They log all that any library could.
    pub fn logs(&self) -> String {
        self.logs.borrow().concat()
    }

    /// The pods that have not been run.
    fn pending(&self) -> Vec<Value> {
        let labels = "app.kubernetes.io/name=databasemigration";
        let found = self.namespace.bed.objects.list("pods", &self.namespace.name, labels).expect("pods");
        found.into_iter().filter(|pod| pod["status"]["phase"] == "Pending").collect()
    }

    /// The next pod, once it is there.
    #[track_caller]
    pub fn next_pod(&self) -> Pod {
        let object =
            eventually(|| self.pending().into_iter().next().ok_or_else(|| "no pod is to be run".to_owned()));
        let job =
            object["metadata"]["labels"]["batch.kubernetes.io/job-name"].as_str().expect("a Job").to_owned();
        Pod { object, job }
    }

    /// Runs a pod, and reports its end; its exit code. One that does not end is killed, and its log is shown.
    #[track_caller]
    pub fn run(&self, pod: &Pod) -> i32 {
        let (code, said) = self.execute(pod);
        self.report(pod, code, &said);
        code
    }

    /// Runs a pod, and reports its end while a sidecar is at work in it; its exit code.
    #[track_caller]
    pub fn run_beside_a_sidecar(&self, pod: &Pod) -> i32 {
        let (code, said) = self.execute(pod);
        let sidecar = json!({"name": "proxy", "image": "proxy", "imageID": "proxy", "ready": true,
            "restartCount": 0, "state": {"running": {}}});
        self.write(pod, "Running", &[terminated(code, &said), sidecar]);
        code
    }

    /// Runs a pod, and reports nothing; its exit code, and what it said at its end.
    #[track_caller]
    pub fn execute(&self, pod: &Pod) -> (i32, String) {
        let (mut command, message) = self.command(pod);
        let path = message.with_file_name("log");
        let file = fs::File::create(&path).expect("a file");
        command.stdout(file.try_clone().expect("a file")).stderr(file);
        let mut child = command.spawn().expect("the program");
        let ended = reached(PATIENCE, || child.try_wait().expect("a child").ok_or("it has not ended"));
        if ended.is_err() {
            child.kill().expect("it is there");
            child.wait().expect("it is there");
        }
        let log = fs::read_to_string(&path).expect("a log");
        let code = ended.unwrap_or_else(|why| panic!("{command:?}: {why}: {log}")).code().unwrap_or(137);
        let said = fs::read_to_string(&message).unwrap_or_default();
        assert!(!said.is_empty(), "{command:?} said nothing: {log}");
        self.logs.borrow_mut().push(log);
        (code, said)
    }

    /// Runs a pod and kills it once it is at work; it says nothing.
    #[track_caller]
    pub fn kill(&self, pod: &Pod, at_work: impl FnMut() -> Result<(), String>) {
        let (mut command, _) = self.command(pod);
        let mut child = command.spawn().expect("the program");
        eventually(at_work);
        child.kill().expect("it is there");
        child.wait().expect("it is there");
        self.report(pod, 137, "");
    }

    /// The program of a pod, whose volumes are there, and the file for what it says at its end.
    fn command(&self, pod: &Pod) -> (Command, PathBuf) {
        self.seen.set(self.seen.get() + 1);
        let name = pod.object["metadata"]["name"].as_str().expect("a name");
        let root = self.folder.join(name);
        let container = &pod.object["spec"]["containers"][0];
        for mount in container["volumeMounts"].as_array().expect("mounts") {
            let volumes = pod.object["spec"]["volumes"].as_array().expect("volumes");
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).expect("its volume");
            self.mount(volume, &at(&root, text(&mount["mountPath"])));
        }
        let words = container["command"].as_array().into_iter().chain(container["args"].as_array()).flatten();
        // The program of the image is this one, and the root of its file system is a folder.
        let words: Vec<_> =
            words.skip(1).map(|word| text(word).replace("=/", &format!("={}/", root.display()))).collect();
        let message = root.join("termination-log");
        let mut command = Command::new(&self.namespace.bed.program);
        command.args(&words).arg(format!("--termination-log={}", message.display()));
        command.env_clear().env("GATEHOUSE_LOG", "trace,mio=off");
        (command, message)
    }

    /// Writes down what a volume has.
    fn mount(&self, volume: &Value, path: &Path) {
        fs::create_dir_all(path).expect("a folder");
        if let Some(name) = volume["configMap"]["name"].as_str() {
            let found = self.namespace.get("configmaps", name);
            for (key, value) in found["data"].as_object().into_iter().flatten() {
                // The path of the database is one in the root of the container.
                let value = text(value)
                    .replace("\"/database/", &format!("\"{}/", self.folder.join("claims/data").display()));
                fs::write(path.join(key), value).expect("a file");
            }
        }
        for source in volume["projected"]["sources"].as_array().into_iter().flatten() {
            let found = self.namespace.get("secrets", text(&source["secret"]["name"]));
            for item in source["secret"]["items"].as_array().into_iter().flatten() {
                let bytes = STANDARD.decode(text(&found["data"][text(&item["key"])])).expect("base64");
                fs::write(path.join(text(&item["path"])), bytes).expect("a file");
            }
        }
        if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            fs::create_dir_all(self.folder.join("claims").join(claim)).expect("a folder");
        }
    }

    /// What a kubelet says of a pod whose one container has ended.
    fn report(&self, pod: &Pod, code: i32, said: &str) {
        self.write(pod, if code == 0 { "Succeeded" } else { "Failed" }, &[terminated(code, said)]);
    }

    /// Writes the status of a pod.
    fn write(&self, pod: &Pod, phase: &str, containers: &[Value]) {
        let name = text(&pod.object["metadata"]["name"]);
        let status = json!({"status": {"phase": phase, "containerStatuses": containers}});
        let path = self.namespace.path(&format!("pod/{name}")) + "/status";
        self.namespace.bed.objects.must(Ask::patch(path, status));
    }
}

/// What a kubelet says of the container of a run that has ended.
fn terminated(code: i32, said: &str) -> Value {
    let now = gatehouse::runtime::clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let reason = if code == 0 { "Completed" } else { "Error" };
    let terminated =
        json!({"exitCode": code, "reason": reason, "message": said, "startedAt": now, "finishedAt": now});
    json!({"name": "migrate", "image": "gatehouse", "imageID": "gatehouse", "ready": false, "restartCount": 0,
        "state": {"terminated": terminated}})
}

fn at(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
