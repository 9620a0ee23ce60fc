use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use kube::ResourceExt as _;
use proptest::prelude::*;

use serde_json::{Value, json};

use super::*;
use crate::api::field::FieldError;
use crate::controllers::action::{Action as _, RefusedWrite};
use crate::controllers::api_write::Merge;
use crate::controllers::status::{StatusRole, write};
use crate::kinds::tdset::actions;
use crate::kinds::tdset::observation::{Blocker, Scaled, Unreported, Writer};
use kube::core::ApiResource;

mod autoscalers;
mod bounded_by_others;
mod contests;
mod kept;
mod lent;
mod made;
mod paced;
mod refusals;
mod scaled_objects;
pub(in crate::kinds) mod situations;
mod transitions;
mod unread;
mod workloads;

/// A plan, as the writes that it comes to.
#[derive(Clone, Debug, PartialEq)]
struct Planned {
    work: Vec<ApiWrite>,
    report: Vec<ApiWrite>,
    status: TDSetStatus,
    transition: Option<PastTransition>,
    conflict: bool,
    reverted: Option<Reverted>,
    due: Option<Timestamp>,
    wake: Option<Timestamp>,
    /// What it was planned of.
    seen: Box<Seen>,
}

/// What was there.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    deployment: Option<Arc<FoundDeployment>>,
    target: Option<Result<Scaled, Blocker>>,
}

/// What is planned for an object with these faults.
fn plan_with(tdset: &TDSet, faults: Vec<FieldError>, observed: &Observed) -> Planned {
    let Plan { actions, status, events, wake, detail } = super::plan(&Spec::resolve(tdset, faults), observed);
    let Detail { transition, conflict, reverted, due, .. } = detail;
    let write = write::<TDSet, _>(&tdset.metadata, (&observed.status, &status), StatusRole::Report, MANAGER);
    Planned {
        work: actions.into_iter().map(|action| action.0).collect(),
        report: events.into_iter().map(ApiWrite::Event).chain(write).collect(),
        status,
        transition,
        conflict,
        reverted,
        due,
        wake: wake.rest.time(),
        seen: Box::new(Seen { deployment: observed.deployment.clone(), target: observed.target.clone() }),
    }
}

/// The same for one without faults.
fn plan(tdset: &TDSet, observed: &Observed) -> Planned {
    plan_with(tdset, Vec::new(), observed)
}

/// Two replicas, six in office hours, and a Service.
fn shop() -> TDSet {
    let object = json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
        "metadata": {
            "name": "shop", "namespace": "default", "uid": "1", "generation": 1, "resourceVersion": "100",
        },
        "spec": {
            "timeZone": "Europe/Berlin", "defaultReplicas": 2, "resyncMinutes": 1440,
            "windows": [{
                "name": "office", "from": "08:00", "to": "18:00", "days": ["Mon", "Tue", "Wed", "Thu", "Fri"],
                "replicas": 6,
            }],
            "target": {"create": {
                "image": "shop:1", "port": 8000, "servicePort": 80,
                "env": [{"name": "TOKEN", "value": "hunter2"}],
            }},
        },
    });
    serde_json::from_value(object).unwrap()
}

fn changed(path: &str, value: Value) -> TDSet {
    let mut object = json!(shop());
    let (parent, field) = path.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object["metadata"]["generation"] = 2.into();
    serde_json::from_value(object).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// 07:00 in Berlin on a Monday, an hour before the office opens.
const EARLY: &str = "2026-03-02T06:00:00Z";
const OPENING: &str = "2026-03-02T07:00:00Z";
const CLOSING: &str = "2026-03-02T17:00:00Z";

/// An API server, a Deployment controller and kubelets, as far as plans see them.
#[derive(Clone)]
struct Cluster(Observed);

impl Cluster {
    fn empty(now: &str) -> Self {
        Self(Observed { now: at(now), ..Observed::default() })
    }

    /// One in which `tdset` has been worked on until nothing was left to do.
    fn settled(tdset: &TDSet, now: &str) -> Self {
        let mut cluster = Self::empty(now);
        for _ in 0..4 {
            cluster.pass(tdset);
        }
        let rest = plan(tdset, &cluster.0);
        assert_eq!((rest.work, rest.report), (vec![], vec![]));
        cluster
    }

    fn at(mut self, now: &str) -> Self {
        self.0.now = at(now);
        self
    }

    /// One reconciliation as the controller does it; its plan.
    fn pass(&mut self, tdset: &TDSet) -> Planned {
        let plan = plan(tdset, &self.0);
        for step in &plan.work {
            match step {
                ApiWrite::Apply(apply) => self.apply(apply),
                ApiWrite::Delete { .. } => self.0.service = None,
                ApiWrite::Merge(merge) => self.merge(merge),
                other => panic!("{other:?} is no work"),
            }
        }
        if plan.work.is_empty() {
            (self.0.status, self.0.remembered.carried) = (plan.status.clone(), Unreported::default());
        } else {
            self.0.remembered.carried.ramp.clone_from(&plan.status.ramp);
            self.0.remembered.carried.reverted.clone_from(&plan.reverted);
            self.0.remembered.carried.transition =
                plan.transition.clone().or_else(|| self.0.remembered.carried.transition.take());
        }
        plan
    }

    /// The same where the API server refuses the actions of that name; what the report says.
    fn refused_pass(&mut self, tdset: &TDSet, action: &str) -> Planned {
        let planned = plan(tdset, &self.0);
        let is_held_up = |at: usize| {
            let before = planned.work.iter().take(at).cloned().map(actions::Action);
            before.filter(|one| actions::points(&one.0).name() == action).any(|one| one.holds_up_others())
        };
        let steps = planned.work.iter().enumerate().filter(|(at, _)| !is_held_up(*at)).map(|(_, step)| step);
        let (refused, done): (Vec<_>, Vec<_>) =
            steps.partition(|step| actions::points(step).name() == action);
        for step in done {
            match step {
                ApiWrite::Apply(apply) => self.apply(apply),
                ApiWrite::Merge(merge) => self.merge(merge),
                other => panic!("{other:?} is no work"),
            }
        }
        assert!(!refused.is_empty(), "{action} is not planned: {:?}", verbs(&planned.work));
        let refused = RefusedWrite { action: action.to_owned(), why: "refused (403)".to_owned() };
        let before = self.0.refused.replace(refused);
        let seen = Observed {
            deployment: planned.seen.deployment.clone(),
            target: planned.seen.target.clone(),
            ..self.0.clone()
        };
        self.0.refused = before;
        let told = plan(tdset, &seen);
        (self.0.status, self.0.remembered.carried) = (told.status.clone(), Unreported::default());
        told
    }

    fn apply(&mut self, apply: &Apply) {
        let object = apply.manifest.object.clone();
        match apply.manifest.place.resource.kind.as_str() {
            "Service" => {
                let mut service: Service = serde_json::from_value(object).unwrap();
                service.metadata.uid = Some("s".to_owned());
                self.0.service = Some(Arc::new(service));
            }
            "Deployment" if apply.manager == COUNT_MANAGER => {
                let count = serde_json::from_value(object["spec"]["replicas"].clone()).unwrap();
                self.edit(|deployment| scale(deployment, count, COUNT_MANAGER));
            }
            "Deployment" => {
                let mut made: Deployment = serde_json::from_value(object).unwrap();
                let before = self.0.deployment.as_deref();
                let given = made.spec.as_ref().unwrap().replicas;
                let count = given.or_else(|| before.map(FoundDeployment::replicas)).unwrap_or(1);
                made.metadata.managed_fields =
                    before.and_then(|before| before.metadata.managed_fields.clone());
                made.metadata.uid = Some("d".to_owned());
                scale(&mut made, count, if given.is_some() { MANAGER } else { "none" });
                if given.is_none() && before.is_none() {
                    made.metadata.managed_fields = None;
                }
                self.0.deployment = Some(Arc::new(found(&made)));
            }
            other => panic!("{other} is applied"),
        }
    }

    fn merge(&mut self, merge: &Merge) {
        let spec = &merge.manifest.object["spec"];
        if let Some(Ok(found)) = &mut self.0.autoscaler
            && merge.manifest.place == found.place
        {
            let (min, max) = found.fields();
            let bound = |field: &str| spec[field].as_i64().map(|bound| i32::try_from(bound).unwrap());
            let found = Arc::make_mut(found);
            if let Some(least) = bound(min) {
                (found.written_min, found.writer) = (Some(least), Writer::Ours);
            }
            if let Some(most) = bound(max) {
                (found.written_max, found.writer_of_max) = (Some(most), Writer::Ours);
            }
            assert!(found.min() <= found.max(), "the API server refuses that: {spec}");
            return;
        }
        if merge.scale {
            let count = merge.manifest.object["spec"]["replicas"].as_i64().unwrap();
            self.scale(i32::try_from(count).unwrap(), Writer::Ours);
        }
    }

    /// Writes the count of the workload of `target.ref`, and has all of it there at once.
    fn scale(&mut self, count: i32, writer: Writer) {
        self.0.target = Some(Ok(scaled(count, writer)));
    }

    fn edit(&mut self, by: impl FnOnce(&mut Deployment)) {
        edit(&mut self.0, by);
    }
}

/// Changes the Deployment that is there.
fn edit(observed: &mut Observed, by: impl FnOnce(&mut Deployment)) {
    let mut all = serde_json::from_value(json!(observed.deployment.as_deref())).unwrap();
    by(&mut all);
    observed.deployment = Some(Arc::new(found(&all)));
}

/// A Deployment as it is watched.
fn found(deployment: &Deployment) -> FoundDeployment {
    serde_json::from_value(json!(deployment)).unwrap()
}

/// A workload that another client made.
fn scaled(count: i32, writer: Writer) -> Scaled {
    let scale = json!({
        "metadata": {"name": "web", "uid": "w", "resourceVersion": "7"},
        "spec": {"replicas": count}, "status": {"replicas": count, "selector": "app=web"},
    });
    let resource = ApiResource::erase::<Deployment>(&());
    let place = Place { resource, namespace: "default".to_owned(), name: "web".to_owned() };
    let scale = Arc::new(serde_json::from_value(scale).unwrap());
    Scaled { place, scale, is_unset: false, writer, controller: None, watched: true, stands_for: None }
}

/// Writes a count as `manager`, and has all pods ready at once.
fn scale(deployment: &mut Deployment, count: i32, manager: &str) {
    let spec = deployment.spec.as_mut().unwrap();
    if spec.replicas != Some(count) {
        deployment.metadata.managed_fields = None;
    }
    spec.replicas = Some(count);
    if manager != "none" {
        let owner = json!({"manager": manager, "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        let owner: ManagedFieldsEntry = serde_json::from_value(owner).unwrap();
        deployment.metadata.managed_fields.get_or_insert_default().push(owner);
    }
    deployment.metadata.resource_version = Some("7".to_owned());
    deployment.status = serde_json::from_value(json!({
        "replicas": count, "readyReplicas": count, "updatedReplicas": count, "availableReplicas": count,
    }))
    .unwrap();
}

/// What a plan does, in short.
fn verbs(steps: &[ApiWrite]) -> Vec<String> {
    steps
        .iter()
        .map(|step| match step {
            ApiWrite::Apply(apply) => {
                let count = &apply.manifest.object["spec"]["replicas"];
                let force = if apply.seen.is_some() { "!" } else { "" };
                format!("apply{force} {} {count} as {}", apply.manifest.place.resource.kind, apply.manager)
            }
            ApiWrite::Merge(merge) => {
                let (kind, object) = (&merge.manifest.place.resource.kind, &merge.manifest.object);
                let finalizers = &object["metadata"]["finalizers"];
                let what = if merge.scale { &object["spec"]["replicas"] } else { finalizers };
                format!("merge {kind} {what} as {}", merge.manager)
            }
            ApiWrite::Create { manifest, .. } => format!("create {}", manifest.place),
            ApiWrite::Delete { place, uid, .. } => format!("delete {} {uid}", place.resource.kind),
            ApiWrite::Status { .. } => "status".to_owned(),
            ApiWrite::Event(note) => format!("{}: {}", note.reason, note.text),
        })
        .collect()
}

fn condition(status: &TDSetStatus, about: ConditionType) -> (String, String, String) {
    let found = status.conditions.iter().flatten().find(|one| one.type_ == about.as_str()).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

#[test]
fn an_invalid_object_is_reported_by_its_fields_and_not_by_its_values() {
    let tdset = changed("/spec/timeZone", json!("Mars/Olympus"));
    let observed = Cluster::settled(&shop(), EARLY).0;
    let first = plan(&tdset, &observed);
    assert_eq!((verbs(&first.work), first.wake), (vec![], None));
    assert_eq!(condition(&first.status, ConditionType::ScheduleValid).1, "UnknownTimeZone");
    let (state, reason, message) = condition(&first.status, ConditionType::Ready);
    assert_eq!((state.as_str(), reason.as_str()), ("False", "SpecInvalid"));
    assert!(message.starts_with("spec.timeZone: Invalid value: unknown time zone"), "{message}");
    let again = plan(&tdset, &Observed { status: first.status, ..observed });
    assert_eq!(again.report, []);

    let env =
        ["target", "create", "env"].iter().fold(crate::api::field::Path::spec(), |path, step| path.at(*step));
    for path in [crate::api::field::Path::spec(), env.clone(), env.index(0).at("value")] {
        let fault = FieldError::invalid(path, "hunter2", "hunter2 is no number");
        let plan = plan_with(&tdset, vec![fault], &Observed::default());
        assert!(!format!("{plan:?}").contains("hunter2"), "{plan:?}");
    }
}

#[test]
fn conditions_of_others_stay() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at(OPENING);
    let foreign = json!({
        "type": "Audited", "status": "True", "reason": "X", "message": "", "lastTransitionTime": EARLY,
    });
    let conditions = cluster.0.status.conditions.as_mut().unwrap();
    conditions.insert(0, serde_json::from_value(foreign).unwrap());
    cluster.pass(&shop);
    let status = cluster.pass(&shop).status;
    assert_eq!(status.conditions.unwrap()[0].type_, "Audited");
}

proptest! {
    #![proptest_config(crate::properties::config())]

    /// At any time of a year, from any count: two reconciliations bring it about and tell of it, and a third finds
    /// nothing.
    #[test]
    fn every_pass_ends_in_rest(start in 0..31_536_000_i64, later in 0..31_536_000_i64, count in 0..20_i32) {
        let shop = shop();
        let time = |seconds: i64| Timestamp::from_second(1_767_225_600 + seconds).unwrap().to_string();
        let mut cluster = Cluster::settled(&shop, &time(start)).at(&time(start + later));
        cluster.edit(|deployment| scale(deployment, count, "kubectl"));
        cluster.pass(&shop);
        let told = cluster.pass(&shop);
        prop_assert_eq!(verbs(&told.work), [""; 0]);
        let rest = cluster.pass(&shop);
        prop_assert_eq!((rest.work, rest.report), (vec![], vec![]));
        prop_assert!(rest.wake.unwrap() > cluster.0.now);
        prop_assert_eq!(cluster.0.deployment.as_deref().map(FoundDeployment::replicas), rest.status.scheduled_replicas);
    }
}
