//! Random walks: edits, approvals, deaths of the operator and of runs, lost Jobs and lost answers, in any order. What is
//! run is run by a model of the runner on a model of the history. Once they stop, all scripts are applied.
//!
//! Faults that are planted in the plan have to be found by the same walks.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::kinds::databasemigration::assignment::{Assignment, Mode, checksum};
use crate::properties;

/// Steps of a walk.
const STEPS: usize = 40;

/// A generator that is the same everywhere: xorshift.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A plan, as it is or with a fault.
type Planner = fn(&Spec, &Observed) -> Plan;

struct Walk {
    cluster: Cluster,
    planner: Planner,
    /// What runs read, by the name of the run.
    told: BTreeMap<String, Value>,
    /// The history: ids and checksums, in the order in which they were applied.
    history: Vec<(String, String)>,
    /// Plans that were approved at some time.
    approved: BTreeSet<String>,
    dice: Dice,
}

impl Walk {
    fn new(seed: u64, planner: Planner) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let approval = if dice.roll(2) == 0 { json!({"required": true}) } else { Value::Null };
        let cluster =
            Cluster::new(&json!({"spec": {"approval": approval, "retry": {"limit": 100, "backoff": "1s"}}}));
        Self { cluster, planner, told: BTreeMap::new(), history: Vec::new(), approved: BTreeSet::new(), dice }
    }

    /// One reconciliation, which may end at any point; the answer of its last action may be lost.
    fn reconcile(&mut self, most: usize) -> bool {
        let spec = Spec::resolve(&self.cluster.object, Vec::new());
        let plan = (self.planner)(&spec, &self.cluster.observed);
        self.cluster.observed.status = plan.status.clone();
        for action in plan.actions.iter().take(most) {
            if let Action::CreateSnapshot(manifest) = action {
                self.told.insert(manifest.place.name.clone(), manifest.object.clone());
            }
            self.cluster.carry_out(action);
        }
        !plan.actions.is_empty() || plan.ended.is_some()
    }

    /// The run that is under way ends, after so many scripts; without a word where it is killed.
    fn run(&mut self, most: usize, is_killed: bool) {
        let active = |run: &&mut Run| run.state == RunState::Active(None);
        let Some(run) = self.cluster.observed.runs.iter_mut().find(active) else { return };
        let told = self.told[&run.job]["data"][ASSIGNMENT].as_str().unwrap();
        let told = Assignment::read(told).unwrap();
        let result = carry_out(&told, &mut self.history, &self.approved, most);
        let ending =
            if is_killed { Ending::Silent("killed".to_owned()) } else { Ending::Said(Box::new(result)) };
        run.state = RunState::Ended(ending);
    }

    fn approve(&mut self) {
        let message = self
            .cluster
            .observed
            .status
            .conditions
            .iter()
            .flatten()
            .find(|one| one.reason == "AwaitingApproval");
        let hash =
            message.and_then(|one| one.message.split(' ').find(|word| word.len() == 64).map(str::to_owned));
        let Some(hash) = hash else { return };
        self.approved.insert(hash.clone());
        self.cluster.edit(&json!({"spec": {"approval": {"required": true, "planHash": hash}}}));
    }

    fn disturb(&mut self) {
        let step = self.cluster.object.metadata.generation.unwrap();
        match self.dice.roll(10) {
            0 => {
                let id = format!("x{step}");
                let mut scripts = json!(self.cluster.object.spec.scripts);
                scripts
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"id": id, "kind": "Data", "up": {"inline": "SELECT 1"}}));
                self.cluster.edit(&json!({"spec": {"scripts": scripts}}));
            }
            1 => self
                .cluster
                .edit(&json!({"metadata": {"annotations": {"gatehouse.dev/retry": step.to_string()}}})),
            2 => self.approve(),
            3 => self.cluster.observed.runs.clear(),
            4 => {
                let text = format!("INSERT {}", self.dice.roll(2)).into_bytes();
                let is_applied = self.history.iter().any(|(id, _)| id == "002");
                if !is_applied {
                    self.cluster
                        .observed
                        .sources
                        .insert("sql".to_owned(), [("002.sql".to_owned(), text)].into());
                }
            }
            5 => self.cluster.edit(&json!({"spec": {"suspend": self.dice.roll(2) == 0}})),
            6 => self.cluster.later(if self.dice.roll(3) == 0 { 30.hours() } else { 40.minutes() }),
            _ => {
                let (most, is_killed) = (usize::try_from(self.dice.roll(4)).unwrap(), self.dice.roll(3) == 0);
                self.run(most, is_killed);
            }
        }
    }

    /// A person brings the source back to what was applied of it.
    fn restore(&mut self) {
        let Some((_, applied)) = self.history.iter().find(|(id, _)| id == "002") else { return };
        let texts = ["INSERT", "INSERT 0", "INSERT 1"].map(str::as_bytes);
        let text = texts.into_iter().find(|text| checksum(text) == *applied).unwrap();
        self.cluster
            .observed
            .sources
            .insert("sql".to_owned(), [("002.sql".to_owned(), text.to_vec())].into());
    }

    fn walk(mut self) -> Self {
        for _ in 0..STEPS {
            self.disturb();
            let most = usize::try_from(self.dice.roll(4)).unwrap();
            self.reconcile(most);
        }
        // Nothing more happens, and a person approves what is asked for.
        self.cluster.edit(&json!({"spec": {"suspend": null}}));
        for _ in 0..60 {
            self.restore();
            self.approve();
            self.run(usize::MAX, false);
            self.cluster.later(40.minutes());
            self.reconcile(usize::MAX);
        }
        let changing = |cluster: &Cluster| {
            cluster.observed.runs.iter().filter(|run| run.purpose != Purpose::Verify).count()
        };
        let runs = changing(&self.cluster);
        for _ in 0..5 {
            self.run(usize::MAX, false);
            self.cluster.later(40.minutes());
            self.reconcile(usize::MAX);
        }
        assert_eq!(changing(&self.cluster), runs, "it is run again and again");
        self
    }
}

/// What the runner does, as far as the plan knows it.
fn carry_out(
    told: &Assignment,
    history: &mut Vec<(String, String)>,
    approved: &BTreeSet<String>,
    most: usize,
) -> RunResult {
    let pending: Vec<_> =
        told.scripts.iter().filter(|script| !history.iter().any(|(id, _)| *id == script.id)).collect();
    let ids: Vec<_> = pending.iter().map(|script| script.id.as_str()).collect();
    let changed = history.iter().find(|(id, sum)| {
        told.scripts.iter().any(|script| script.id == *id && script.planned.as_ref() != Some(sum))
    });
    if let Some((id, _)) = changed {
        let mut result = said(result::Outcome::Blocked, u32::try_from(history.len()).unwrap(), &ids);
        let message = "edited".to_owned();
        let (reason, id) = (result::BlockedReason::ChecksumMismatch, Some(id.clone()));
        result.blocked = Some(result::Blocked { reason, id, expected: None, found: None, message });
        return result;
    }
    if told.mode == Mode::Plan {
        return said(result::Outcome::Planned, u32::try_from(history.len()).unwrap(), &ids);
    }
    if let Some(plan) = &told.approved_plan_hash {
        assert!(approved.contains(plan), "what nobody has approved is run");
    }
    for script in pending.iter().take(most) {
        history.push((script.id.clone(), script.planned.clone().unwrap()));
    }
    let is_done = pending.len() <= most;
    let mut result = said(
        if is_done { result::Outcome::Succeeded } else { result::Outcome::Failed },
        u32::try_from(history.len()).unwrap(),
        &ids,
    );
    result.applied_now = u32::try_from(pending.len().min(most)).unwrap();
    if !is_done {
        failure(Class::Connection)(&mut result);
    }
    result
}

fn sound(seed: u64, planner: Planner) {
    let walk = Walk::new(seed, planner).walk();
    let spec = Spec::resolve(&walk.cluster.object, Vec::new());
    let phase = walk.cluster.observed.status.phase;
    let ids: Vec<_> = walk.history.iter().map(|(id, _)| id).collect();
    let wanted: Vec<_> = spec.scripts.iter().map(|script| &script.id).collect();
    assert_eq!(
        (phase, ids),
        (Some(Phase::Succeeded), wanted),
        "seed {seed}: {:?}",
        walk.cluster.observed.status
    );
    assert!(
        spec.approval.is_none() || !walk.approved.is_empty(),
        "seed {seed}: what nobody has approved was run"
    );
}

#[test]
fn whatever_happens_scripts_are_applied_once_and_in_order() {
    for seed in properties::seeds(300) {
        sound(seed, plan);
    }
}

#[test]
fn planted_faults_are_found() {
    let faults: [(&str, Planner); 5] = [
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
        ("a run is started beside another one", |spec, observed| {
            let mut blind = observed.clone();
            blind.runs.retain(|run| run.state != RunState::Active(None));
            plan(spec, &blind)
        }),
        ("a Job comes before what it reads", |spec, observed| {
            let mut plan = plan(spec, observed);
            plan.actions.reverse();
            plan
        }),
    ];
    for (fault, planner) in faults {
        let found = properties::seeds(300)
            .any(|seed| catch_unwind(AssertUnwindSafe(|| sound(seed, planner))).is_err());
        assert!(found, "not found: {fault}");
    }
}
