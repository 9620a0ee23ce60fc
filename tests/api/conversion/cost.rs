//! What conversion costs: how often the API server asks for it, verb by verb, as docs/conversion.md says, and for how long
//! at worst, which is printed. No other test uses the control plane, and no controllers run.

use std::time::{Duration, Instant};

use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, http_get, of};
use kit::random::is_night;
use kit::wait::within;
use serde_json::{Value, json};

use super::{converted, new};
use crate::corpus::bare::{self, Bare};

/// How long a list may take that has all of its objects converted.
const PATIENCE: Duration = Duration::from_mins(5);

/// How many conversions each verb takes, by `v1` and by `v1alpha1`. Lists and watches come from the cache of their
/// version, and etcd has `v1`.
const COUNTED: [(&str, u64, u64); 11] = [
    ("create", 1, 4),
    ("get", 0, 1),
    ("list", 0, 0),
    ("watch", 0, 0),
    ("update", 1, 6),
    ("merge patch", 1, 6),
    ("first apply", 1, 6),
    ("next apply", 1, 6),
    ("patch of /status", 1, 4),
    ("patch of /scale", 1, 4),
    ("delete", 1, 5),
];

/// What the API server does for each request of a client, once its caches are warm.
struct Counter<'a> {
    bare: &'static Bare,
    namespace: &'a Namespace<'a>,
}

impl Counter<'_> {
    fn clusters(&self, version: &str) -> String {
        of(version, &self.namespace.name, "etcdclusters")
    }

    /// Waits until the caches of both versions have all that was written: a list is answered from them, once they have.
    fn settle(&self) {
        for version in ["v1", "v1alpha1"] {
            self.bare.bed.objects.at(&self.clusters(version));
        }
    }

    /// How many conversions it takes.
    fn count(&self, ask: Ask) -> u64 {
        self.settle();
        let before = converted(&self.bare.converter, "EtcdCluster");
        self.bare.bed.objects.must(ask);
        self.settle();
        converted(&self.bare.converter, "EtcdCluster") - before
    }

    /// How many of them each verb takes by that version.
    fn verbs(&self, version: &str) -> Vec<(&'static str, u64)> {
        let all = self.clusters(version);
        let one = format!("{all}/counted-{version}");
        let size = if version == "v1" { "replicas" } else { "size" };
        let cluster = |count: u32| {
            json!({"apiVersion": format!("gatehouse.dev/{version}"), "kind": "EtcdCluster",
                "metadata": {"name": format!("counted-{version}")}, "spec": {size: count, "version": "3.6.16"}})
        };
        let created = ("create", self.count(Ask::post(&all, cluster(1))));
        let mut read = self.bare.bed.objects.at(&one);
        read["spec"][size] = 3.into();
        let asks = [
            ("get", Ask::get(&one)),
            ("list", Ask::get(&all)),
            ("watch", Ask::get(format!("{all}?watch=true&resourceVersion=0&timeoutSeconds=1"))),
            ("update", Ask::put(&one, read)),
            ("merge patch", Ask::patch(&one, json!({"spec": {size: 5}}))),
            ("first apply", Ask::apply(&cluster(1), &self.namespace.name, "")),
            ("next apply", Ask::apply(&cluster(3), &self.namespace.name, "")),
            ("patch of /status", Ask::patch(format!("{one}/status"), json!({"status": {"replicas": 3}}))),
            ("patch of /scale", Ask::patch(format!("{one}/scale"), json!({"spec": {"replicas": 5}}))),
            ("delete", Ask::delete(&one)),
        ];
        let counted = asks.into_iter().map(|(verb, ask)| match verb {
            // Its answer is no object.
            "watch" => (verb, self.count_watch(ask.path)),
            _ => (verb, self.count(ask)),
        });
        [created].into_iter().chain(counted).collect()
    }

    fn count_watch(&self, path: String) -> u64 {
        self.settle();
        let before = converted(&self.bare.converter, "EtcdCluster");
        let events = self.bare.bed.objects.texts(vec![path]);
        assert!(events[0].contains("ADDED"), "{events:?}");
        converted(&self.bare.converter, "EtcdCluster") - before
    }
}

/// How often the API server has had something converted, and for how many seconds, by its own account.
fn spent(bare: &Bare) -> (f64, f64) {
    let page = bare.bed.objects.texts(vec!["/metrics".to_owned()]).remove(0);
    let sum = |part: &str| -> f64 {
        let name = format!("apiserver_crd_conversion_webhook_duration_seconds_{part}{{");
        let values = page.lines().filter_map(|line| line.strip_prefix(&name)?.rsplit_once(' '));
        values.map(|(_, value)| value.parse::<f64>().expect("a number")).sum()
    };
    (sum("count"), sum("sum"))
}

/// For how many seconds the gate has had reviews of conversions, by its own account.
fn worked(bare: &Bare) -> f64 {
    let page = http_get(bare.converter.health, "/metrics");
    let name = "controller_runtime_webhook_latency_seconds_sum{webhook=\"/convert\"} ";
    let sum = page.lines().find_map(|line| line.strip_prefix(name)).expect("it is counted");
    sum.parse().expect("a number")
}

pub fn what_conversion_costs_is_counted(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let namespace = bare.bed.namespace();
    let counter = Counter { bare, namespace: &namespace };
    let [hub, old] = ["v1", "v1alpha1"].map(|version| counter.verbs(version));
    let all: Vec<_> = hub.into_iter().zip(old).map(|((verb, hub), (_, old))| (verb, hub, old)).collect();
    assert_eq!(all, COUNTED);
    a_cold_list(&counter);
}

/// How long the first list by a version takes after a change of the definition, which has the API server forget all
/// that it has read and converted.
fn first_list(counter: &Counter, version: &str, count: usize) -> Duration {
    let (bare, objects) = (counter.bare, &counter.bare.bed.objects);
    let words = format!("counted: a list by {version}");
    let mut definitions = bare.definitions();
    definitions.retain(|definition| definition.spec.names.plural == "tdsets");
    for one in definitions[0].spec.versions.iter_mut().filter(|one| one.name == version) {
        (one.deprecated, one.deprecation_warning) = (Some(true), Some(words.clone()));
    }
    let mut object = json!(definitions[0]);
    (object["apiVersion"], object["kind"]) =
        ("apiextensions.k8s.io/v1".into(), "CustomResourceDefinition".into());
    objects.must(Ask::apply(&object, "", ""));
    // The first answer that has the new warning comes from an empty cache.
    within(PATIENCE, || {
        let begun = Instant::now();
        let (list, warnings) = objects.warned(Ask::get(of(version, &counter.namespace.name, "tdsets")));
        let list = list.map_err(|refusal| refusal.message)?;
        if !warnings.iter().any(|warning| warning.contains(&words)) {
            return Err(format!("{warnings:?}"));
        }
        assert_eq!(list["items"].as_array().map(Vec::len), Some(count), "it has every object");
        Ok(begun.elapsed())
    })
}

/// A list by the old version after a change of the definition, which has the API server forget all that it has
/// converted.
fn a_cold_list(counter: &Counter) {
    let (bare, objects) = (counter.bare, &counter.bare.bed.objects);
    let count = if is_night() { 10_000 } else { 100 };
    let namespace = &counter.namespace.name;
    let made = (0..count).map(|index| Ask::create(&new(&format!("cold-{index:05}")), namespace));
    for outcome in objects.all(made.collect()) {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    let by_hub = first_list(counter, "v1", count);
    // After a change, the API server fills the caches of all versions, and ends none that it has begun to fill.
    objects.at(&of("v1alpha1", namespace, "tdsets"));
    let before = (spent(bare), converted(&bare.converter, "TDSet"), worked(bare));
    let took = first_list(counter, "v1alpha1", count);
    let (now, gate) = (spent(bare), converted(&bare.converter, "TDSet") - before.1);
    let (reviews, seconds) = (now.0 - before.0.0, now.1 - before.0.1);
    let worked = worked(bare) - before.2;
    println!(
        "figure: a cold list of {count} objects took {by_hub:.2?} by v1, and {took:.2?} by v1alpha1, with {reviews} \
         conversions of {seconds:.2} s together by the API server's account; {gate} of {worked:.2} s by the gate's"
    );
    let (count, most) = (count as u64, 2 * count as u64);
    assert!(
        (count..=most).contains(&gate),
        "the API server converts each object once, or twice where it still fills an earlier cache: {gate}"
    );
    bare.define(&bare.definitions());
    // An API server deletes those of a collection one after the other, within the time that a request may take.
    let hub = of("v1", namespace, "tdsets");
    while !objects.at(&format!("{hub}?limit=1"))["items"].as_array().is_none_or(Vec::is_empty) {
        let names: Vec<_> = objects.at(&format!("{hub}?limit=1000"))["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item: &Value| format!("{hub}/{}", item["metadata"]["name"].as_str().expect("a name")))
            .collect();
        objects.discard(names);
    }
}
