//! What a run does in the database, and what it reports.

use std::rc::Rc;

use gatehouse::kinds::databasemigration::assignment::Mode;
use gatehouse::kinds::databasemigration::result::{
    Blocked, BlockedReason, Class, InDoubt, LastError, Outcome, Plan, RunResult, Server,
};

use crate::database::{Course, Database, Decision, Row, UNTRANSACTED, answer, down, number, sum};
use crate::rules::Rule;
use crate::text::{Text, Told};
use crate::world::{Ended, Job, World};

/// What a run has to report so far.
struct Report<'a> {
    database: &'a Database,
    told: &'a Told,
}

impl Report<'_> {
    fn of(&self, outcome: Outcome) -> RunResult {
        let mut result = RunResult::of("r", outcome);
        result.server = Some(Server { version: "17".to_owned() });
        result.applied_count = Some(u32::try_from(self.database.applied()).expect("a few"));
        result
    }

    /// The same of a run that has come to know what is pending.
    fn planned(&self, outcome: Outcome, pending: &[u8]) -> RunResult {
        let plan = Plan {
            hash: self.told.hash.get().to_string(),
            pending: pending.iter().map(ToString::to_string).collect(),
            pending_count: u32::try_from(pending.len()).expect("a few"),
            ..Plan::default()
        };
        RunResult { plan: Some(plan), ..self.of(outcome) }
    }

    fn blocked(&self, reason: BlockedReason, id: u8) -> RunResult {
        let (id, message) = (Some(id.to_string()), "it contradicts the scripts".to_owned());
        let blocked = Blocked { reason, id, expected: None, found: None, message };
        RunResult { blocked: Some(blocked), ..self.of(Outcome::Blocked) }
    }
}

fn in_doubt(id: u8, run: i64, result: RunResult) -> RunResult {
    let in_doubt = InDoubt { id: id.to_string(), statement: 1, run: Some(format!("u1.{run}")) };
    RunResult { outcome: Outcome::InDoubt, in_doubt: Some(in_doubt), ..result }
}

fn failed(class: Class, result: RunResult) -> RunResult {
    let message = "it failed".to_owned();
    let error = LastError { id: None, statement: None, sql_state: None, class, message };
    RunResult { outcome: Outcome::Failed, last_error: Some(error), ..result }
}

#[expect(clippy::unnecessary_wraps, reason = "what a run ends with is an option everywhere in this file")]
fn said(result: &RunResult) -> Option<Ended> {
    Some(Ended::Said(Text::of(&serde_json::to_string(result).expect("JSON"))))
}

impl World {
    /// What a run does, and how it ends; none where it cannot go so.
    pub fn work(&mut self, job: &Job, course: Course) -> Option<Ended> {
        let Some(told) = job.told.map(Text::told) else {
            // It does not start without what it reads, and in the calm its time passes.
            return matches!(course, Course::Late | Course::Whole).then_some(Ended::Late);
        };
        if course == Course::Late {
            return Some(Ended::Late);
        }
        if course == Course::Unreached {
            return said(&failed(Class::Connection, RunResult::of("r", Outcome::Failed)));
        }
        if told.assignment.mode != Mode::Plan
            && let Some(refused) = self.refused(&told)
        {
            return said(&refused).filter(|_| course == Course::Whole);
        }
        let report = Report { database: &self.database, told: &told };
        // What takes back does not mind what was edited, unless something is in doubt.
        let is_undoubted = told.assignment.mode == Mode::Revert && self.database.doubt().is_none();
        let decision =
            if is_undoubted { Decision::Work(Vec::new()) } else { self.database.decide(&told.assignment) };
        let pending = match decision {
            _ if course == Course::Killed(0) => return Some(Ended::Silent),
            Decision::Work(pending) => pending,
            _ if course != Course::Whole => return None,
            Decision::InDoubt(id, run) => return said(&in_doubt(id, run, report.of(Outcome::InDoubt))),
            Decision::Blocked(reason, id) => return said(&report.blocked(reason, id)),
        };
        match told.assignment.mode {
            Mode::Status | Mode::Plan => {
                said(&report.planned(Outcome::Planned, &pending)).filter(|_| course == Course::Whole)
            }
            Mode::Rehearse => match course {
                Course::Fails => said(&failed(Class::Syntax, report.planned(Outcome::Failed, &pending))),
                Course::Whole if pending.contains(&UNTRANSACTED) => {
                    said(&report.blocked(BlockedReason::NotRehearsable, UNTRANSACTED))
                }
                Course::Whole => said(&report.planned(Outcome::Rehearsed, &pending)),
                _ => None,
            },
            Mode::Apply => self.applies(job, &told, &pending, course),
            Mode::Revert => self.reverts(job, &told, course),
        }
    }

    /// What a run says that has not the plan that was approved.
    fn refused(&mut self, told: &Rc<Told>) -> Option<RunResult> {
        let approved = told.assignment.approved_plan_hash.as_deref().map(Text::of);
        if self.object.approval.is_some() && (approved.is_none() || !self.approved.contains(&told.hash)) {
            self.breaks(Rule::Unapproved);
        }
        if approved.is_none_or(|approved| approved == told.hash) {
            return None;
        }
        self.breaks(Rule::OtherPlan);
        let mut result = Report { database: &self.database, told }.blocked(BlockedReason::PlanChanged, 0);
        result.server = None;
        Some(result)
    }

    /// An answer has to be about the doubt that it settles.
    fn uses_answer(&mut self, job: &Job, told: &Told) {
        let Some((id, doubt)) = self.database.doubt() else { return };
        let is_settled = answer(&told.assignment, id, doubt).is_some();
        let Some(answer) = job.answer.filter(|_| is_settled) else { return };
        self.is_misled |= answer.is_slip;
        if answer.about != doubt.about {
            self.breaks(Rule::AnswerUsedTwice);
        }
    }

    fn judge_effects(&mut self) {
        let is_twice = self.database.effects.iter().any(|effect| !(0..=1).contains(effect));
        let is_counted = |row: &Row| row.doubt.is_none();
        let is_skipped = self
            .database
            .rows
            .iter()
            .any(|row| is_counted(row) && self.database.effects[usize::from(row.id)] == 0);
        if (is_twice || is_skipped) && !self.is_misled {
            self.breaks(if is_twice { Rule::CarriedOutTwice } else { Rule::NeverCarriedOut });
        }
    }

    fn applies(&mut self, job: &Job, told: &Told, pending: &[u8], course: Course) -> Option<Ended> {
        let most = match course {
            Course::Whole => pending.len(),
            Course::Killed(most) | Course::Interrupted(most) if most <= pending.len() => most,
            Course::Doubt { .. } => pending.iter().position(|id| *id == UNTRANSACTED)?,
            Course::Fails if !pending.is_empty() => 0,
            _ => return None,
        };
        self.uses_answer(job, told);
        if !pending.is_empty() && self.restored == Some(self.asked()) {
            self.breaks(Rule::AppliedUnasked);
        }
        if !pending.is_empty() && self.missing.take() == Some(self.object.retry) {
            self.breaks(Rule::AppliedUnasked);
        }
        self.restored = None;
        let script = |id: u8| {
            let script = told.assignment.scripts.iter().find(|script| number(&script.id) == id);
            script.expect("one of the scripts")
        };
        self.database.settle(&told.assignment);
        for id in &pending[..most] {
            self.database.apply(script(*id));
        }
        if let Course::Doubt { has_landed, .. } = course {
            let script = script(UNTRANSACTED);
            let row = Row { id: UNTRANSACTED, sum: sum(script), down: down(script), doubt: None };
            self.database.leave(row, job.number, has_landed, false);
        }
        self.judge_effects();
        let report = Report { database: &self.database, told };
        let outcome = if course == Course::Whole { Outcome::Succeeded } else { Outcome::Failed };
        let mut result = report.planned(outcome, pending);
        result.applied_now = u32::try_from(most).expect("a few");
        match course {
            Course::Whole => said(&result),
            Course::Doubt { is_told: true, .. } => said(&in_doubt(UNTRANSACTED, job.number, result)),
            Course::Fails => said(&failed(Class::Syntax, result)),
            Course::Interrupted(_) => said(&failed(Class::Interrupted, result)),
            _ => Some(Ended::Silent),
        }
    }

    fn reverts(&mut self, job: &Job, told: &Told, course: Course) -> Option<Ended> {
        let mut after = self.database.clone();
        after.settle(&told.assignment);
        let own: Vec<Row> = after.rows.iter().rev().filter(|row| row.doubt.is_none()).copied().collect();
        let (most, left) = match course {
            Course::Whole => (own.len(), None),
            Course::Killed(most) | Course::Interrupted(most) if most <= own.len() => (most, None),
            Course::Doubt { .. } => {
                let at = own.iter().position(|row| row.id == UNTRANSACTED)?;
                (at, Some(own[at]))
            }
            Course::Fails if !own.is_empty() => (0, None),
            _ => return None,
        };
        self.uses_answer(job, told);
        self.database = after;
        for row in &own[..most] {
            self.judge_revert(told, *row);
            self.database.take_back(row.id);
        }
        if let (Course::Doubt { has_landed, .. }, Some(row)) = (course, left) {
            self.database.leave(row, job.number, has_landed, true);
        }
        self.judge_effects();
        let report = Report { database: &self.database, told };
        match course {
            Course::Whole => said(&report.of(Outcome::Reverted)),
            Course::Doubt { is_told: true, .. } => {
                said(&in_doubt(UNTRANSACTED, job.number, report.of(Outcome::InDoubt)))
            }
            Course::Fails => said(&failed(Class::Syntax, report.of(Outcome::Failed))),
            Course::Interrupted(_) => said(&failed(Class::Interrupted, report.of(Outcome::Failed))),
            _ => Some(Ended::Silent),
        }
    }
}
