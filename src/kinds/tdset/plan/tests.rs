use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use kube::ResourceExt as _;
use proptest::prelude::*;

use serde_json::{Value, json};

use super::*;
use crate::api::field::Fault;
use crate::controllers::action::{Action as _, RefusedWrite};
use crate::controllers::api_write::Merge;
use crate::controllers::status::{Change, Precondition, write};
use crate::kinds::tdset::actions;
use crate::kinds::tdset::observation::{Blocker, Scaled, Unreported, Writer};
use kube::core::ApiResource;

mod autoscalers;
mod contests;
mod kept;
mod lent;
mod refusals;
mod situations;
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
    deployment: Option<Arc<Deployment>>,
    target: Option<Result<Scaled, Blocker>>,
}

/// What is planned for an object with these faults.
fn plan_with(tdset: &TDSet, faults: Vec<Fault>, observed: &Observed) -> Planned {
    let Plan { actions, transition, status, events, conflict, reverted, due, wake, .. } =
        super::plan(&Spec::resolve(tdset, faults), observed);
    let change = Change { before: observed.status.clone(), after: status.clone() };
    let write = write::<TDSet, _>(&tdset.metadata, &change, Precondition::SameObject, MANAGER);
    Planned {
        work: actions.into_iter().map(|action| action.0).collect(),
        report: events.into_iter().map(ApiWrite::Event).chain(write).collect(),
        status,
        transition,
        conflict,
        reverted,
        due,
        wake,
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

    /// A pass as the controller does one; what the plan said.
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
            (self.0.status, self.0.carried) = (plan.status.clone(), Unreported::default());
        } else {
            self.0.carried.ramp.clone_from(&plan.status.ramp);
            self.0.carried.reverted.clone_from(&plan.reverted);
            self.0.carried.transition = plan.transition.clone().or_else(|| self.0.carried.transition.take());
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
        (self.0.status, self.0.carried) = (told.status.clone(), Unreported::default());
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
                let count = given.or_else(|| before.map(deployment::replicas)).unwrap_or(1);
                made.metadata.managed_fields =
                    before.and_then(|before| before.metadata.managed_fields.clone());
                made.metadata.uid = Some("d".to_owned());
                scale(&mut made, count, if given.is_some() { MANAGER } else { "nobody" });
                if given.is_none() && before.is_none() {
                    made.metadata.managed_fields = None;
                }
                self.0.deployment = Some(Arc::new(made));
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
            found.written_min = bound(min).or(found.written_min);
            found.written_max = bound(max).or(found.written_max);
            (found.writer, found.writer_of_max) = (Writer::Ours, Writer::Ours);
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

    fn edit(&mut self, edit: impl FnOnce(&mut Deployment)) {
        edit(Arc::make_mut(self.0.deployment.as_mut().unwrap()));
    }
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
    if manager != "nobody" {
        let owner = ManagedFieldsEntry { manager: Some(manager.to_owned()), ..ManagedFieldsEntry::default() };
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
fn what_is_not_there_is_made_with_its_count_and_without_force() {
    let plan = plan(&shop(), &Cluster::empty(EARLY).0);
    let expected = ["apply Deployment 2 as gatehouse-tdset", "apply Service null as gatehouse-tdset"];
    assert_eq!(verbs(&plan.work), expected);
}

#[test]
fn the_count_gets_an_owner_of_its_own_before_the_template_is_applied_without_it() {
    let mut cluster = Cluster::empty(EARLY);
    cluster.pass(&shop());
    let edited = changed("/spec/target/create/image", json!("shop:2"));
    let paused = changed("/spec/suspend", json!(true));
    assert_eq!(verbs(&plan(&paused, &cluster.0).work), ["apply Deployment 2 as gatehouse-tdset-count"]);
    // An autoscaler has it from then on, and there has to be one that it can go on from.
    let autoscaled = changed("/spec/autoscaler", json!({"name": "shop"}));
    assert_eq!(verbs(&plan(&autoscaled, &cluster.0).work), ["apply Deployment 2 as gatehouse-tdset-count"]);

    // Not in one reconciliation: what the API server refuses holds up nothing else that the reconciliation does.
    assert_eq!(verbs(&cluster.pass(&edited).work), ["apply! Deployment 2 as gatehouse-tdset-count"]);
    assert_eq!(verbs(&plan(&edited, &cluster.0).work), ["apply! Deployment null as gatehouse-tdset"]);
}

#[test]
fn a_transition_is_one_small_write_and_is_told_of_once() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at("2026-03-02T07:00:00.25Z");
    let first = cluster.pass(&shop);
    assert_eq!(verbs(&first.work), ["apply! Deployment 6 as gatehouse-tdset-count"]);
    let second = cluster.pass(&shop);
    assert_eq!(verbs(&second.work), [""; 0]);
    assert_eq!(
        verbs(&second.report),
        ["ReplicasScheduled: replicas 2 → 6: window office, 250 ms late", "status"]
    );
    let last = second.status.last_transition.clone().unwrap();
    assert_eq!((last.time, last.lateness_ms), (Time(at(OPENING)), 250));
    assert_eq!(second.status.next_transition.clone().unwrap().time, Time(at(CLOSING)));
    let third = cluster.pass(&shop);
    assert_eq!((third.work, third.report), (vec![], vec![]));
}

#[test]
fn what_was_missed_is_told_of_as_the_one_transition_that_holds() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at("2026-03-04T12:00:00Z");
    cluster.pass(&shop);
    let told = cluster.pass(&shop).status.last_transition.unwrap();
    assert_eq!(told.time, Time(at("2026-03-04T07:00:00Z")));
    assert_eq!(told.lateness_ms, 5 * 3_600_000);
}

#[test]
fn a_transition_that_was_carried_out_keeps_its_lateness_until_it_is_told() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at("2026-03-02T07:00:00.01Z");
    let carried = cluster.pass(&shop).transition;
    cluster.0.carried.transition = carried.map(|carried| PastTransition { lateness_ms: 12, ..carried });
    let told = cluster.at("2026-03-02T07:00:09Z").pass(&shop);
    assert_eq!(told.status.last_transition.unwrap().lateness_ms, 12);
}

#[test]
fn between_boundaries_nothing_is_written_and_the_status_stays() {
    let shop = shop();
    let cluster = Cluster::settled(&shop, EARLY);
    for now in ["2026-03-02T06:00:00.001Z", "2026-03-02T06:30:00Z", "2026-03-02T06:59:59.999999999Z"] {
        let later = cluster.clone().at(now);
        let plan = plan(&shop, &later.0);
        assert_eq!((plan.work, plan.report), (vec![], vec![]), "{now}");
        assert_eq!(plan.status, later.0.status, "{now}");
    }
}

#[test]
fn the_next_look_is_at_the_next_transition_or_after_the_resync_time() {
    for now in ["2026-03-02T06:55:00Z", "2026-03-02T06:59:59.9999Z"] {
        let observed = Cluster::settled(&shop(), now).0;
        assert_eq!(plan(&shop(), &observed).wake, Some(at(OPENING)), "{now}");
    }
    let often = changed("/spec/resyncMinutes", json!(3));
    for (tdset, now, minutes) in [(shop(), EARLY, 10), (shop(), OPENING, 10), (often, EARLY, 3)] {
        let observed = Cluster::settled(&tdset, now).0;
        let sleep = plan(&tdset, &observed).wake.unwrap().duration_since(at(now));
        let longest = SignedDuration::from_mins(minutes);
        assert!((longest * 4 / 5..=longest).contains(&sleep), "{now}: {sleep}");
    }
}

#[test]
fn objects_that_came_at_once_are_not_looked_at_together_for_good() {
    let sleeps: std::collections::BTreeSet<_> =
        (0..100).map(|uid| spread(Duration::from_mins(10), &uid.to_string())).collect();
    assert!(sleeps.len() > 50, "{sleeps:?}");
}

#[test]
fn a_look_that_comes_too_early_changes_nothing_and_looks_again() {
    let shop = shop();
    let cluster = Cluster::settled(&shop, EARLY).at("2026-03-02T06:59:59.998Z");
    let plan = plan(&shop, &cluster.0);
    assert_eq!((plan.work, plan.report, plan.wake), (vec![], vec![], Some(at(OPENING))));
}

#[test]
fn a_count_that_somebody_else_wrote_is_taken_back() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY);
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    assert_eq!(verbs(&cluster.pass(&shop).work), ["apply! Deployment 2 as gatehouse-tdset-count"]);
    let plan = cluster.pass(&shop);
    assert_eq!(plan.transition, None);
}

#[test]
fn a_field_that_somebody_else_changed_is_taken_back_and_what_they_added_stays() {
    type Edit = fn(&mut Deployment);
    let shop = shop();
    let cluster = Cluster::settled(&shop, EARLY);
    let edits: [(Edit, bool); 4] = [
        (|deployment| pod(deployment).containers[0].image = Some("other".to_owned()), true),
        (|deployment| deployment.metadata.labels = None, true),
        (
            |deployment| deployment.metadata.owner_references.as_mut().unwrap()[0].controller = Some(true),
            false,
        ),
        (|deployment| pod(deployment).dns_policy = Some("ClusterFirst".to_owned()), false),
    ];
    for (at, (edit, undone)) in edits.into_iter().enumerate() {
        let mut cluster = cluster.clone();
        cluster.edit(edit);
        let work = verbs(&plan(&shop, &cluster.0).work);
        assert_eq!(work == ["apply! Deployment null as gatehouse-tdset"], undone, "{at}: {work:?}");
    }
}

fn pod(deployment: &mut Deployment) -> &mut k8s_openapi::api::core::v1::PodSpec {
    deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap()
}

#[test]
fn a_suspended_one_rolls_out_and_leaves_the_count_alone() {
    let mut cluster = Cluster::settled(&shop(), EARLY).at(OPENING);
    let mut paused = json!(changed("/spec/suspend", json!(true)));
    paused["spec"]["target"]["create"]["image"] = "shop:2".into();
    let paused: TDSet = serde_json::from_value(paused).unwrap();
    let work = verbs(&cluster.pass(&paused).work);
    assert_eq!(work, ["apply! Deployment null as gatehouse-tdset"]);
    cluster.edit(|deployment| scale(deployment, 9, "kubectl"));
    let plan = cluster.pass(&paused);
    assert_eq!((verbs(&plan.work), plan.transition), (vec![], None));
    assert_eq!(plan.status.scheduled_replicas, Some(6));
    assert_eq!(condition(&plan.status, ConditionType::Suspended).0, "True");
    assert_eq!(condition(&plan.status, ConditionType::Ready).1, "SuspendedBySpec");
}

#[test]
fn an_object_of_somebody_else_is_never_written_and_is_told_of_once() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY);
    cluster.edit(|deployment| deployment.metadata.owner_references = None);
    let first = cluster.clone().at(OPENING).pass(&shop);
    assert_eq!(verbs(&first.work), [""; 0]);
    let message = "Deployment shop exists and is not controlled by this object";
    let conflict = condition(&first.status, ConditionType::Conflict);
    assert_eq!(conflict, ("True".to_owned(), "NameTaken".to_owned(), message.to_owned()));
    assert_eq!(condition(&first.status, ConditionType::Ready).0, "False");
    assert_eq!(verbs(&first.report), [format!("NameTaken: {message}"), "status".to_owned()]);
    cluster.0.status = first.status;
    assert_eq!(verbs(&cluster.at(OPENING).pass(&shop).report), [""; 0]);
}

#[test]
fn a_service_of_somebody_else_holds_up_no_count() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY).at(OPENING);
    Arc::make_mut(cluster.0.service.as_mut().unwrap()).metadata.owner_references = None;
    assert_eq!(verbs(&cluster.pass(&shop).work), ["apply! Deployment 6 as gatehouse-tdset-count"]);
    assert_eq!(condition(&cluster.pass(&shop).status, ConditionType::Conflict).0, "True");
}

#[test]
fn a_service_goes_with_its_port_if_it_is_ours() {
    let without = changed("/spec/target/create/servicePort", Value::Null);
    let mut cluster = Cluster::settled(&shop(), EARLY);
    assert_eq!(verbs(&plan(&without, &cluster.0).work), ["delete Service s"]);
    Arc::make_mut(cluster.0.service.as_mut().unwrap()).metadata.owner_references = None;
    let plan = plan(&without, &cluster.0);
    assert_eq!(verbs(&plan.work), [""; 0]);
    assert_eq!(condition(&plan.status, ConditionType::Conflict).0, "False");
}

#[test]
fn what_is_being_deleted_is_not_written() {
    let mut cluster = Cluster::settled(&shop(), EARLY).at(OPENING);
    cluster.edit(|deployment| deployment.metadata.deletion_timestamp = Some(Time(at(EARLY))));
    assert_eq!(verbs(&plan(&shop(), &cluster.0).work), [""; 0]);
}

#[test]
fn an_invalid_object_is_told_of_by_its_fields_and_not_by_its_values() {
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
        let fault = Fault::invalid(path, "hunter2", "hunter2 is no number");
        let plan = plan_with(&tdset, vec![fault], &Observed::default());
        assert!(!format!("{plan:?}").contains("hunter2"), "{plan:?}");
    }
}

#[test]
fn an_edit_that_changes_the_count_is_a_transition_of_now() {
    let mut cluster = Cluster::settled(&shop(), EARLY);
    let edited = changed("/spec/defaultReplicas", json!(4));
    cluster.pass(&edited);
    let plan = cluster.pass(&edited);
    let expected =
        ["ReplicasScheduled: replicas 2 → 4: outside all windows, after a change of the object", "status"];
    assert_eq!(verbs(&plan.report), expected);
}

#[test]
fn the_pods_are_what_the_spec_says_and_are_selected_whatever_it_says() {
    let create = json!({
        "image": "shop:1", "port": 8000, "command": ["a"], "args": ["b"], "workingDir": "/c",
        "env": [{"name": "A", "value": "1"}], "envFrom": [{"secretRef": {"name": "s"}}],
        "resources": {"limits": {"cpu": "1"}}, "imagePullPolicy": "Always", "imagePullSecrets": [{"name": "p"}],
        "livenessProbe": {"periodSeconds": 1}, "readinessProbe": {"periodSeconds": 2},
        "startupProbe": {"periodSeconds": 3}, "lifecycle": {"preStop": {"sleep": {"seconds": 4}}},
        "securityContext": {"runAsUser": 5}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "pod": {
            "labels": {"team": "x", "app.kubernetes.io/instance": "stolen"}, "annotations": {"note": "y"},
            "nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {}}, "tolerations": [{"key": "k"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
            "priorityClassName": "high", "serviceAccountName": "robot", "securityContext": {"fsGroup": 6},
            "terminationGracePeriodSeconds": 7, "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["10.0.0.1"], "options": [{"name": "ndots", "value": "1"}]}, "volumes": [{"name": "v", "emptyDir": {}}],
        },
    });
    let tdset = changed("/spec/target/create", create.clone());
    let spec = Spec::resolve(&tdset, vec![]);
    let made = deployment::deployment(&spec, spec.create().unwrap()).object;
    let pod = &made["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for (field, value) in create.as_object().unwrap() {
        match field.as_str() {
            "port" => assert_eq!(container["ports"][0]["containerPort"], *value),
            "imagePullSecrets" => assert_eq!(pod[field], *value),
            "pod" => {}
            _ => assert_eq!(container[field], *value, "{field}"),
        }
    }
    let is_metadata = |field: &str| ["labels", "annotations"].contains(&field);
    for (field, value) in create["pod"].as_object().unwrap().iter().filter(|(field, _)| !is_metadata(field)) {
        assert_eq!(pod[field], *value, "{field}");
    }
    let labels =
        json!({"team": "x", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/name": "tdset"});
    assert_eq!(made["spec"]["template"]["metadata"], json!({"labels": labels, "annotations": {"note": "y"}}));
    let selector = json!({"app.kubernetes.io/instance": "shop", "app.kubernetes.io/name": "tdset"});
    assert_eq!(made["spec"]["selector"], json!({"matchLabels": selector}));
    assert_eq!((&container["name"], &made["spec"]["replicas"]), (&json!("tdset"), &Value::Null));
    let owner = &made["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["controller"], &owner["blockOwnerDeletion"], &owner["uid"]),
        (&json!(true), &json!(true), &json!("1"))
    );
    let back: Deployment = serde_json::from_value(made).unwrap();
    assert_eq!(back.labels()["app.kubernetes.io/managed-by"], "gatehouse");
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
        prop_assert_eq!(cluster.0.deployment.as_deref().map(deployment::replicas), rest.status.scheduled_replicas);
    }
}
