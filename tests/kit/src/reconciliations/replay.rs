//! Plans the reconciliations of a log again, and holds what comes out against the log and the rules.
//!
//! A fail point may answer one read of an operator with what was so before. The next reconciliation of that operator
//! may then see an older record of its cluster than the reconciliation before it: in that one reconciliation, and in no
//! other, [`STALE`] is not held.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use gatehouse::controllers::action::Action as _;
use gatehouse::kinds::etcdcluster::plan::{Plan, plan};
use serde_json::Value;

use super::log::{Action, Event, Line, Log, Pass};
use super::rules::{self, Rule};
use super::sequence::Courses;

/// What an older record of the cluster breaks: it has less in it than the one before.
const STALE: [Rule; 2] = [Rule::OtherCluster, Rule::RecoveredTwice];

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The line, and what speaks against it.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.rule, self.text)
    }
}

/// What is in a log, and what the check of it found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Passes that were planned again.
    pub passes: usize,
    /// Passes that had something to do.
    pub busy: usize,
    /// Effects that were carried out, or not, by name and outcome.
    pub actions: BTreeMap<(String, String), usize>,
    /// Clusters that were worked.
    pub clusters: usize,
    /// Operators that worked them.
    pub runs: usize,
    /// Lines that are missing.
    pub lost: usize,
    /// Broken rules.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passes, busy, clusters, runs, lost, violations, .. } = self;
        let actions: usize = self.actions.values().sum();
        let broken = violations.len();
        write!(
            formatter,
            "{passes} passes over {clusters} clusters by {runs} operators, {busy} with something to do, {actions} actions, \
             {lost} lines lost: {broken} rules broken"
        )
    }
}

/// Plans all reconciliations again, and holds them against the rules.
#[must_use]
pub fn check(log: &Log) -> Report {
    let mut check = Check::default();
    for said in &log.unread {
        let text = said.chars().take(500).collect();
        check.report.violations.push(Violation { rule: Rule::Unread, text });
    }
    for (place, line) in log.lines.iter().enumerate() {
        check.has_stale |= log.stale.contains(&place);
        check.line(line);
    }
    check.ended(log.broken)
}

#[derive(Default)]
struct Check {
    report: Report,
    courses: Courses,
    runs: BTreeMap<String, Run>,
    /// Whether a read was answered with what was so before, since the last reconciliation.
    has_stale: bool,
}

/// What one operator logged.
#[derive(Default)]
struct Run {
    numbers: BTreeSet<u64>,
    /// Actions whose outcome is still to come, and whether those after them need them, by the number of the
    /// reconciliation.
    planned: BTreeMap<u64, VecDeque<(&'static str, bool)>>,
}

impl Check {
    fn line(&mut self, line: &Line) {
        let is_new = self.runs.entry(line.run.clone()).or_default().numbers.insert(line.number);
        if !is_new {
            self.fault(line, Rule::Doubled, "it is there before");
        }
        match &line.event {
            Event::Pass(pass) => self.pass(line, pass),
            Event::Action(action) => self.action(line, action),
        }
    }

    fn pass(&mut self, line: &Line, pass: &Pass) {
        let again = plan(&pass.desired, &pass.seen);
        self.report.passes += 1;
        self.report.busy += usize::from(!again.actions.is_empty());
        if let Some(difference) = difference(&pass.plan, &written(&again), "") {
            self.fault(line, Rule::PlannedOtherwise, &format!("{}: {difference}", pass.object));
        }
        let mut broken = rules::broken(&pass.desired, &pass.seen, &again);
        let is_excused = std::mem::take(&mut self.has_stale);
        let of_course = self.courses.go_on(pass);
        broken.extend(of_course.into_iter().filter(|rule| !(is_excused && STALE.contains(rule))));
        for rule in broken {
            self.fault(line, rule, &format!("{}: {:?}", pass.object, again.actions));
        }
        let names = again.actions.iter().map(|action| (action.name(), action.holds_up_others())).collect();
        self.runs.entry(line.run.clone()).or_default().planned.insert(line.number, names);
    }

    fn action(&mut self, line: &Line, action: &Action) {
        let key = (action.name.clone(), action.outcome.clone());
        *self.report.actions.entry(key).or_default() += 1;
        let run = self.runs.entry(line.run.clone()).or_default();
        if !run.numbers.contains(&action.pass) {
            // It is missed by its number.
            return;
        }
        let next = run.planned.get_mut(&action.pass).and_then(VecDeque::pop_front);
        if action.outcome != "done" && next.is_none_or(|(_, holds_up_others)| holds_up_others) {
            // The rest is left to the next reconciliation.
            run.planned.remove(&action.pass);
        }
        let next = next.map(|(name, _)| name);
        if next != Some(action.name.as_str()) {
            let text = format!("{} of line {}, where {next:?} comes next", action.name, action.pass);
            self.fault(line, Rule::NotPlanned, &text);
        }
    }

    fn ended(mut self, broken: usize) -> Report {
        let missing: Vec<_> = self
            .runs
            .iter()
            .flat_map(|(run, logged)| {
                let last = logged.numbers.last().copied().unwrap_or_default();
                (0..last).filter(|number| !logged.numbers.contains(number)).map(move |number| (run, number))
            })
            .collect();
        self.report.lost = missing.len();
        // Two that ran together are one that broke.
        if missing.len() > 2 * broken {
            let text = format!("lines are missing, and only {broken} broke: {missing:?}");
            self.report.violations.push(Violation { rule: Rule::Lost, text });
        }
        self.report.runs = self.runs.len();
        self.report.clusters = self.courses.count();
        self.report
    }

    fn fault(&mut self, line: &Line, rule: Rule, why: &str) {
        let text = format!("line {} of {}: {why}", line.number, line.run);
        self.report.violations.push(Violation { rule, text });
    }
}

/// A plan as a line has it.
#[must_use]
pub fn written(plan: &Plan) -> Value {
    serde_json::to_value(plan).expect("a plan is written")
}

/// The first place where two values differ.
fn difference(logged: &Value, now: &Value, place: &str) -> Option<String> {
    match (logged, now) {
        (Value::Object(one), Value::Object(other)) => {
            let fields: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            fields
                .into_iter()
                .find_map(|field| difference(&logged[field], &now[field], &format!("{place}.{field}")))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.into_iter().find_map(|(at, (one, other))| difference(one, other, &format!("{place}[{at}]")))
        }
        (one, other) if one == other => None,
        (one, other) => Some(format!("{place} was {one} and is {other}")),
    }
}
