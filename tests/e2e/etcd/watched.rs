//! Each change of an EtcdCluster that the API server tells of: a look now and then would miss most of them.

use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Deserializer, Value};

use super::cluster::NAME;
use super::transitions::version;
use crate::cluster::Bed;
use crate::kubectl::eventually;

/// Watches until it is dropped.
pub struct Watched {
    kubectl: Child,
    reader: Option<JoinHandle<()>>,
    told: Arc<Mutex<Vec<Value>>>,
}

impl Watched {
    pub fn start(bed: &Bed, namespace: &str) -> Self {
        let mut command = bed.cluster.kubectl();
        command.args(["get", "etcdcluster", NAME, "--namespace", namespace, "--watch", "--output=json"]);
        let mut kubectl = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("kubectl runs");
        let output = kubectl.stdout.take().expect("piped");
        let told = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&told);
        let reader = std::thread::spawn(move || {
            // What comes last may be cut off, for kubectl is killed.
            let objects = Deserializer::from_reader(output).into_iter().map_while(Result::ok);
            objects.for_each(|object| kept.lock().unwrap().push(object));
        });
        Self { kubectl, reader: Some(reader), told }
    }

    /// All that the object has been, up to this version of it.
    #[track_caller]
    pub fn until(&self, wanted: u64) -> Vec<Value> {
        eventually(|| {
            let told = self.told.lock().unwrap().clone();
            let last = told.last().map_or(0, version);
            if last >= wanted { Ok(told) } else { Err(format!("{last} was told of, and {wanted} is there")) }
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It may have ended by itself, and nobody is told of anything any more.
        let _ended = self.kubectl.kill();
        let _code = self.kubectl.wait();
        let read = self.reader.take().map(JoinHandle::join);
        assert!(matches!(read, Some(Ok(()))) || std::thread::panicking(), "all is read");
    }
}
