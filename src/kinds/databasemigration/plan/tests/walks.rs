//! Random walks: edits, approvals, deaths of the operator and of runs, Jobs that are deleted while their pods live on, lost
//! answers, scripts in doubt, servers that do not answer, requirements that come and go, in any order. What is run is run
//! by a model of the runner on a model of the history. Once they stop, all scripts are applied; and where the object is
//! deleted then and asks for it, taken back.
//!
//! Faults that are planted in the plan have to be found by the same walks.

mod database;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use random_objects::Random;

use super::*;
use crate::kinds::databasemigration::assignment::{Mode, Resolution, checksum};
use crate::properties;

/// Steps of a walk.
const STEPS: usize = 60;

/// A plan, as it is or with a fault.
type Planner = fn(&Spec, &Observed) -> Plan;

/// A row of the history.
struct Row {
    id: String,
    sum: String,
    /// The run that has written it.
    run: String,
    /// A run was killed in the middle of it.
    is_in_doubt: bool,
}

/// How a run goes.
#[derive(Clone, Copy)]
struct Course {
    /// How many scripts it comes through.
    most: usize,
    /// Whether the server lets it in.
    is_reached: bool,
    /// Whether it is killed: it says nothing.
    is_killed: bool,
    /// Whether that was in the middle of a script that cannot run in a transaction.
    leaves_doubt: bool,
}

const WHOLE: Course = Course { most: usize::MAX, is_reached: true, is_killed: false, leaves_doubt: false };

/// The database, and what people have said of it.
#[derive(Default)]
struct World {
    /// In the order in which they were applied.
    history: Vec<Row>,
    /// Plans that were approved at some time.
    approved: BTreeSet<String>,
    /// Whether they have to be.
    needs_approval: bool,
    /// The run that had left the doubt which a person looked at last.
    examined: Option<String>,
    /// The newest run that has taken the lock.
    newest: i64,
}

struct Walk {
    cluster: Cluster,
    planner: Planner,
    world: World,
    /// Jobs that are gone, and their pods are not: their numbers and names.
    orphans: Vec<(i64, String)>,
    dice: Random,
}

fn number(told: &Assignment) -> i64 {
    told.run.uid.rsplit_once('.').unwrap().1.parse().unwrap()
}

impl Walk {
    fn new(seed: u64, planner: Planner) -> Self {
        let mut dice = Random(seed);
        let needs_approval = dice.roll(2) == 0;
        let approval = if needs_approval { json!({"required": true}) } else { Value::Null };
        let policy = if dice.roll(2) == 0 { "Revert" } else { "Retain" };
        let cluster = Cluster::new(&json!({"spec": {
        "approval": approval, "deletionPolicy": policy, "requires": [{"name": "base"}],
        "retry": {"limit": 100, "backoff": "1s"},
        "scripts": [
            {"id": "001", "kind": "Schema", "up": {"inline": "CREATE"}, "down": {"inline": "DROP"}},
            {"id": "002", "kind": "Data", "up": {"configMapKeyRef": {"name": "sql", "key": "002.sql"}},
                "down": {"inline": "DELETE"}},
        ]}}));
        let world = World { needs_approval, ..World::default() };
        let mut walk = Self { cluster, planner, world, orphans: Vec::new(), dice };
        walk.require(true);
        walk
    }

    fn require(&mut self, is_ready: bool) {
        let base = Required { is_ready, applies: true, is_waiting: false, ids: Vec::new() };
        self.cluster.observed.required.insert("base".to_owned(), base);
    }

    /// One reconciliation, which may end at any point; the answer of its last action may be lost.
    fn reconcile(&mut self, most: usize) -> bool {
        let spec = Spec::resolve(&self.cluster.object, Vec::new());
        let plan = (self.planner)(&spec, &self.cluster.seen());
        self.cluster.observed.status = plan.status.clone();
        for action in plan.actions.iter().take(most) {
            self.cluster.carry_out(action);
        }
        !plan.actions.is_empty() || plan.detail.ended.is_some()
    }

    /// The run that is under way ends.
    fn run(&mut self, course: Course) {
        let active = |run: &&mut Run| run.state == RunState::Active(None);
        let Some(run) = self.cluster.observed.runs.iter_mut().find(active) else { return };
        let told = read(&self.cluster.told[&run.job]);
        let result = self.world.carry_out(&told, course);
        let ending = if course.is_killed {
            Ending::Silent("killed".to_owned())
        } else {
            Ending::Said(Box::new(result))
        };
        run.state = RunState::Ended(ending);
    }

    fn course(&mut self) -> Course {
        Course {
            most: usize::try_from(self.dice.roll(3)).unwrap(),
            is_reached: self.dice.roll(4) > 0,
            is_killed: self.dice.roll(2) == 0,
            leaves_doubt: self.dice.roll(4) > 0,
        }
    }

    fn approve(&mut self) {
        let Some(hash) = self.cluster.approval_asked_for() else { return };
        self.world.approved.insert(hash.clone());
        self.cluster.edit(&json!({"spec": {"approval": {"required": true, "planHash": hash}}}));
    }

    /// A person says what became of a script in doubt, where the status asks for it.
    fn resolve(&mut self) {
        if self.cluster.observed.status.phase != Some(Phase::InDoubt) {
            return;
        }
        let doubt = self.world.history.iter().find(|row| row.is_in_doubt).unwrap();
        let word = format!("{}={}", doubt.id, if self.dice.roll(2) == 0 { "applied" } else { "retry" });
        self.cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": null}}}));
        self.world.examined = Some(doubt.run.clone());
        self.reconcile(0);
        self.cluster.edit(&json!({"metadata": {"annotations": {"gatehouse.dev/resolve": word}}}));
    }

    fn disturb(&mut self) {
        // Something always happens to a run and to a doubt: both are rare.
        let is_in_doubt = self.cluster.observed.status.phase == Some(Phase::InDoubt);
        if self.dice.roll(3) == 0 {
            return if is_in_doubt { self.resolve() } else { self.run_somehow() };
        }
        let step = self.cluster.object.metadata.generation.unwrap();
        match self.dice.roll(12) {
            0 => {
                let mut scripts = json!(self.cluster.object.spec.scripts);
                let added = json!({"id": format!("x{step}"), "kind": "Data", "up": {"inline": "SELECT 1"},
                    "down": {"inline": "SELECT 2"}});
                scripts.as_array_mut().unwrap().push(added);
                self.cluster.edit(&json!({"spec": {"scripts": scripts}}));
            }
            1 => self
                .cluster
                .edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": step.to_string()}}})),
            2 => self.approve(),
            3 => {
                let runs = std::mem::take(&mut self.cluster.observed.runs);
                let alive = runs.into_iter().filter(|run| run.state == RunState::Active(None));
                self.orphans.extend(alive.map(|run| (run.number, run.job)));
            }
            4 => {
                // A pod whose Job is gone goes on, until another run has the lock.
                let course = self.course();
                let Some((number, job)) = self.orphans.pop() else { return };
                if number > self.world.newest {
                    let told = read(&self.cluster.told[&job]);
                    self.world.carry_out(&told, course);
                }
            }
            5 => {
                let text = format!("INSERT {}", self.dice.roll(2)).into_bytes();
                let is_applied = self.world.history.iter().any(|row| row.id == "002");
                if !is_applied {
                    self.source(text);
                }
            }
            6 => self.cluster.edit(&json!({"spec": {"suspend": self.dice.roll(2) == 0}})),
            7 => self.cluster.later(if self.dice.roll(3) == 0 { 30.hours() } else { 40.minutes() }),
            8 => self.resolve(),
            9 => {
                let is_ready = self.dice.roll(2) == 0;
                self.require(is_ready);
            }
            10 => {
                let mode = ["Apply", "Plan", "Rehearse"][usize::try_from(self.dice.roll(3)).unwrap()];
                self.cluster.edit(&json!({"spec": {"mode": mode}}));
            }
            _ => self.run_somehow(),
        }
    }

    fn run_somehow(&mut self) {
        let course = self.course();
        let takes_up = self.cluster.observed.runs.last().is_some_and(|run| run.resolved.is_some());
        // What is taken up again after a doubt is in doubt again more often than not.
        let again = Course { most: 0, is_reached: true, is_killed: true, leaves_doubt: true };
        let course = if takes_up && self.dice.roll(2) == 0 { again } else { course };
        self.run(course);
    }

    fn source(&mut self, text: Vec<u8>) {
        self.cluster.observed.sources.insert("sql".to_owned(), [("002.sql".to_owned(), text)].into());
    }

    /// A person brings the source back to what was applied of it.
    fn restore(&mut self) {
        let Some(applied) = self.world.history.iter().find(|row| row.id == "002") else { return };
        let texts = ["INSERT", "INSERT 0", "INSERT 1"].map(str::as_bytes);
        let text = texts.into_iter().find(|text| checksum(text) == applied.sum).unwrap();
        self.source(text.to_vec());
    }

    /// People do what they are asked for, and nothing is in the way.
    fn calm(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.restore();
            self.approve();
            self.resolve();
            self.run(WHOLE);
            self.cluster.later(40.minutes());
            self.reconcile(usize::MAX);
        }
    }

    fn walk(mut self) -> Self {
        for _ in 0..STEPS {
            self.disturb();
            let most = usize::try_from(self.dice.roll(4)).unwrap();
            self.reconcile(most);
        }
        self.cluster.edit(&json!({"spec": {"suspend": null, "mode": "Apply"}}));
        self.require(true);
        self.calm(60);
        let changing = |cluster: &Cluster| {
            cluster.observed.runs.iter().filter(|run| run.purpose != Purpose::Verify).count()
        };
        let runs = changing(&self.cluster);
        for _ in 0..5 {
            self.run(WHOLE);
            self.cluster.later(40.minutes());
            self.reconcile(usize::MAX);
        }
        assert_eq!(changing(&self.cluster), runs, "it is run again and again");
        self
    }

    /// The object is deleted, and its run with it where that still goes on.
    fn delete(&mut self) {
        self.cluster.edit(&json!({"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z"}}));
        if self.dice.roll(2) == 0 {
            self.cluster.observed.sources.clear();
        }
        for _ in 0..20 {
            if self.cluster.object.metadata.finalizers.is_none() {
                return;
            }
            self.approve();
            self.run(WHOLE);
            self.cluster.later(40.minutes());
            self.reconcile(usize::MAX);
        }
        panic!("it does not go");
    }
}

fn sound(seed: u64, planner: Planner) {
    let mut walk = Walk::new(seed, planner).walk();
    let spec = Spec::resolve(&walk.cluster.object, Vec::new());
    let phase = walk.cluster.observed.status.phase;
    let ids: Vec<_> = walk.world.history.iter().map(|row| &row.id).collect();
    let wanted: Vec<_> = spec.scripts.iter().map(|script| &script.id).collect();
    assert_eq!(
        (phase, ids),
        (Some(Phase::Succeeded), wanted),
        "seed {seed}: {:?}",
        walk.cluster.observed.status
    );
    assert!(
        spec.approval.is_none() || !walk.world.approved.is_empty(),
        "seed {seed}: a run without approval"
    );
    walk.delete();
    let reverts = spec.deletion_policy == DeletionPolicy::Revert;
    assert_eq!(walk.world.history.is_empty(), reverts, "seed {seed}: {:?}", walk.cluster.observed.status);
}

#[test]
fn whatever_happens_scripts_are_applied_once_and_in_order() {
    for seed in properties::seeds(300) {
        sound(seed, plan);
    }
}

/// Takes each answer for an unused one, and each doubt for the doubt that was answered.
fn answers_again(spec: &Spec, observed: &Observed) -> Plan {
    let mut blind = observed.clone();
    let newest = observed.runs.iter().max_by_key(|run| run.number);
    let found = newest.and_then(|run| match &run.state {
        RunState::Ended(Ending::Said(result)) => result.in_doubt.as_ref()?.run.clone(),
        _ => None,
    });
    if let Some(last) = &mut blind.status.last_run {
        last.resolved = None;
        last.doubt = found.or_else(|| last.doubt.take());
    }
    plan(spec, &blind)
}

#[test]
fn planted_faults_are_found() {
    let faults: [(&str, Planner); 8] = [
        ("no approval is waited for", |spec, observed| {
            plan(&Spec { approval: None, ..spec.clone() }, observed)
        }),
        ("a run that has ended is forgotten", |spec, observed| {
            let mut plan = plan(spec, observed);
            plan.status.last_run = None;
            plan
        }),
        ("no deletion waits", |spec, observed| {
            let mut plan = plan(spec, observed);
            plan.actions.retain(|action| !matches!(action, Action::Hold));
            plan
        }),
        ("a run that is under way is not seen", |spec, observed| {
            let mut blind = observed.clone();
            blind.runs.retain(|run| run.state != RunState::Active(None));
            plan(spec, &blind)
        }),
        ("a Job comes before what it reads", |spec, observed| {
            let mut plan = plan(spec, observed);
            plan.actions.reverse();
            plan
        }),
        ("a revert needs no approval", |spec, observed| {
            let approval = spec.approval.clone().filter(|_| !spec.is_deleting());
            plan(&Spec { approval, ..spec.clone() }, observed)
        }),
        ("an answer to a doubt counts as often as it is found", answers_again),
        ("the texts for a deletion are not kept", |spec, observed| {
            let mut plan = plan(spec, observed);
            plan.status.applied_snapshot = None;
            plan
        }),
    ];
    for (fault, planner) in faults {
        let found = properties::seeds(300)
            .any(|seed| catch_unwind(AssertUnwindSafe(|| sound(seed, planner))).is_err());
        assert!(found, "not found: {fault}");
    }
}
