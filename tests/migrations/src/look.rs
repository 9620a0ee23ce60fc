//! What a reconciliation reads of the world, in the types of production, and what production plans of that.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use gatehouse::api::condition::find;
use gatehouse::controllers::action::RefusedWrite;
use gatehouse::controllers::manifest::APPLIED_HASH;
use gatehouse::kinds::databasemigration::api::status::Reason;
use gatehouse::kinds::databasemigration::api::v1::DatabaseMigration;
use gatehouse::kinds::databasemigration::names::{FINALIZER, NUMBER, PURPOSE};
use gatehouse::kinds::databasemigration::observation::{
    self, Ending, Observed, Purpose, Required, Run, RunState,
};
use gatehouse::kinds::databasemigration::plan::{self, Plan};
use gatehouse::kinds::databasemigration::spec::Spec;
use jiff::{SignedDuration, Timestamp};
use kit::explore::{Keyed, Memo};
use serde_json::{Value, json};

use crate::database::UNTRANSACTED;
use crate::faults::Hand;
use crate::text::Text;
use crate::world::{Ended, Job, Mode, Object, Snapshot, World};

/// The moment that is now.
pub fn now() -> Timestamp {
    "2026-11-24T12:00:00Z".parse().expect("a time")
}

/// What a reconciliation has read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    pub object: Object,
    pub jobs: Vec<Job>,
    pub snapshots: BTreeMap<Text, Snapshot>,
    pub source: Option<u8>,
    pub is_base_ready: bool,
    pub refused: Option<&'static str>,
}

/// One thing that an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Status,
    /// The action of that number.
    Act(usize),
}

/// What was planned, and of what.
#[derive(Debug)]
pub struct Planned {
    pub seen: Seen,
    pub plan: Plan,
    /// The status after it.
    pub status: Text,
    pub steps: Vec<Step>,
}

/// The text of a script. Versions from 10 on differ in what takes it back alone.
pub fn up(id: u8, version: u8) -> String {
    format!("CREATE TABLE t{id} (v{} int)", version % 10)
}

/// The text that takes it back.
pub fn down(id: u8, version: u8) -> String {
    format!("DROP TABLE t{id} -- {version}")
}

fn script(id: u8) -> Value {
    if id == UNTRANSACTED {
        let of = |key: &str| json!({"configMapKeyRef": {"name": "sql", "key": key}});
        return json!({"id": id.to_string(), "kind": "Schema", "transaction": "None", "up": of("up"), "down": of("down")});
    }
    json!({"id": id.to_string(), "kind": "Schema", "up": {"inline": up(id, 1)}, "down": {"inline": down(id, 1)}})
}

fn object(object: &Object) -> DatabaseMigration {
    let how_far = match object.mode {
        Mode::Plan => "Plan",
        Mode::Rehearse => "Rehearse",
        Mode::Apply => "Apply",
    };
    let mut made = json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
        "metadata": {"name": "shop", "namespace": "a", "uid": "u1", "generation": object.generation,
            "annotations": {"gatehouse.dev/retry": object.retry.to_string()}},
        "spec": {
            "database": {"engine": "PostgreSQL", "host": "pg", "port": 5432, "name": "shop",
                "credentialsSecret": {"name": "db"}, "tls": {"mode": "Require"}},
            "mode": how_far, "suspend": object.is_suspended, "retry": {"limit": object.retries, "backoff": "30s"},
            "deletionPolicy": if object.reverts { "Revert" } else { "Retain" },
            "scripts": object.scripts.iter().map(|id| script(*id)).collect::<Vec<_>>(),
        },
    });
    if let Some(approved) = object.approval {
        made["spec"]["approval"] = json!({"required": true});
        if !approved.get().is_empty() {
            made["spec"]["approval"]["planHash"] = json!(&*approved.get());
        }
    }
    if object.requires {
        made["spec"]["requires"] = json!([{"name": "base"}]);
    }
    if let Some(answer) = object.resolve {
        made["metadata"]["annotations"]["gatehouse.dev/resolve"] = json!(answer.text());
    }
    if object.has_finalizer {
        made["metadata"]["finalizers"] = json!([FINALIZER]);
    }
    if object.is_deleting {
        made["metadata"]["deletionTimestamp"] = json!(now());
    }
    serde_json::from_value(made).expect("a DatabaseMigration")
}

impl Seen {
    /// As production reads it: nothing but how the run is while one is under way that may change the database.
    fn observed(&self) -> Observed {
        let mut observed = Observed {
            now: now(),
            image: "gatehouse:1".to_owned(),
            status: (*self.object.status.status()).clone(),
            refused: self
                .refused
                .map(|action| RefusedWrite { action: action.to_owned(), why: "refused (403)".to_owned() }),
            ..Observed::default()
        };
        let told = observed.status.last_run.as_ref().map_or(0, |last| last.number);
        observed.runs = self.jobs.iter().map(|job| run(job, told)).collect();
        if observed.is_occupied() {
            return observed;
        }
        observed.snapshots =
            self.snapshots.iter().map(|(name, one)| (name.get().to_string(), snapshot(*one))).collect();
        for name in observed.wanted_snapshots(self.object.is_deleting) {
            let told = self.snapshots[&Text::of(&name)].text.told();
            let data = told.object["data"].as_object().expect("texts");
            let bytes = |text: &Value| text.as_str().expect("a text").as_bytes().to_vec();
            observed.kept.insert(name, data.iter().map(|(key, text)| (key.clone(), bytes(text))).collect());
        }
        observed.sources.extend(self.source.map(source));
        let base =
            Required { is_ready: self.is_base_ready, applies: true, is_waiting: false, ids: Vec::new() };
        observed.required.insert("base".to_owned(), base);
        observed
    }

    /// What production plans of it. The same is planned once.
    pub fn planned(&self, hand: Hand) -> Rc<Keyed<Planned>> {
        thread_local! {
            static PLANS: Memo<Planned> = Memo::default();
        }
        PLANS.with(|plans| plans.of(&(self, hand), || self.plan(hand)))
    }

    fn plan(&self, hand: Hand) -> Planned {
        let (mut spec, mut observed) = (Spec::resolve(&object(&self.object), Vec::new()), self.observed());
        hand.mislead(&mut spec, &mut observed);
        let mut plan = plan::plan(&spec, &observed);
        hand.spoil(self, &mut plan);
        let status = Text::of_status(&plan.status);
        // What differs is written, and nothing else.
        let report = (status != self.object.status).then_some(Step::Status);
        let steps = report.into_iter().chain((0..plan.actions.len()).map(Step::Act)).collect();
        Planned { seen: self.clone(), plan, status, steps }
    }
}

/// The ConfigMap with that version of the script that has its texts there.
pub fn source(version: u8) -> (String, BTreeMap<String, Vec<u8>>) {
    let texts = [("up", up(UNTRANSACTED, version)), ("down", down(UNTRANSACTED, version))];
    ("sql".to_owned(), texts.map(|(key, text)| (key.to_owned(), text.into_bytes())).into())
}

fn snapshot(one: Snapshot) -> observation::Snapshot {
    let told = one.text.told();
    let annotation =
        |name: &str| told.object["metadata"]["annotations"][name].as_str().expect("an annotation");
    observation::Snapshot {
        uid: one.uid.to_string(),
        number: annotation(NUMBER).parse().expect("a number"),
        purpose: Purpose::named(annotation(PURPOSE)),
        stamp: Some(annotation(APPLIED_HASH).to_owned()),
    }
}

/// A Job as a run. What a run has told once is in the status.
fn run(job: &Job, told: i64) -> Run {
    if let Some(shown) = job.shown.filter(|shown| job.number > told || !shown.is_ended) {
        return Run { state: shown.state(job.ended), ..run(&Job { shown: None, ..job.clone() }, told) };
    }
    let ending = |ended: Ended| match ended {
        _ if job.number <= told => Ending::Silent("it has been told".to_owned()),
        Ended::Said(said) => Ending::Said(Box::new(said.result())),
        Ended::Silent => Ending::Silent("killed".to_owned()),
        Ended::Late => Ending::Late(None),
    };
    Run {
        job: job.name.get().to_string(),
        key: job.key.get().to_string(),
        number: job.number,
        attempt: job.attempt,
        purpose: job.purpose,
        resolved: job.resolved.map(|word| word.get().to_string()),
        created: Some(now()),
        state: job.ended.map_or(RunState::Active(None), |ended| RunState::Ended(ending(ended))),
    }
}

impl World {
    /// What a reconciliation reads, and no more, so that the same is planned once.
    pub fn look(&self, at: usize) -> Seen {
        let mut seen = Seen {
            object: self.object.clone(),
            jobs: self.jobs.iter().map(Job::shown_alone).collect(),
            snapshots: self.snapshots.clone(),
            source: self.source,
            is_base_ready: self.is_base_ready,
            refused: self.operators[at].refused,
        };
        let is_at_work = |job: &Job| job.ended.is_none() || job.shown.is_some();
        if seen.jobs.iter().any(is_at_work) && seen.observed().is_occupied() {
            (seen.snapshots, seen.source, seen.is_base_ready) = (BTreeMap::new(), None, false);
        }
        seen
    }
}

/// A status whose last run ended at least that many minutes ago; none where it did.
pub fn aged(status: Text, minutes: i64) -> Option<Text> {
    let mut aged = (*status.status()).clone();
    let last = aged.last_run.as_mut()?;
    let then = now() - SignedDuration::from_mins(minutes);
    if last.finished_at.0 <= then {
        return None;
    }
    last.finished_at.0 = then;
    Some(Text::of_status(&aged))
}

/// A status without the age of its last run.
pub fn ageless(status: Text) -> Text {
    thread_local! {
        static KNOWN: RefCell<HashMap<Text, Text>> = RefCell::default();
    }
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&status).copied()) {
        return known;
    }
    let mut young = (*status.status()).clone();
    if let Some(last) = &mut young.last_run {
        last.finished_at.0 = now();
    }
    let young = Text::of_status(&young);
    KNOWN.with_borrow_mut(|known| known.insert(status, young));
    young
}

/// Why it is not ready, or why it is.
pub fn reason(status: Text) -> Option<Reason> {
    let status = status.status();
    Reason::named(&find(status.conditions.as_deref()?, "Ready")?.reason)
}

/// What it says of that.
pub fn message(status: Text) -> String {
    let status = status.status();
    let ready = status.conditions.as_deref().and_then(|all| find(all, "Ready"));
    ready.map(|one| one.message.clone()).unwrap_or_default()
}

/// The hash of the plan that a person is asked to approve.
pub fn asked_for(status: Text) -> Option<Text> {
    if reason(status) != Some(Reason::AwaitingApproval) {
        return None;
    }
    let status = status.status();
    let message = &find(status.conditions.as_deref()?, "Ready")?.message;
    message.split([' ', ',', ':']).find(|word| word.len() == 64).map(Text::of)
}
