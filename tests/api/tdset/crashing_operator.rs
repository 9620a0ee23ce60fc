//! An operator that dies, or does not hear an answer, once at each point of what it does for TDSets, and is started
//! again each time. It has to end where another one ends that nothing befalls, which works the same objects in another
//! namespace; and it may not write more of them.
//!
//! There is one TDSet at a time: a death while a request for another was under way would spare the point after that
//! request, for the next life would find it done.

use kit::bed::{Bed, Namespace};
use kit::objects::path_of;
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::autoscalers::autoscaler;
use super::{TDSETS, delete, for_workload, foreign, notes, owners_of_count, patch, scale, tdset};
use crate::Test;
use crate::site::Site;

pub const TESTS: &[Test] = &[
    ("an_operator_that_dies_at_each_point_ends_where_another_does", |bed| {
        live_with(bed, Fate::Dies, &["before", "after"]);
    }),
    ("an_operator_that_loses_each_answer_ends_where_another_does", |bed| {
        live_with(bed, Fate::LosesTheAnswer, &["after"]);
    }),
    ("an_operator_that_is_answered_otherwise_goes_on", an_operator_that_is_answered_otherwise_goes_on),
];

fn an_operator_that_is_answered_otherwise_goes_on(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::IsAnsweredOtherwise);
    namespace.create(&tdset("shop", &json!({"defaultReplicas": 2})));
    namespace.until("deployment/shop", "{.spec.replicas}", "2");
    let mut count = 2;
    let all = ["conflict", "forbidden", "lost", "throttled", "trouble"];
    let of = |kind: &str| all.map(|fate| format!("{kind}.{fate}"));
    let wanted: Vec<_> = of("apply deployments").into_iter().chain(of("patch tdsets/status")).collect();
    // What is refused for good is tried again later and later, or when the object changes.
    eventually(|| {
        count = 5 - count;
        patch(&namespace, "shop", &json!({"defaultReplicas": count}));
        let met = operator.ever_met();
        let missed: Vec<_> = wanted.iter().filter(|point| !met.contains(*point)).collect();
        if missed.is_empty() { Ok(()) } else { Err(format!("never at {missed:?}: {met:?}")) }
    });
    namespace.until("deployment/shop", "{.spec.replicas}", &count.to_string());
    let generation = namespace.get(TDSETS, "shop")["metadata"]["generation"].to_string();
    namespace.until("tdset/shop", "{.status.observedGeneration}", &generation);
}

/// What the life below has it do.
pub const STEPS: [&str; 12] = [
    "make-deployment",
    "make-service",
    "write-count",
    "apply-deployment",
    "apply-service",
    "delete-service",
    "write-scale",
    "add-finalizer",
    "remove-finalizer",
    "write-bounds",
    "write-status",
    "publish-event",
];

/// The namespace of an operator that nothing befalls, and that of one that something does.
struct Both<'a>([&'a Namespace<'a>; 2]);

impl Both<'_> {
    fn each(&self, act: impl FnMut(&Namespace)) {
        self.0.into_iter().for_each(act);
    }

    fn create(&self, object: &Value) {
        self.each(|namespace| {
            namespace.create(object);
        });
    }

    fn change(&self, name: &str, spec: &Value) {
        self.each(|namespace| patch(namespace, name, spec));
    }

    fn scale(&self, workload: &str, replicas: u32) {
        self.each(|namespace| scale(namespace, workload, replicas));
    }

    fn delete(&self, name: &str) {
        self.each(|namespace| delete(namespace, name));
    }

    #[track_caller]
    fn until(&self, object: &str, field: &str, value: &str) {
        self.each(|namespace| namespace.until(object, field, value));
    }

    /// Both come to say the same of a TDSet, and that they have seen it as it is.
    #[track_caller]
    fn until_same(&self, name: &str) {
        eventually(|| {
            let [one, other] = self.0.map(|namespace| told(&namespace.get(TDSETS, name)));
            let is_of_now = |told: &Value| told["observedGeneration"] == told["generation"];
            if one == other && is_of_now(&one) { Ok(()) } else { Err(format!("{one}\n{other}")) }
        });
    }

    /// Both have made the same of an object, in as many changes of its spec.
    #[track_caller]
    fn are_same(&self, resource: &str, name: &str) {
        let [one, other] = self.0.map(|namespace| made(&namespace.get(resource, name)));
        assert_eq!(one, other, "{resource} {name}");
    }
}

/// What a TDSet says of itself, without times.
fn told(object: &Value) -> Value {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let conditions: Vec<_> = conditions
        .iter()
        .map(|one| json!([one["type"], one["status"], one["reason"], one["message"]]))
        .collect();
    let last = &status["lastTransition"];
    json!({
        "generation": object["metadata"]["generation"], "observedGeneration": status["observedGeneration"],
        "finalizers": object["metadata"]["finalizers"], "activeWindow": status["activeWindow"],
        "scheduledReplicas": status["scheduledReplicas"], "replicas": status["replicas"],
        "lastTransition": [last["from"], last["to"]], "next": status["nextTransition"], "conditions": conditions,
    })
}

/// What an object is, without what differs from one namespace to another.
fn made(object: &Value) -> Value {
    let (metadata, mut spec) = (&object["metadata"], object["spec"].clone());
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|field, _| !["clusterIP", "clusterIPs"].contains(&field.as_str()));
    }
    let owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
    let owners: Vec<_> = owners.iter().map(|owner| json!([owner["kind"], owner["name"]])).collect();
    json!({
        "generation": metadata["generation"], "labels": metadata["labels"], "spec": spec,
        "owners": owners, "count": owners_of_count(object),
    })
}

/// The Services of a namespace from a moment on.
struct Services<'a> {
    namespace: &'a Namespace<'a>,
    place: String,
    version: String,
}

impl<'a> Services<'a> {
    fn from_now(namespace: &'a Namespace<'a>) -> Self {
        let place = path_of("services", &namespace.name);
        let list = namespace.bed.objects.at(&place);
        let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        Self { namespace, place, version }
    }

    /// What became of one up to its end, with each of its versions: a Service has no generation.
    fn until_gone(self, name: &str) -> Vec<(Value, Value)> {
        let place = format!("{}?fieldSelector=metadata.name%3D{name}", self.place);
        let is_last = |event: &Value| event["type"] == "DELETED";
        let events = self.namespace.bed.objects.events_until(&place, &self.version, is_last);
        events.iter().map(|event| (event["type"].clone(), made(&event["object"]))).collect()
    }
}

/// Lets something befall the operator at all points of a life.
fn live_with(bed: &Bed, fate: Fate, moments: &[&str]) {
    let namespaces = [bed.namespace(), bed.namespace()];
    let sites = namespaces.each_ref().map(Site::new);
    let (_calm, mortal) = (sites[0].start(Fate::Lives), sites[1].start(fate));
    let both = Both(namespaces.each_ref());
    live_with_a_deployment(&both, &sites);
    live_with_a_workload_that_is_there(&both);
    live_with_an_autoscaler(&both);
    let met = mortal.met();
    println!("{fate:?}: {} times", met.len());
    let mut points =
        STEPS.iter().flat_map(|step| moments.iter().map(move |moment| format!("tdset.{step}.{moment}")));
    let missed: Vec<_> = points.by_ref().filter(|point| !met.contains(point)).collect();
    assert_eq!(missed, [""; 0], "never met");
}

/// It is made, with a Service, which is changed, and goes. A boundary passes, a user scales, and the image is changed.
fn live_with_a_deployment(both: &Both, sites: &[Site; 2]) {
    let create = json!({"image": "registry.k8s.io/pause:3.10", "port": 8080, "servicePort": 80});
    let services = both.0.map(Services::from_now);
    both.create(&tdset("shop", &json!({"defaultReplicas": 2, "target": {"create": create}})));
    both.until("service/shop", "{.spec.ports[0].port}", "80");
    both.until("deployment/shop", "{.spec.replicas}", "2");
    both.until_same("shop");
    both.change("shop", &json!({"target": {"create": {"servicePort": 81}}}));
    both.until("service/shop", "{.spec.ports[0].port}", "81");
    both.change("shop", &json!({"target": {"create": {"servicePort": null}}}));
    both.each(|namespace| namespace.until_gone("service/shop"));
    let [calm, mortal] = services.map(|services| services.until_gone("shop"));
    assert_eq!(calm, mortal, "each version of the Service");

    // The same times for both.
    both.change("shop", &json!({"exceptions": [sites[0].span("rush", 60, 180, 4)]}));
    both.until("tdset/shop", "{.status.nextTransition.replicas}", "4");
    for site in sites {
        site.jump(61);
    }
    both.until("tdset/shop", "{.status.lastTransition.to.replicas}", "4");
    both.until("deployment/shop", "{.spec.replicas}", "4");
    both.scale("deployment/shop", 9);
    both.until("deployment/shop", "{.spec.replicas}", "4");
    both.change("shop", &json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}}));
    both.until("deployment/shop", "{.spec.template.spec.containers[0].image}", "registry.k8s.io/pause:3.9");
    both.until_same("shop");
    both.are_same("deployment", "shop");
    let [calm, mortal] = both.0.map(|namespace| notes(namespace, "shop", "ReplicasScheduled"));
    assert_eq!(calm.len(), 1, "one transition: {calm:?}");
    // Who dies between an event and the status tells of it again.
    assert!((1..=3).contains(&mortal.len()), "one transition: {mortal:?}");
    for note in calm.iter().chain(&mortal) {
        assert!(note.starts_with("replicas 2 → 4: exception rush, "), "{note}");
    }
    both.delete("shop");
    both.each(|namespace| namespace.until_gone("deployment/shop"));
}

/// A workload that a user made, and what is left of it.
fn live_with_a_workload_that_is_there(both: &Both) {
    both.each(|namespace| foreign(namespace, "web", 5));
    let left = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "replicasOnDeletion": 6});
    both.create(&for_workload("hours", "apps/v1", "Deployment", "web", &json!({"target": {"ref": left}})));
    both.until("deployment/web", "{.spec.replicas}", "2");
    both.until_same("hours");
    both.scale("deployment/web", 8);
    both.until("deployment/web", "{.spec.replicas}", "2");
    both.until_same("hours");
    both.are_same("deployment", "web");
    both.delete("hours");
    both.until("deployment/web", "{.spec.replicas}", "6");
    both.are_same("deployment", "web");
}

/// A workload with an autoscaler.
fn live_with_an_autoscaler(both: &Both) {
    both.each(|namespace| {
        foreign(namespace, "bound", 1);
        autoscaler(namespace, "bound", "bound", 1, 9);
    });
    let bounded = json!({"autoscaler": {"name": "bound"}});
    both.create(&for_workload("bounds", "apps/v1", "Deployment", "bound", &bounded));
    both.until("hpa/bound", "{.spec.minReplicas}", "2");
    // The autoscaler's controller looks every 15 s.
    both.until("deployment/bound", "{.spec.replicas}", "2");
    both.until_same("bounds");
    both.are_same("deployment", "bound");
    both.delete("bounds");
}
