//! What the runner does to the database, as far as the plan knows it.

use super::*;

impl World {
    pub(super) fn carry_out(&mut self, told: &Assignment, course: Course) -> RunResult {
        if !course.is_reached {
            let mut result = said(result::Outcome::Failed, 0, &[]);
            failure(Class::Connection)(&mut result);
            (result.server, result.plan) = (None, None);
            return result;
        }
        let mut result = self.worked(told, course);
        result.applied_count = u32::try_from(self.history.len()).ok();
        if let Some(plan) = &mut result.plan {
            plan.hash = hash(told);
        }
        result
    }

    fn worked(&mut self, told: &Assignment, course: Course) -> RunResult {
        let known = |id: &str| self.history.iter().any(|row| row.id == id);
        let pending = || told.scripts.iter().filter(|script| !known(&script.id));
        let ids: Vec<_> = pending().map(|script| script.id.as_str()).collect();
        let changed = self.history.iter().find(|row| {
            !row.is_in_doubt
                && told
                    .scripts
                    .iter()
                    .any(|script| script.id == row.id && script.planned.as_ref() != Some(&row.sum))
        });
        if let Some(row) = changed {
            let mut result = said(result::Outcome::Blocked, 0, &ids);
            let message = "edited".to_owned();
            let (reason, id) = (result::BlockedReason::ChecksumMismatch, Some(row.id.clone()));
            result.blocked = Some(result::Blocked { reason, id, expected: None, found: None, message });
            return result;
        }
        if told.mode == Mode::Plan {
            return said(result::Outcome::Planned, 0, &ids);
        }
        if self.needs_approval {
            let approved = told.approved_plan_hash.as_ref().expect("it is compared by the run");
            assert_eq!(*approved, hash(told), "the run would refuse it");
            assert!(self.approved.contains(approved), "a run without approval");
        }
        if told.mode == Mode::Rehearse {
            return said(result::Outcome::Rehearsed, 0, &ids);
        }
        self.newest = self.newest.max(number(told));
        if let Some(at) = self.history.iter().position(|row| row.is_in_doubt) {
            let id = self.history[at].id.clone();
            match told.resolve.as_ref().filter(|resolve| resolve.id == id) {
                None => {
                    let mut result = said(result::Outcome::InDoubt, 0, &ids);
                    result.in_doubt =
                        Some(result::InDoubt { id, statement: 1, run: Some(self.history[at].run.clone()) });
                    return result;
                }
                Some(resolve) => {
                    let is_examined = self.examined.as_ref() == Some(&self.history[at].run);
                    assert!(is_examined, "a doubt is settled without a look");
                    match resolve.resolution {
                        Resolution::Applied => self.history[at].is_in_doubt = false,
                        Resolution::Retry => drop(self.history.remove(at)),
                    }
                }
            }
        }
        if told.mode == Mode::Revert {
            self.history.clear();
            return said(result::Outcome::Reverted, 0, &[]);
        }
        self.applied(told, course)
    }

    fn applied(&mut self, told: &Assignment, course: Course) -> RunResult {
        let known = |id: &str| self.history.iter().any(|row| row.id == id);
        let pending: Vec<_> = told.scripts.iter().filter(|script| !known(&script.id)).collect();
        let ids: Vec<_> = pending.iter().map(|script| script.id.as_str()).collect();
        let row = |at: usize, is_in_doubt| Row {
            id: pending[at].id.clone(),
            sum: pending[at].planned.clone().unwrap(),
            run: told.run.uid.clone(),
            is_in_doubt,
        };
        let count = pending.len().min(course.most);
        let mut rows: Vec<_> = (0..count).map(|at| row(at, false)).collect();
        if course.is_killed && course.leaves_doubt && count < pending.len() {
            rows.push(row(count, true));
        }
        let is_done = count == pending.len();
        let outcome = if is_done { result::Outcome::Succeeded } else { result::Outcome::Failed };
        let mut result = said(outcome, 0, &ids);
        result.applied_now = u32::try_from(count).unwrap();
        if !is_done {
            failure(Class::Connection)(&mut result);
        }
        self.history.extend(rows);
        result
    }
}
