//! Each state of an object that the API server shows: a look now and then would miss most of them.

use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use kit::wait::eventually;
use serde_json::{Deserializer, Value};

use crate::cluster::Bed;

/// Watches until it is dropped.
pub struct Watched {
    kubectl: Child,
    reader: Option<JoinHandle<()>>,
    shown: Arc<Mutex<Vec<Value>>>,
}

impl Watched {
    /// Watches an object such as `lease/gatehouse`, which is there, from its present state on.
    pub fn start(bed: &Bed, object: &str, namespace: &str) -> Self {
        let mut command = bed.cluster.kubectl();
        command.args(["get", object, "--namespace", namespace, "--watch", "--output=json"]);
        let mut kubectl = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("kubectl runs");
        let output = kubectl.stdout.take().expect("piped");
        let shown = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            // What comes last may be cut off, for kubectl is killed.
            let objects = Deserializer::from_reader(output).into_iter().map_while(Result::ok);
            objects.for_each(|object| kept.lock().unwrap().push(object));
        });
        let watched = Self { kubectl, reader: Some(reader), shown };
        // What comes after this is not missed.
        watched.until(|shown| !shown.is_empty());
        watched
    }

    /// All that the object has been, up to this version of it.
    #[track_caller]
    pub fn until_version(&self, wanted: u64) -> Vec<Value> {
        self.until(|shown| shown.last().is_some_and(|last| version(last) >= wanted))
    }

    /// All that the object has been, once that has in it what is looked for.
    #[track_caller]
    pub fn until(&self, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        eventually(|| {
            let shown = self.shown.lock().unwrap().clone();
            let last = || format!("{} states, the last one of them {:?}", shown.len(), shown.last());
            if is_enough(&shown) { Ok(shown) } else { Err(last()) }
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.kubectl.kill();
        let _code = self.kubectl.wait();
        let read = self.reader.take().map(JoinHandle::join);
        assert!(matches!(read, Some(Ok(()))) || std::thread::panicking(), "all is read");
    }
}

/// The version of an object, which grows with each change of anything.
pub fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a version")
}
