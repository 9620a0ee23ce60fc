//! Passes that operators logged while they worked real clusters, planned again; and what is wrong on purpose, found.
//!
//! `tests/traces/` has what they logged, a file for each kind of operation: `NAME.ndjson`, as `kubectl logs` prints it
//! or as lines of reconciliations alone; a run of the cluster tier with `KEEP_TRACES=FOLDER` leaves such lines. A plan
//! that has changed shows as a difference; `UPDATE_EXPECTED=1 cargo test --test replay` replaces the plans by those of
//! now, and nothing else. Read that before it is committed: [`kit::reconciliations`] has what a replay shows, and what
//! it does not.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it expects by unwrapping"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gatehouse::kinds::etcdcluster::actions::Action;
use gatehouse::kinds::etcdcluster::observation::{
    ClusterId, Desired, Fact, Observation, Phase, Record, Recovery, RecoveryPhase,
};
use gatehouse::kinds::etcdcluster::plan::{Plan, plan};
use gatehouse::kinds::etcdcluster::trace::TARGET;
use kit::reconciliations::log::{Event, Line, Log, Pass};
use kit::reconciliations::replay::{check, written};
use kit::reconciliations::rules::{self, Rule};
use serde_json::json;

/// A cluster that is made, gets a second member, loses it again and goes.
const WHOLE: &str = "two-members-and-back";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(format!("{name}.ndjson"))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn logged() -> Log {
    Log::read([text(&file(WHOLE)).as_str()])
}

fn traces() -> Vec<PathBuf> {
    let entries = fs::read_dir(file(WHOLE).parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "ndjson")).collect()
}

#[test]
fn passes_that_were_logged_are_planned_as_they_were() {
    let is_updated = kit::updates_expected();
    for path in traces() {
        let mut log = Log::read([text(&path).as_str()]);
        if is_updated {
            plan_again(&mut log);
            fs::write(&path, log.written()).unwrap();
        }
        let report = check(&log);
        println!("{}: {report}", path.display());
        let said: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
        assert!(report.passes > 0 && said.is_empty(), "{}: {report}: {said:#?}", path.display());
    }
}

/// What an operator does to a cluster, by the names of its actions. Traces have all of it.
const EFFECTS: [&str; 27] = [
    "add-finalizer",
    "alarm-disarm",
    "append-entries",
    "apply-backup-schedule",
    "apply-budget",
    "apply-services",
    "apply-stateful-set",
    "auth-enable",
    "compact",
    "defragment",
    "delete-pod",
    "delete-volume",
    "downgrade-cancel",
    "downgrade-enable",
    "label-pod",
    "member-add",
    "member-promote",
    "member-remove",
    "move-leader",
    "remove-finalizer",
    "resize-volume",
    "retain-volume",
    "set-root-password",
    "start-backup",
    "withdraw-config",
    "write-config",
    "write-record",
];

#[test]
fn each_kind_of_effect_is_in_a_trace() {
    let logs: Vec<_> = traces().iter().map(|path| Log::read([text(path).as_str()])).collect();
    let passes = logs.iter().flat_map(|log| &log.lines).filter_map(|line| match &line.event {
        Event::Pass(pass) => Some(plan(&pass.desired, &pass.seen)),
        Event::Action(_) => None,
    });
    let actions = passes.flat_map(|plan| plan.actions.iter().map(Action::name).collect::<Vec<_>>());
    assert_eq!(actions.collect::<BTreeSet<_>>(), BTreeSet::from(EFFECTS));
}

/// What the cluster tier leaves of a log, for this folder.
#[test]
fn what_is_kept_of_a_log_is_one_cluster_and_breaks_no_rule() {
    let (logged, kept) = (logged(), logged().of("etcd-told"));
    assert_eq!(found(&kept), []);
    assert!(!kept.lines.is_empty() && kept.lines.len() < logged.lines.len(), "{} lines", kept.lines.len());
    assert!(logged.of("another").lines.is_empty());
}

fn plan_again(log: &mut Log) {
    for pass in log.lines.iter_mut().filter_map(|line| pass_of(line)) {
        pass.plan = written(&plan(&pass.desired, &pass.seen));
    }
}

fn pass_of(line: &mut Line) -> Option<&mut Pass> {
    match &mut line.event {
        Event::Pass(pass) => Some(pass),
        Event::Action(_) => None,
    }
}

/// Plants a fault.
type Plant<What> = fn(&mut What);

fn found(log: &Log) -> Vec<Rule> {
    check(log).violations.into_iter().map(|violation| violation.rule).collect()
}

/// The last reconciliation that has read which cluster it is.
fn last_recorded(log: &mut Log) -> &mut Pass {
    let mut passes = log.lines.iter_mut().filter_map(pass_of);
    passes.rfind(|pass| pass.seen.record.cluster_id.is_some()).unwrap()
}

#[test]
fn what_is_wrong_with_a_log_is_found() {
    let wrong: [(Rule, Plant<Log>); 7] = [
        (Rule::Unread, |log| log.unread.push("{}".to_owned())),
        (Rule::Lost, |log| drop(log.lines.remove(1))),
        (Rule::Doubled, |log| log.lines.push(log.lines[0].clone())),
        (Rule::PlannedOtherwise, |log| last_recorded(log).plan["wake"] = json!("Never")),
        (Rule::NotPlanned, |log| {
            let action = log.lines.iter_mut().find_map(|line| match &mut line.event {
                Event::Action(action) => Some(action),
                Event::Pass(_) => None,
            });
            action.unwrap().name = "member-remove".to_owned();
        }),
        (Rule::OtherCluster, |log| last_recorded(log).seen.record.cluster_id = Some(ClusterId(1))),
        (Rule::RecoveredTwice, |log| {
            let mut passes = log.lines.iter_mut().filter_map(pass_of);
            recovers(passes.next().unwrap(), RecoveryPhase::Done);
            recovers(passes.next().unwrap(), RecoveryPhase::Fencing);
        }),
    ];
    for (rule, plant) in wrong {
        let mut log = logged();
        plant(&mut log);
        assert!(found(&log).contains(&rule), "{rule:?}: {:?}", found(&log));
    }
}

/// A read that was answered with what was so before excuses the next reconciliation, and no later one.
#[test]
fn an_old_answer_excuses_one_pass() {
    let mut log = logged();
    last_recorded(&mut log).seen.record.cluster_id = Some(ClusterId(1));
    let is_pass = |place: &usize| matches!(log.lines[*place].event, Event::Pass(_));
    let passes: Vec<_> = (0..log.lines.len()).filter(is_pass).collect();
    let is_it = |place: &usize| matches!(&log.lines[*place].event, Event::Pass(pass) if pass.seen.record.cluster_id == Some(ClusterId(1)));
    let at = passes.iter().position(is_it).unwrap();
    for (stale, is_excused) in [(passes[at], true), (passes[at] - 1, true), (passes[at - 1], false)] {
        log.stale = vec![stale];
        assert_eq!(
            !found(&log).contains(&Rule::OtherCluster),
            is_excused,
            "before line {stale} of {passes:?}"
        );
    }
}

fn recovers(pass: &mut Pass, phase: RecoveryPhase) {
    let recovery = Recovery { token: "main-0".to_owned(), survivor: None, raft_index: 1, phase, pod: None };
    pass.seen.record = Record { recovery: Some(recovery), ..pass.seen.record.clone() };
}

/// A pass that was logged, with facts that are changed, and what is planned then.
fn pass_with(change: impl Fn(&mut Desired, &mut Observation) -> bool) -> Pass {
    let log = logged();
    let passes = log.lines.into_iter().filter_map(|line| match line.event {
        Event::Pass(pass) => Some(*pass),
        Event::Action(_) => None,
    });
    let mut changed = passes.filter_map(|mut pass| change(&mut pass.desired, &mut pass.seen).then_some(pass));
    let mut pass = changed.next().expect("a reconciliation with such facts was logged");
    pass.plan = written(&plan(&pass.desired, &pass.seen));
    pass
}

#[test]
fn what_is_carried_out_after_a_refusal_is_found() {
    let pass = pass_with(|_, seen| {
        let votes = seen.membership.is_known_and(|list| list.voters().count() == 2);
        if let Fact::Known(pods) = &mut seen.pods {
            for pod in pods.values_mut() {
                pod.role = None;
            }
        }
        votes
    });
    for (outcome, rules) in [("done", vec![]), ("refused", vec![Rule::NotPlanned])] {
        let mut lines = vec![json!({"run": "a", "number": 0, "event": {"Pass": pass}}).to_string()];
        for (number, outcome) in [(1, outcome), (2, "done")] {
            let action = json!({"pass": 0, "name": "label-pod", "outcome": outcome});
            lines.push(json!({"run": "a", "number": number, "event": {"Action": action}}).to_string());
        }
        assert_eq!(found(&Log::read(lines.iter().map(String::as_str))), rules);
    }
}

/// A pass with an action that was logged, and its plan.
fn with_effect(is_it: Which) -> (Desired, Observation, Plan) {
    let pass = pass_with(|desired, seen| plan(desired, seen).actions.iter().any(is_it));
    let plan = plan(&pass.desired, &pass.seen);
    (pass.desired, pass.seen, plan)
}

const fn adds(action: &Action) -> bool {
    matches!(action, Action::MemberAdd { .. })
}

const fn removes(action: &Action) -> bool {
    matches!(action, Action::MemberRemove { .. })
}

const fn deletes(action: &Action) -> bool {
    matches!(action, Action::DeleteVolume { membership: Some(_), .. })
}

const fn labels(action: &Action) -> bool {
    matches!(action, Action::LabelPod { .. })
}

/// Where a fault is planted: in the first reconciliation with such an action.
type Which = fn(&Action) -> bool;
type Facts = (Desired, Observation, Plan);

#[test]
fn what_is_wrong_with_a_plan_is_found() {
    let wrong: [(Rule, Which, Plant<Facts>); 9] = [
        (Rule::TwoAtOnce, adds, |(_, _, plan)| plan.actions.push(plan.actions[0].clone())),
        (Rule::Unguarded, labels, |(_, seen, _)| seen.pods = Fact::Unknown),
        (Rule::ChangedUnknown, adds, |(_, seen, _)| seen.membership = Fact::Unknown),
        (Rule::WorkedWhilePaused, adds, |(desired, _, _)| desired.is_paused = true),
        (Rule::LeaderRemoved, removes, |(_, seen, plan)| {
            for status in seen.statuses.values_mut() {
                if let (Fact::Known(status), [Action::MemberRemove { member, .. }]) =
                    (status, &plan.actions[..])
                {
                    status.leader = Some(*member);
                }
            }
            seen.record.operation.as_mut().unwrap().phase = Phase::Removing;
        }),
        (Rule::QuorumRemoved, removes, |(_, seen, _)| {
            seen.statuses.values_mut().for_each(|status| *status = Fact::Unknown);
        }),
        (Rule::MembersVolume, deletes, |(_, _, plan)| {
            if let Action::DeleteVolume { membership, .. } = &mut plan.actions[0] {
                *membership = None;
            }
        }),
        (Rule::AvailableUnseen, labels, |(_, seen, _)| seen.membership = Fact::Unknown),
        (Rule::TwoLearners, adds, |(_, seen, _)| {
            if let Fact::Known(list) = &mut seen.membership {
                list.members[0].is_learner = true;
                list.members.push(list.members[0]);
            }
        }),
    ];
    for (rule, action, plant) in wrong {
        let mut facts = with_effect(action);
        assert_eq!(rules::broken(&facts.0, &facts.1, &facts.2), []);
        plant(&mut facts);
        let found = rules::broken(&facts.0, &facts.1, &facts.2);
        assert!(found.contains(&rule), "{rule:?}: {found:?}");
    }
}

#[test]
fn a_spec_that_is_called_reached_too_early_is_found() {
    let pass = pass_with(|desired, seen| plan(desired, seen).summary.is_reached);
    let plan = plan(&pass.desired, &pass.seen);
    assert_eq!(rules::broken(&pass.desired, &pass.seen, &plan), []);
    let more = Desired { replicas: pass.desired.replicas + 1, ..pass.desired };
    assert_eq!(rules::broken(&more, &pass.seen, &plan), [Rule::ReachedTooEarly]);
}

/// As a container runtime keeps it: each write with its time and stream, the long ones in parts.
#[test]
fn the_log_that_a_node_keeps_is_read_as_what_was_logged() {
    let logged = logged();
    let kept: String = logged
        .lines
        .iter()
        .enumerate()
        .flat_map(|(at, line)| {
            let line = serde_json::to_string(line).unwrap();
            let time = format!("2026-11-22T08:00:{at:09}Z");
            let said =
                json!({"timestamp": time, "level": "TRACE", "line": line, "target": TARGET}).to_string();
            let (one, other) = said.split_at(said.len() / 2);
            [("stderr P", one), ("stdout F", "{}"), ("stderr F", other)]
                .map(|(tag, part)| format!("{time} {tag} {part}\n"))
        })
        .collect();
    // Files are read in any order.
    let middle = kept.match_indices("stderr P").nth(logged.lines.len() / 2).unwrap().0;
    let (one, other) = kept.split_at(kept[..middle].rfind('\n').unwrap() + 1);
    let read = Log::read([other, one]);
    assert_eq!(read.written(), logged.written());
    assert_eq!(read.broken, 0);
}

#[test]
fn a_line_that_broke_is_missed_by_its_number_and_forgiven() {
    let text = logged().written();
    let (first, rest) = text.split_once('\n').unwrap();
    let broken = format!("{}{rest}", &first[..first.len() / 2]);
    let report = check(&Log::read([broken.as_str()]));
    assert_eq!((report.lost, report.violations.len()), (2, 0), "{report}: {:?}", report.violations);
}
