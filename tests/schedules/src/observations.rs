//! What a reconciliation reads of the world, in the types of production, and what production plans of that.

use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use futures::channel::mpsc;
use gatehouse::api::condition::State;
use gatehouse::controllers::action::RefusedWrite;
use gatehouse::controllers::api_write::ApiWrite;
use gatehouse::controllers::manifest::Place;
use gatehouse::controllers::reconciler::Reconciler as _;
use gatehouse::controllers::status::write;
use gatehouse::kinds::tdset::Operator;
use gatehouse::kinds::tdset::actions;
use gatehouse::kinds::tdset::api::status::Reason;
use gatehouse::kinds::tdset::api::v1::TDSet;
use gatehouse::kinds::tdset::names::{COUNT_MANAGER, MANAGER};
use gatehouse::kinds::tdset::observation::{
    self, Blocker, Bounds, Contest, Controller, Observed, Remembered, Scaled, Unreported, Writer,
};
use gatehouse::kinds::tdset::plan;
use gatehouse::kinds::tdset::spec::{self, Spec};
use gatehouse::kinds::tdset::target_ownership::TargetOwnership;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kit::explore::{Keyed, Memo};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::effects::{merge, written};
use crate::faults::Hand;
use crate::gate;
use crate::text::Text;
use crate::world::{Autoscaler, CLOCK, Deployment, Owner, Schedule, Service, Target, World};

/// What could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unread {
    #[default]
    Nothing,
    Objects,
    /// Whether other autoscalers scale the workload.
    Autoscalers,
    Dates,
}

/// What a reconciliation has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub at: usize,
    /// In milliseconds.
    pub now: i64,
    pub is_behind: bool,
    pub unread: Unread,
    pub is_scaled: bool,
    pub schedule: Schedule,
    pub deployment: Option<Deployment>,
    pub service: Option<Service>,
    pub autoscaler: Option<Autoscaler>,
    pub holder: Option<String>,
    pub carried: Unreported,
    pub contest: Option<Contest>,
    pub repair_contest: Option<Contest>,
    pub asks: i32,
    /// The count that is to be had then, by the ramp.
    pub line: i32,
}

impl Hash for Seen {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { at, now, schedule, deployment, service, autoscaler, holder, carried, contest, .. } = self;
        let Self { asks, line, is_behind, unread, is_scaled, repair_contest, .. } = self;
        (is_behind, unread, is_scaled).hash(state);
        (at, now, schedule, deployment, service, autoscaler, holder, asks, line).hash(state);
        if *carried != Unreported::default() || contest.is_some() || repair_contest.is_some() {
            format!("{carried:?} {contest:?} {repair_contest:?}").hash(state);
        }
    }
}

/// What was planned, and of what.
#[derive(Debug)]
pub struct Planned {
    pub seen: Seen,
    pub plan: Plan,
    /// What is said where the API server refuses that step of the work as the first one.
    pub refused: Vec<Plan>,
    /// What each step of the work writes, of the report, and of what is said where some of it is refused.
    written: [Vec<Text>; 2],
    written_refused: Vec<Vec<Text>>,
}

/// What production plans, as the writes that it comes to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The actions.
    pub work: Vec<ApiWrite>,
    /// The events and the status, in the order of a kind that reports last.
    pub report: Vec<ApiWrite>,
    pub wake: Option<Timestamp>,
    /// All of it.
    pub whole: plan::Plan,
}

impl Plan {
    fn of(spec: &Spec, observed: &Observed) -> Self {
        let whole = plan::plan(spec, observed);
        let change = (&observed.status, &whole.status);
        let write = write::<TDSet, _>(&spec.metadata, change, Operator::IDENTITY.status, MANAGER);
        Self {
            work: whole.actions.iter().map(|action| action.0.clone()).collect(),
            report: whole.events.iter().cloned().map(ApiWrite::Event).chain(write).collect(),
            wake: whole.wake.rest.time(),
            whole,
        }
    }
}

impl Planned {
    /// What is to be done in a part of a reconciliation, and what each of that writes.
    pub fn part(&self, reports: bool, refused: Option<usize>) -> (&[ApiWrite], &[Text]) {
        let [work, report] = &self.written;
        match (reports, refused) {
            (false, _) => (&self.plan.work, work),
            (true, None) => (&self.plan.report, report),
            (true, Some(step)) => (&self.refused[step].report, &self.written_refused[step]),
        }
    }
}

fn name(at: usize, spec: &Target) -> String {
    if spec.is_foreign() { format!("hours-{at}") } else { "shop".to_owned() }
}

fn object(schedule: &Schedule, at: usize) -> TDSet {
    let spec = &schedule.spec;
    let mut target = json!({"create": {"image": format!("shop:{}", spec.image), "port": 80}});
    if spec.has_service {
        target["create"]["servicePort"] = json!(spec.port);
    }
    if spec.target.is_foreign() {
        target = json!({"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
    }
    let left = match spec.target {
        Target::Reference(left) => left,
        Target::Controlled | Target::Owned => Some(4),
        Target::Unset => Some(0),
        _ => None,
    };
    if let Some(left) = left {
        target["ref"]["replicasOnDeletion"] = json!(left);
    }
    let mut object = json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
        "metadata": {
            "name": name(at, &spec.target), "namespace": "default", "uid": format!("t{at}"),
            "resourceVersion": "1", "generation": schedule.generation,
            "creationTimestamp": format!("2026-03-01T00:00:0{at}Z"),
        },
        "spec": {
            "timeZone": "Etc/UTC", "defaultReplicas": spec.outside, "suspend": spec.is_suspended,
            "windows": [{"name": "office", "from": "08:00", "to": "18:00", "replicas": spec.inside}],
            "manualScalePolicy": if spec.keeps { "KeepUntilNextTransition" } else { "Revert" },
            "target": target, "onUnreadableDates": if spec.holds { "Hold" } else { "Ignore" },
        },
    });
    if spec.holds {
        let from = json!({"configMapKeyRef": {"name": "dates", "key": "all"}});
        object["spec"]["exceptions"] = json!([{"name": "holidays", "datesFrom": from, "replicas": 1}]);
    }
    if spec.is_ramped {
        let pace = json!({"step": 1, "every": "1h"});
        object["spec"]["ramp"] = json!({"up": pace, "down": pace});
    }
    if spec.target == Target::Lent {
        object["spec"]["defaultReplicas"] = json!(null);
    }
    if spec.target.is_autoscaled() {
        object["spec"]["autoscaler"] = json!({"name": "shop", "maxReplicas": 12});
    }
    if spec.target == Target::Bounded {
        object["spec"]["autoscaler"]["onDeletion"] = json!({"minReplicas": 3, "maxReplicas": 8});
    }
    if schedule.has_finalizer {
        object["metadata"]["finalizers"] = json!(["gatehouse.dev/replicas-on-deletion"]);
    }
    if schedule.is_deleting {
        object["metadata"]["deletionTimestamp"] = json!(CLOCK[0]);
    }
    serde_json::from_value(object).expect("a TDSet")
}

/// The managed fields of a Deployment, as the API server keeps them and production trims them.
fn metadata(found: &Deployment, object: &mut Value) {
    let fields = |owns: bool| {
        if owns {
            json!({"f:spec": {"f:replicas": {}, "f:template": {}}})
        } else {
            json!({"f:spec": {"f:template": {}}})
        }
    };
    let maker = if found.applied == Text::NONE { "kubectl-create" } else { MANAGER };
    let made = if found.applied == Text::NONE { Owner::Maker } else { Owner::Template };
    let time = "2026-03-01T00:00:00Z";
    let mut entries =
        vec![json!({"manager": maker, "time": time, "fieldsV1": fields(found.owners.contains(&made))})];
    let count = json!({"f:spec": {"f:replicas": {}}});
    for owner in &found.owners {
        entries.extend(match owner {
            Owner::Count => Some(json!({"manager": COUNT_MANAGER, "fieldsV1": count})),
            Owner::Scale => Some(json!({"manager": "kubectl", "subresource": "scale", "fieldsV1": count})),
            Owner::Edit(time) => {
                let time = Timestamp::from_millisecond(*time).expect("a time").to_string();
                Some(json!({"manager": "kubectl-edit", "time": time, "fieldsV1": count}))
            }
            Owner::Template | Owner::Maker => None,
        });
    }
    let known = json!({
        "uid": format!("d{}", found.uid), "resourceVersion": "1", "generation": 2,
        "creationTimestamp": time, "managedFields": entries,
    });
    merge(&mut object["metadata"], &known);
}

thread_local! {
    static PLANS: Memo<Planned> = Memo::default();
}

fn made<Object: serde::de::DeserializeOwned>(value: Value) -> Object {
    serde_json::from_value(value).expect("an object")
}

impl Seen {
    fn observed(&self) -> Observed {
        let mut observed = Observed {
            now: Timestamp::from_millisecond(self.now).expect("a time"),
            status: self.schedule.status.known().status.clone(),
            remembered: Remembered {
                carried: self.carried.clone(),
                contest: self.contest.clone(),
                repair_contest: self.repair_contest.clone(),
                ..Remembered::default()
            },
            holder: self.holder.clone().map(|name| ("Deployment web".to_owned(), name)),
            ..Observed::default()
        };
        let target = &self.schedule.spec.target;
        match self.unread {
            Unread::Objects => {
                let why = "the API server does not say".to_owned();
                observed.unread_object = Some(Blocker::ready(Reason::TargetNotReadable, why));
                return observed;
            }
            Unread::Dates => {
                let why = "ConfigMap dates does not exist".to_owned();
                observed.unread = Some(Blocker::dates(State::False, Reason::DatesNotFound, why));
                observed.is_unwatched = true;
            }
            Unread::Autoscalers => observed.unread_autoscalers = Some(Blocker::forbidden("list", "all", "a")),
            Unread::Nothing => {}
        }
        observed.autoscalers.extend(self.is_scaled.then(|| "theirs".to_owned()));
        observed.autoscaler = target.is_autoscaled().then(|| self.bounds());
        if target.is_foreign() {
            observed.target = Some(self.scaled());
            return observed;
        }
        observed.deployment = self.deployment.as_ref().map(|found| {
            let mut object = found.applied.json();
            metadata(found, &mut object);
            merge(
                &mut object,
                &json!({"metadata": {"name": "shop", "namespace": "default"},
                "spec": {"replicas": found.count},
                "status": {"replicas": found.has, "readyReplicas": found.has, "updatedReplicas": found.has,
                    "availableReplicas": found.has, "observedGeneration": 1 + i32::from(found.is_observed)}}),
            );
            if found.is_going {
                object["metadata"]["deletionTimestamp"] = json!(CLOCK[0]);
            }
            if object["spec"].get("selector").is_none() {
                merge(&mut object, &json!({"spec": {"selector": {}, "template": {}}}));
            }
            let mut object: observation::FoundDeployment = made(object);
            object.trim();
            Arc::new(object)
        });
        observed.service = self.service.as_ref().map(|found| {
            let mut object = found.applied.json();
            let uid = format!("s{}", found.uid);
            merge(&mut object, &json!({"metadata": {"name": "shop", "namespace": "default", "uid": uid, "resourceVersion": "1"}}));
            Arc::new(made(object))
        });
        observed
    }

    fn bounds(&self) -> Result<Arc<Bounds>, Blocker> {
        let found = self.autoscaler.as_ref();
        let found = found.ok_or_else(|| Blocker::ready(Reason::AutoscalerNotFound, "none".to_owned()))?;
        let manager = if found.is_ours { COUNT_MANAGER } else { "kubectl" };
        let workload = if self.schedule.spec.target.is_foreign() { "web" } else { "shop" };
        Ok(Arc::new(Bounds::of(&made(json!({
            "metadata": {"name": "shop", "namespace": "default", "uid": "h", "resourceVersion": "1",
                "managedFields": [{"manager": manager, "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}]},
            "spec": {"minReplicas": found.least, "maxReplicas": found.most,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload}},
        })))))
    }

    fn scaled(&self) -> Result<Scaled, Blocker> {
        let target = &self.schedule.spec.target;
        let found = self.deployment.as_ref();
        let found = found.ok_or_else(|| Blocker::absent("none".to_owned()))?;
        let mut object = json!({});
        metadata(found, &mut object);
        if *target == Target::Applied {
            let entries = object["metadata"]["managedFields"].as_array_mut().into_iter().flatten();
            for entry in entries.filter(|entry| entry["manager"] == "kubectl") {
                entry["manager"] = json!("argocd-controller");
            }
        }
        let mut owned: ObjectMeta = made(object["metadata"].clone());
        observation::trim(&mut owned);
        let resource = ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
        let scale = json!({
            "metadata": {"name": "web", "namespace": "default", "uid": owned.uid, "resourceVersion": "1"},
            "spec": {"replicas": found.count}, "status": {"replicas": found.has, "selector": "app=web"},
        });
        Ok(Scaled {
            place: Place { resource, namespace: "default".to_owned(), name: "web".to_owned() },
            scale: Arc::new(made(scale)),
            is_unset: *target == Target::Unset && found.owners.is_empty(),
            writer: if *target == Target::Unowned { Writer::Unknown } else { Writer::of(&owned) },
            controller: target.is_controlled().then(|| Controller {
                group: if *target == Target::Owned { "argoproj.io" } else { "gatehouse.dev" }.to_owned(),
                kind: if *target == Target::Owned { "Rollout" } else { "EtcdCluster" }.to_owned(),
                name: "web".to_owned(),
            }),
            watched: true,
            stands_for: None,
        })
    }

    /// What production plans of it. The same is planned once.
    pub fn planned(&self, hand: Hand) -> Rc<Keyed<Planned>> {
        PLANS.with(|plans| plans.of(&(self, hand), || self.plan(hand)))
    }

    fn plan(&self, hand: Hand) -> Planned {
        let tdset = object(&self.schedule, self.at);
        let mut observed = self.observed();
        hand.mislead(&tdset, &mut observed);
        let spec = Spec::resolve(&tdset, gate::faults(self.schedule.spec.broken));
        let mut plan = Plan::of(&spec, &observed);
        hand.spoil(self, &mut plan);
        let refused: Vec<_> = plan
            .work
            .iter()
            .map(|step| {
                let action = actions::points(step).name().to_owned();
                let refused = RefusedWrite { action, why: "refused (403)".to_owned() };
                let mut told = Plan::of(&spec, &Observed { refused: Some(refused), ..observed.clone() });
                hand.spoil_refused(self, &observed, &mut told);
                told
            })
            .collect();
        let all = |steps: &Vec<ApiWrite>| steps.iter().map(written).collect();
        let written_refused = refused.iter().map(|told| all(&told.report)).collect();
        let written = [&plan.work, &plan.report].map(all);
        Planned { seen: self.clone(), plan, refused, written, written_refused }
    }
}

impl World {
    /// What a pass over a schedule reads.
    pub fn look(&self, at: usize) -> Seen {
        let schedule = self.schedules[at].clone();
        Seen {
            at,
            now: self.now(),
            deployment: self.deployment.clone(),
            service: self.service.clone(),
            autoscaler: self.autoscaler.clone(),
            is_behind: self.is_behind,
            unread: Unread::Nothing,
            is_scaled: self.is_scaled,
            holder: self.holder(at),
            carried: self.workers[at].recall.carried.clone(),
            contest: self.contest(at),
            repair_contest: self.repair_contest(at),
            asks: self.asks(&schedule.spec),
            line: self.line(&schedule.spec),
            schedule,
        }
    }

    /// Who holds the workload, as production reckons it.
    fn holder(&self, at: usize) -> Option<String> {
        if self.schedules.len() == 1 {
            return None;
        }
        let claims = TargetOwnership::new(mpsc::unbounded().0);
        let objects = || self.schedules.iter().enumerate().map(|(at, schedule)| object(schedule, at));
        for (tdset, schedule) in objects().zip(&self.schedules) {
            if !schedule.is_gone {
                claims.seen(&tdset.metadata, Some((spec::makes(&tdset), spec::subjects(&tdset))));
            }
        }
        let subject = Spec::resolve(&objects().nth(at)?, Vec::new()).workload();
        claims.holder(&subject, &format!("t{at}"), None)
    }
}
