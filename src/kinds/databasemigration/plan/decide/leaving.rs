//! Decides what to do for an object that is being deleted and has no run. Pure.
//!
//! Guarantees: nothing is taken back by texts of which it is not known that they were applied, unless what the scripts
//! come from is there and says so; nor by scripts that need an approval and have none.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::{Situation, Start, Texts, Verdict, View, Wanted, assignment, hash_of_plan, key};
use crate::kinds::databasemigration::api::status::Reason;
use crate::kinds::databasemigration::api::v1::{FinishedRun, Outcome, Phase};
use crate::kinds::databasemigration::observation::Purpose;

impl View<'_> {
    /// What is done for an object that is being deleted, and has no run.
    pub(super) fn leaving(&self) -> Situation {
        if !self.reverts() {
            return Situation::Leaves;
        }
        // What the scripts came from may have been deleted along with the object.
        let (applied, texts) = match self.texts(Phase::Failed) {
            Ok(texts) => (None, texts),
            Err(situation) => match self.applied() {
                Ok(Some((applied, texts))) => (Some(applied), texts),
                Ok(None) => return situation.with_way_out(),
                Err(situation) => return *situation,
            },
        };
        if let Some(hash) = self.unapproved(&texts) {
            let message = format!(
                "the down scripts are those of plan {hash}, which has to be approved: set spec.approval.planHash to it"
            );
            let verdict = Verdict::new(Phase::AwaitingApproval, Reason::AwaitingApproval, message);
            return Situation::Waits(verdict, None).with_way_out();
        }
        let approved = self.spec.approval.clone();
        let wanted = Wanted {
            purpose: Purpose::Revert,
            key: key(self.spec, &texts, Purpose::Revert, approved.as_deref()),
            approved,
        };
        match self.last(&wanted) {
            Some(FinishedRun { outcome: Outcome::Done, .. }) => Situation::Leaves,
            Some(last) => self.after(last, wanted, texts).with_way_out(),
            None => Situation::Start(Box::new(Start { applied, ..self.run(wanted, texts, 1, None) })),
        }
    }

    /// The texts of what may be applied, as runs had them. Those of a run that has ended only now are read next, and where
    /// several differ, the object waits for a person.
    fn applied(&self) -> Result<Option<(String, Vec<Texts>)>, Box<Situation>> {
        let names: BTreeSet<_> = self.observed.maybe_applied(self.status).collect();
        if names.iter().any(|name| !self.observed.kept.contains_key(*name)) {
            let verdict = Verdict::new(Phase::Reverting, Reason::Reverting, "what was applied is read");
            let at = self.observed.now.checked_add(SignedDuration::from_secs(1)).ok();
            return Err(Box::new(Situation::Waits(verdict, at)));
        }
        let mut all = names.into_iter().filter_map(|name| self.observed.kept.get_key_value(name));
        let Some((first, data)) = all.next() else { return Ok(None) };
        let texts = assignment::kept(self.spec, data);
        if let Some((other, _)) = all.find(|(_, data)| assignment::kept(self.spec, data) != texts) {
            let message = format!(
                "it is not known whether the scripts of ConfigMap {first} or those of ConfigMap {other} were applied, and \
                 what they came from is gone: put it back"
            );
            let verdict = Verdict::new(Phase::Failed, Reason::ScriptNotFound, message);
            return Err(Box::new(Situation::Waits(verdict, None).with_way_out()));
        }
        Ok(texts.map(|texts| (first.clone(), texts)))
    }

    /// The hash of the plan of these texts, where it needs an approval that it does not have. A plan with a text from a
    /// Secret passes: its run computes the hash and compares it.
    fn unapproved(&self, texts: &[Texts]) -> Option<String> {
        let approved = self.spec.approval.as_ref()?;
        match hash_of_plan(self.spec, texts) {
            Some(hash) => (hash != *approved).then_some(hash),
            None => approved.is_empty().then(|| "that a run with mode Plan has found".to_owned()),
        }
    }
}
