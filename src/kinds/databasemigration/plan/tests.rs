use std::collections::BTreeMap;

use jiff::ToSpan as _;
use serde_json::{Value, json};

use super::*;
use crate::api::condition::find;
use crate::api::field::{FieldError, Path};
use crate::controllers::api_write::Note;
use crate::kinds::databasemigration::api::v1::{AppliedScript, DatabaseMigration, Outcome};
use crate::kinds::databasemigration::assignment::{Assignment, Planned, plan_hash};
use crate::kinds::databasemigration::names::{ATTEMPT, KEY, NUMBER, PURPOSE, RESOLVED};
use crate::kinds::databasemigration::observation::{Ending, Required, RunState, Snapshot};
use crate::kinds::databasemigration::resources::assignment::ASSIGNMENT;
use crate::kinds::databasemigration::result::{self, Class, RunResult};

mod approval;
mod deletion;
mod doubt;
mod history;
mod lost;
mod pods;
mod runs;
mod series;
pub(in crate::kinds) mod situations;
mod verification;
mod walks;

/// An object, and the cluster around it: Jobs are created, end as a test says, and are seen by the next plan.
struct Cluster {
    object: DatabaseMigration,
    observed: Observed,
    /// Names of Jobs in the order in which they were created.
    created: Vec<String>,
    /// What runs read, by the name of the run.
    told: BTreeMap<String, Value>,
    events: Vec<Note>,
}

impl Cluster {
    fn new(change: &Value) -> Self {
        let mut object = json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
            "metadata": {"name": "shop", "namespace": "a", "uid": "u1", "generation": 1},
            "spec": {
                "database": {"engine": "PostgreSQL", "host": "pg", "port": 5432, "name": "shop",
                    "credentialsSecret": {"name": "db"}, "tls": {"mode": "Require"}},
                "scripts": [
                    {"id": "001", "kind": "Schema", "up": {"inline": "CREATE TABLE a (b int)"}},
                    {"id": "002", "kind": "Data", "up": {"configMapKeyRef": {"name": "sql", "key": "002.sql"}}},
                ],
            },
        });
        json_patch::merge(&mut object, change);
        let now = "2026-11-24T12:00:00Z".parse().unwrap();
        let mut observed = Observed { now, image: "gatehouse:1".to_owned(), ..Observed::default() };
        observed.sources.insert("sql".to_owned(), [("002.sql".to_owned(), b"INSERT".to_vec())].into());
        let object = serde_json::from_value(object).unwrap();
        Self { object, observed, created: Vec::new(), told: BTreeMap::new(), events: Vec::new() }
    }

    fn edit(&mut self, change: &Value) {
        let mut object = json!(self.object);
        json_patch::merge(&mut object, change);
        self.object = serde_json::from_value(object).unwrap();
        *self.object.metadata.generation.as_mut().unwrap() += 1;
    }

    /// What is read of it: nothing but the run while one is under way that may change the database.
    fn seen(&self) -> Observed {
        let mut seen = self.observed.clone();
        if seen.is_occupied() {
            (seen.snapshots, seen.sources, seen.peers) = Default::default();
            seen.required.clear();
            return seen;
        }
        for name in seen.wanted_snapshots(self.object.metadata.deletion_timestamp.is_some()) {
            let data = self.told[&name]["data"].as_object().unwrap();
            let bytes = |text: &Value| text.as_str().unwrap().as_bytes().to_vec();
            seen.kept.insert(name, data.iter().map(|(key, text)| (key.clone(), bytes(text))).collect());
        }
        seen
    }

    fn plan(&self) -> Plan {
        plan(&Spec::resolve(&self.object, Vec::new()), &self.seen())
    }

    /// The hash of the plan that a person is asked to approve.
    fn approval_asked_for(&self) -> Option<String> {
        let conditions = self.observed.status.conditions.as_deref().unwrap_or_default();
        let asked = conditions.iter().find(|one| one.type_ == "Ready" && one.reason == "AwaitingApproval")?;
        let words = asked.message.split([' ', ',', ':']);
        words.into_iter().find(|word| word.len() == 64).map(str::to_owned)
    }

    /// The assignment of the newest run.
    fn assignment(&self) -> Assignment {
        read(&self.told[self.created.last().unwrap()])
    }

    /// One reconciliation: the status is written first, then the actions are carried out, or only so many of them.
    fn step(&mut self, most: usize) -> Plan {
        let plan = self.plan();
        self.observed.status = plan.status.clone();
        self.events.extend(plan.events.clone());
        for action in plan.actions.iter().take(most) {
            self.carry_out(action);
        }
        plan
    }

    fn carry_out(&mut self, action: &Action) {
        match action {
            Action::Hold => self.object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]),
            Action::Release => {
                let at_work =
                    |run: &&Run| run.purpose != Purpose::Verify && run.state == RunState::Active(None);
                let run = self.observed.runs.iter().find(at_work);
                assert!(run.is_none(), "the object may go beside its run: {run:?}");
                self.object.metadata.finalizers = None;
            }
            Action::CreateSnapshot(manifest) => {
                let name = manifest.place.name.clone();
                let annotations = &manifest.object["metadata"]["annotations"];
                let snapshot = Snapshot {
                    uid: format!("uid-{name}"),
                    number: annotations[NUMBER].as_str().unwrap().parse().unwrap(),
                    purpose: Purpose::named(annotations[PURPOSE].as_str().unwrap()),
                    stamp: manifest.stamp().map(str::to_owned),
                };
                self.told.insert(name.clone(), manifest.object.clone());
                self.observed.snapshots.insert(name, snapshot);
            }
            Action::CreateJob(manifest) => {
                let told =
                    |name: &str| manifest.object["metadata"]["annotations"][name].as_str().map(str::to_owned);
                let purpose = Purpose::named(&told(PURPOSE).unwrap()).unwrap();
                assert!(
                    finalizer::is_on(&self.object.metadata, FINALIZER) || purpose == Purpose::Verify,
                    "a run that a deletion does not wait for"
                );
                let name = manifest.place.name.clone();
                assert!(self.observed.snapshots.contains_key(&name), "a run without what it reads");
                assert!(
                    !self.observed.runs.iter().any(|run| run.state == RunState::Active(None)),
                    "two runs at once"
                );
                self.observed.runs.push(Run {
                    job: name.clone(),
                    key: told(KEY).unwrap(),
                    number: told(NUMBER).unwrap().parse().unwrap(),
                    attempt: told(ATTEMPT).unwrap().parse().unwrap(),
                    purpose,
                    resolved: told(RESOLVED),
                    created: Some(self.observed.now),
                    state: RunState::Active(None),
                });
                self.created.push(name);
            }
            Action::DeleteSnapshot { name, .. } => {
                self.observed.snapshots.remove(name).unwrap();
            }
        }
    }

    /// Reconciles until nothing is left to be done.
    fn settle(&mut self) -> Plan {
        for _ in 0..10 {
            let plan = self.step(usize::MAX);
            if plan.actions.is_empty() && plan.detail.ended.is_none() {
                return plan;
            }
        }
        panic!("it does not settle");
    }

    /// The run that is under way ends so.
    fn end(&mut self, ending: Ending) -> Plan {
        let run = self.observed.runs.iter_mut().find(|run| run.state == RunState::Active(None)).unwrap();
        run.state = RunState::Ended(ending);
        self.settle()
    }

    fn end_as(&mut self, change: impl FnOnce(&mut RunResult)) -> Plan {
        let mut result = said(result::Outcome::Succeeded, 2, &[]);
        change(&mut result);
        if result.outcome == result::Outcome::Succeeded && self.last_purpose() == Purpose::Apply {
            result.applied_now = 2;
        }
        if let Some(plan) = &mut result.plan {
            plan.hash = hash(&self.assignment());
        }
        self.end(Ending::Said(Box::new(result)))
    }

    /// The run that is under way has not started, for this reason.
    fn waits(&mut self, why: &str) -> Plan {
        let run = self.observed.runs.iter_mut().find(|run| run.state == RunState::Active(None)).unwrap();
        run.state = RunState::Active(Some(why.to_owned()));
        let plan = self.settle();
        self.observed.runs.last_mut().unwrap().state = RunState::Active(None);
        plan
    }

    fn last_purpose(&self) -> Purpose {
        self.observed.runs.last().unwrap().purpose
    }

    fn later(&mut self, length: jiff::Span) {
        self.observed.now += length;
    }
}

/// The assignment in the ConfigMap of a run.
fn read(snapshot: &Value) -> Assignment {
    Assignment::read(snapshot["data"][ASSIGNMENT].as_str().unwrap()).unwrap()
}

/// The hash of the plan, as the runner finds it: here the text of a Secret is always the same.
fn hash(told: &Assignment) -> String {
    let scripts = told.scripts.iter().map(|script| Planned {
        id: &script.id,
        kind: script.kind,
        transaction: script.transaction,
        checksum: script.planned.as_deref().unwrap_or("secret"),
        down: script.down.as_ref().map(|_| script.planned_down.as_deref().unwrap_or("secret")),
    });
    plan_hash(told, scripts)
}

fn said(outcome: result::Outcome, applied: u32, pending: &[&str]) -> RunResult {
    let mut result = RunResult::of("r", outcome);
    result.applied_count = Some(applied);
    result.server = Some(result::Server { version: "15.1".to_owned() });
    result.plan = Some(result::Plan {
        hash: "f".repeat(64),
        pending: pending.iter().map(ToString::to_string).collect(),
        pending_count: u32::try_from(pending.len()).unwrap(),
        ..result::Plan::default()
    });
    result
}

fn failure(class: Class) -> impl FnOnce(&mut RunResult) {
    move |result| {
        result.outcome = result::Outcome::Failed;
        result.last_error = Some(result::LastError {
            id: Some("002".to_owned()),
            statement: Some(1),
            sql_state: Some("23505".to_owned()),
            class,
            message: "a value is there already that has to be unique: constraint a_b_key, table a".to_owned(),
        });
    }
}

/// The run found that the history contradicts what it was told, at the script 001.
fn blocked(reason: result::BlockedReason, message: &'static str) -> impl FnOnce(&mut RunResult) {
    move |result| {
        result.outcome = result::Outcome::Blocked;
        let id = Some("001".to_owned());
        result.blocked =
            Some(result::Blocked { reason, id, expected: None, found: None, message: message.to_owned() });
    }
}

fn ready(plan: &Plan) -> (String, String, String) {
    let ready = find(plan.status.conditions.as_ref().unwrap(), "Ready").unwrap().clone();
    (ready.status, ready.reason, ready.message)
}

#[track_caller]
fn is(plan: &Plan, phase: Phase, ready_status: &str, reason: &str) {
    let (status, why, message) = ready(plan);
    assert_eq!(
        (plan.status.phase, status.as_str(), why.as_str()),
        (Some(phase), ready_status, reason),
        "{message}"
    );
    let holds = |about| condition::holds(plan.status.conditions.as_ref().unwrap(), about);
    assert!(!(holds("Ready") && (holds("Reconciling") || holds("Stalled"))), "kstatus would not know");
}
