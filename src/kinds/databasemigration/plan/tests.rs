use std::collections::BTreeMap;

use jiff::ToSpan as _;
use serde_json::{Value, json};

use super::*;
use crate::api::condition::find;
use crate::api::field::{Fault, Path};
use crate::kinds::databasemigration::api::v1::{DatabaseMigration, Outcome};
use crate::kinds::databasemigration::assignment::{Assignment, Planned, plan_hash};
use crate::kinds::databasemigration::names::{ATTEMPT, KEY, NUMBER, PURPOSE, RESOLVED};
use crate::kinds::databasemigration::observation::{Ending, Required, RunState, Snapshot};
use crate::kinds::databasemigration::resources::assignment::ASSIGNMENT;
use crate::kinds::databasemigration::result::{self, Class, RunResult};

mod approval;
mod deletion;
mod doubt;
mod pods;
mod series;
mod situations;
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
            Action::Release => self.object.metadata.finalizers = None,
            Action::CreateSnapshot(manifest) => {
                let name = manifest.place.name.clone();
                let annotations = &manifest.object["metadata"]["annotations"];
                let snapshot = Snapshot {
                    uid: format!("uid-{name}"),
                    number: annotations[NUMBER].as_str().unwrap().parse().unwrap(),
                    purpose: Purpose::named(annotations[PURPOSE].as_str().unwrap()),
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
            if plan.actions.is_empty() && plan.ended.is_none() {
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
    result.applied_count = applied;
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

#[test]
fn scripts_are_applied_by_one_job_and_then_nothing_is_done() {
    let mut cluster = Cluster::new(&json!({}));
    let running = cluster.settle();
    is(&running, Phase::Running, "False", "Running");
    assert_eq!(running.status.current_run.as_ref().unwrap().attempt, 1);
    assert_eq!(cluster.created.len(), 1);
    let done = cluster.end_as(|_| ());
    is(&done, Phase::Succeeded, "True", "Applied");
    assert_eq!((done.status.applied_count, done.status.pending_count), (Some(2), Some(0)));
    assert_eq!(cluster.object.metadata.finalizers, None, "a deletion has nothing to wait for");
    cluster.later(3.hours());
    cluster.observed.runs.clear();
    let later = cluster.settle();
    is(&later, Phase::Succeeded, "True", "Applied");
    assert_eq!((cluster.created.len(), cluster.observed.snapshots.len()), (1, 0));
    let reasons: Vec<_> = cluster.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["RunStarted", "RunDone"]);
}

#[test]
fn what_is_run_is_what_was_planned_whatever_becomes_of_the_source() {
    let mut cluster = Cluster::new(&json!({}));
    let plan = cluster.step(2);
    let Action::CreateSnapshot(snapshot) = &plan.actions[1] else { panic!("{plan:?}") };
    assert_eq!(snapshot.object["immutable"], true);
    assert_eq!(snapshot.object["data"]["001.up.sql"], "INSERT");
    let told: Value = serde_json::from_str(snapshot.object["data"][ASSIGNMENT].as_str().unwrap()).unwrap();
    assert!(told["scripts"][1]["planned"].as_str().unwrap().starts_with("sha256:"), "{told}");
    // The process ends here; the next one finds another text, and does not run the old one under its name.
    let old = cluster.observed.snapshots.keys().next().unwrap().clone();
    let edited = [("002.sql".to_owned(), b"UPDATE".to_vec())].into();
    cluster.observed.sources.insert("sql".to_owned(), edited);
    cluster.settle();
    assert!(cluster.created.len() == 1 && cluster.created[0] != old, "{:?}", cluster.created);
    cluster.end_as(|_| ());
    assert!(!cluster.observed.snapshots.contains_key(&old), "nobody reads it");
    // An edit while a run is under way is planned after it.
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "1"}}}));
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    cluster.edit(&json!({"spec": {"outOfOrder": "Allow"}}));
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    cluster.end_as(|_| ());
    assert_eq!(cluster.created.len(), 3);
}

#[test]
fn only_what_may_pass_is_tried_again_and_not_for_ever() {
    let mut cluster = Cluster::new(&json!({"spec": {"retry": {"limit": 2, "backoff": "30s"}}}));
    cluster.settle();
    let plan = cluster.end_as(failure(Class::LockTimeout));
    is(&plan, Phase::Pending, "False", "BackingOff");
    assert_eq!(plan.wake.unwrap(), cluster.observed.now + 30.seconds());
    cluster.later(31.seconds());
    cluster.settle();
    let plan = cluster.end(Ending::Silent("its pod is gone".to_owned()));
    assert_eq!(plan.wake.unwrap(), cluster.observed.now + 60.seconds());
    cluster.later(61.seconds());
    cluster.settle();
    assert_eq!(cluster.created.len(), 3);
    let plan = cluster.end_as(failure(Class::Deadlock));
    is(&plan, Phase::Failed, "False", "RetriesExhausted");
    cluster.later(24.hours());
    cluster.settle();
    assert_eq!(cluster.created.len(), 3);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "please"}}}));
    is(&cluster.settle(), Phase::Running, "False", "Running");
    let plan = cluster.end_as(failure(Class::Constraint));
    is(&plan, Phase::Failed, "False", "ScriptFailed");
    assert!(ready(&plan).2.contains("script 002, statement 1: 23505: a value is there already"));
    assert_eq!(plan.status.last_run.unwrap().outcome, Outcome::Failed);
    cluster.later(24.hours());
    cluster.settle();
    assert_eq!(cluster.created.len(), 4);
    cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": "again"}}}));
    cluster.settle();
    is(&cluster.end(Ending::Late(None)), Phase::Failed, "False", "DeadlineExceeded");
}

#[test]
fn a_job_that_is_deleted_is_noticed_and_followed() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.settle();
    cluster.observed.runs.clear();
    let plan = cluster.settle();
    is(&plan, Phase::Pending, "False", "BackingOff");
    assert_eq!(plan.status.last_run.as_ref().unwrap().outcome, Outcome::Lost);
    cluster.later(1.minutes());
    cluster.settle();
    assert_eq!(cluster.created.len(), 2);
    assert_ne!(cluster.created[0], cluster.created[1]);
    is(&cluster.end_as(|_| ()), Phase::Succeeded, "True", "Applied");
}

#[test]
fn what_is_missing_or_pinned_otherwise_is_named_and_nothing_is_run() {
    let mut cluster = Cluster::new(&json!({}));
    let kept = cluster.observed.sources.clone();
    cluster.observed.sources.clear();
    let plan = cluster.settle();
    is(&plan, Phase::Pending, "False", "ScriptNotFound");
    assert!(ready(&plan).2.contains("script 002: ConfigMap sql does not exist"));
    cluster.observed.sources = kept;
    let pinned = json!([{"id": "1", "kind": "Schema", "checksum": format!("sha256:{}", "0".repeat(64)), "up": {"inline": "SELECT 1"}}]);
    cluster.edit(&json!({"spec": {"scripts": pinned}}));
    is(&cluster.settle(), Phase::Blocked, "False", "ChecksumPinMismatch");
    cluster.edit(&json!({"spec": {"scripts": [{"id": "1", "kind": "Schema", "up": {"inline": " ".repeat(1_000_001)}}]}}));
    is(&cluster.settle(), Phase::Blocked, "False", "ScriptsTooLarge");
    assert!(cluster.created.is_empty());
    let faults = vec![Fault::required(Path::spec(), "x")];
    let invalid = Spec::resolve(&cluster.object, faults);
    let plan = super::plan(&invalid, &cluster.observed);
    is(&plan, Phase::Pending, "False", "SpecInvalid");
    assert_eq!((plan.wake, plan.actions), (None, vec![]));
}

#[test]
fn another_migration_comes_first_and_suspend_starts_nothing() {
    let requires = json!({"spec": {"requires": [{"name": "base", "minId": "7"}], "suspend": true}});
    let mut cluster = Cluster::new(&requires);
    is(&cluster.settle(), Phase::Pending, "False", "Suspended");
    cluster.edit(&json!({"spec": {"suspend": null}}));
    let mut base = Required { is_ready: false, applies: true, ids: vec!["6".to_owned()] };
    for (found, part) in [
        (None, "does not exist"),
        (Some(base.clone()), "is not ready"),
        (Some(Required { is_ready: true, applies: false, ..base.clone() }), "does not apply"),
        (Some(Required { is_ready: true, ..base.clone() }), "has no script 7"),
    ] {
        cluster.observed.required = found.map(|found| ("base".to_owned(), found)).into_iter().collect();
        let plan = cluster.settle();
        is(&plan, Phase::Pending, "False", "RequirementNotReady");
        assert!(ready(&plan).2.contains(part), "{:?}", ready(&plan));
    }
    base = Required { is_ready: true, applies: true, ids: vec!["7".to_owned()] };
    cluster.observed.required.insert("base".to_owned(), base);
    is(&cluster.settle(), Phase::Running, "False", "Running");
}

#[test]
fn wherever_a_process_ends_each_run_is_made_once() {
    for died_after in 0..4 {
        let mut cluster = Cluster::new(&json!({}));
        cluster.step(died_after);
        cluster.settle();
        assert_eq!(cluster.created.len(), 1, "{died_after}");
        // It ends before it has written what the run told.
        let run = cluster.observed.runs.last_mut().unwrap();
        run.state = RunState::Ended(Ending::Said(Box::new(said(result::Outcome::Succeeded, 2, &[]))));
        let _lost = cluster.plan();
        is(&cluster.settle(), Phase::Succeeded, "True", "Applied");
        assert_eq!(cluster.created.len(), 1, "{died_after}");
    }
}
