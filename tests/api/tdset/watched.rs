//! Every count that a workload has had, as a watch tells that began before the workload was made.

use std::cell::RefCell;
use std::sync::mpsc::{self, Receiver, Sender};

use futures::{AsyncBufReadExt as _, StreamExt as _};
use hyper::Request;
use kit::bed::Namespace;
use kit::objects::Objects;
use kit::wait::{PATIENCE, patient};
use kube::Client;
use serde_json::Value;

/// The counts of one workload, each that is another than the one before. Its thread ends with the process.
pub struct Counts {
    name: String,
    news: Receiver<i64>,
    seen: RefCell<Vec<i64>>,
}

impl Counts {
    /// Those of a workload: `of(namespace, "deployments", "shop")`.
    pub fn of(namespace: &Namespace, plural: &str, name: &str) -> Self {
        let path = format!("/apis/apps/v1/namespaces/{}/{plural}", namespace.name);
        let path = format!("{path}?watch=true&fieldSelector=metadata.name={name}");
        let objects = Objects::new(namespace.bed.cluster.kubeconfig());
        let (news, heard) = mpsc::channel();
        let (begins, begun) = mpsc::channel();
        std::thread::spawn(move || objects.with(async |client| tell(client, &path, &begins, &news).await));
        begun.recv_timeout(patient(PATIENCE)).expect("a watch");
        Self { name: name.to_owned(), news: heard, seen: RefCell::default() }
    }

    /// Waits until these are all that there have been, in this order. Fails at once where there was another.
    #[track_caller]
    pub fn until(&self, expected: &[i64]) {
        loop {
            self.news.try_iter().for_each(|count| self.hear(count));
            let seen = self.seen.borrow().clone();
            if seen == expected {
                return;
            }
            assert!(expected.starts_with(&seen), "{} had {seen:?}, and not {expected:?}", self.name);
            let next = self.news.recv_timeout(patient(PATIENCE));
            let said =
                |error| format!("{} had {seen:?}, and then no more of {expected:?}: {error}", self.name);
            self.hear(next.unwrap_or_else(|error| panic!("{}", said(error))));
        }
    }

    fn hear(&self, count: i64) {
        let mut seen = self.seen.borrow_mut();
        if seen.last() != Some(&count) {
            seen.push(count);
        }
    }
}

/// Sends each count that an object has from now on, until the receiver is gone.
async fn tell(client: Client, path: &str, begins: &Sender<()>, news: &Sender<i64>) {
    let request = Request::get(path).body(Vec::new()).expect("a request");
    let mut lines = client.request_stream(request).await.expect("a watch").lines();
    begins.send(()).expect("the test waits");
    while let Some(Ok(line)) = lines.next().await {
        let event: Value = serde_json::from_str(&line).expect("JSON");
        let Some(count) = event["object"]["spec"]["replicas"].as_i64() else {
            panic!("no count: {event}");
        };
        if event["type"] != "DELETED" && news.send(count).is_err() {
            return;
        }
    }
}
