//! Messages of conditions about a lost quorum and its recovery. Pure.

use super::super::messages;
use super::Facts;
use crate::kinds::etcdcluster::api::recovery::{self, Survivor};
use crate::kinds::etcdcluster::api::status::Reason;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Ordinal, Purpose};
use crate::kinds::etcdcluster::plan::{has_lost_data, is_on_its_way, may_run, survivor, suspects};

impl Facts<'_> {
    pub(super) fn recovering(&self) -> String {
        let Some(recovery) = &self.plan.record.recovery else {
            return "a lost quorum is being recovered".to_owned();
        };
        messages::recovery(self.name, recovery, self.unfenced(recovery.survivor).as_deref())
    }

    /// Whose pods have to end before the survivor goes on alone.
    fn unfenced(&self, survivor: Option<Ordinal>) -> Option<String> {
        let others = self.seen.pods.elements();
        let others = others.filter(|(at, pod)| Some(*at) != survivor && may_run(self.seen, *at, pod));
        let left: Vec<_> = others.map(|(ordinal, _)| self.with_hindrance(ordinal)).collect();
        (!left.is_empty()).then(|| messages::listed(&left))
    }

    /// What a lost quorum is brought back by.
    pub(super) fn way_back(&self) -> String {
        let asked = self.spec.recovery.as_ref();
        let recorded = self.plan.record.recovery.as_ref();
        let request = asked.map(|text| (text, recovery::read(text, self.name)));
        let about = recovery::ANNOTATION;
        let members = &self.plan.summary.members;
        let are_lost = members.iter().all(|member| has_lost_data(self.seen, member.ordinal));
        match request {
            _ if recorded.is_some_and(|recovery| recovery.phase.is_active()) => self.recovering(),
            _ if are_lost && !members.is_empty() => {
                let restore = messages::restore(self.backup);
                format!(
                    "the quorum is lost since {}, and the data of all members are lost: {restore}",
                    self.lost_since
                )
            }
            _ if self.spec.storage.is_in_memory => {
                "the quorum is back once a majority answers: data in memory end with their pods, and no recovery can be \
                 made of them"
                    .to_owned()
            }
            Some((text, _)) if recorded.is_some_and(|recovery| recovery.token == *text) => {
                format!("the request in annotation {about} was acted on: another text is another request")
            }
            Some((_, Err(detail))) => format!("annotation {about} {detail}"),
            Some((_, Ok(asked))) => self.awaited_survivor(asked),
            None => format!(
                "no member is removed and no volume is wiped until they come back, or a recovery is asked for by annotation \
                 {about}"
            ),
        }
    }

    /// What a recovery that is asked for waits for.
    fn awaited_survivor(&self, asked: Survivor) -> String {
        let about = recovery::ANNOTATION;
        let named = match asked {
            Survivor::Member(number) => Some(Ordinal(number)),
            Survivor::Furthest => None,
        };
        let chosen = named.or_else(|| survivor(self.seen, None).map(|(ordinal, _)| ordinal));
        let mut problems = self.plan.summary.problems.iter();
        let is_held = problems.any(|one| one.reason == Reason::ClaimTerminating && one.ordinal == chosen);
        if let Some(held) = chosen.filter(|_| is_held) {
            let held = names::member(self.name, held);
            return format!(
                "the recovery that is asked for does not begin from {held}, whose claim is being deleted: its data would \
                 end with its pod; annotation {about} may name another member to go on from"
            );
        }
        if let Some(named) = named {
            let named = names::member(self.name, named);
            return format!("the recovery that is asked for waits until {named} answers as a voter");
        }
        let suspects: Vec<_> = suspects(self.seen).collect();
        match self.on_their_way().as_slice() {
            [] if chosen.is_none() && !suspects.is_empty() => format!(
                "the recovery that is asked for does not choose {}, since the data of members differ, or may: annotation \
                 {about} may name the member to go on from",
                self.names(&suspects)
            ),
            [] => "the recovery that is asked for begins once a voter answers".to_owned(),
            waited_for => format!(
                "the recovery that is asked for waits for {}, which may have more of the data: annotation {about} may \
                 name the member to go on from instead",
                messages::listed(waited_for)
            ),
        }
    }

    /// The members that do not answer and may yet, by themselves.
    fn on_their_way(&self) -> Vec<String> {
        let told = self.seen.entries().filter(|(_, entry)| entry.purpose == Purpose::Run);
        let silent = told.filter(|(one, entry)| self.seen.answer_of(*one, entry.member).is_none());
        let silent = silent.map(|(ordinal, _)| ordinal);
        let coming = silent.filter(|one| self.seen.pod(*one).found().is_some_and(is_on_its_way));
        coming.map(|ordinal| self.with_hindrance(ordinal)).collect()
    }
}
