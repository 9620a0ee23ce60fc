//! What is told of a pass beside its status: events, each when it begins, and numbers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt as _;

use super::apply::Hands;
use super::certificates::Standing;
use super::observation::{Desired, Observation};
use super::plan::Plan;
use super::trace::{self, Pass, Told};
use super::{Operator, numbers, status, uid};
use crate::api::etcdcluster::v1::{EtcdCluster, EtcdClusterStatus};
use crate::controllers::named;
use crate::controllers::step::Note;

impl Operator {
    /// Tells what a pass has seen and plans, to whoever listens.
    pub fn tell_plan(
        &self,
        cluster: &EtcdCluster,
        desired: &Desired,
        seen: &Observation,
        plan: &Plan,
    ) -> Told<'_> {
        if !trace::is_on() {
            return self.trace.nothing();
        }
        let facts = trace::digest(desired, seen);
        let before = self.memory.update(uid(cluster), |recall| recall.traced.replace(facts));
        if plan.effects.is_empty() && before == Some(facts) {
            return self.trace.nothing();
        }
        let pass = Pass { object: &named(cluster), uid: uid(cluster), desired, seen, plan };
        self.trace.pass(&pass)
    }

    /// Tells once what there is to say of the certificates.
    pub async fn tell_of_certificates(&self, hands: Hands<'_>, standing: &Standing) {
        let warning = standing.is_problem;
        let words = standing.words.clone();
        let is_news = self.memory.update(uid(hands.cluster), |recall| {
            std::mem::replace(&mut recall.certificates, words.clone()) != words
        });
        if let Some(text) = words.filter(|_| is_news) {
            let (reason, action) = ("Certificates", "KeepCertificates");
            hands.tell(Note { warning, reason, action, text }).await;
        }
    }

    /// Tells what the status says that `previous`, which it follows, did not.
    pub async fn tell_news(&self, hands: Hands<'_>, previous: &EtcdClusterStatus) {
        let (name, seen) = (hands.cluster.name_any(), &hands.sight.observation);
        let notes = self.memory.update(uid(hands.cluster), |recall| {
            let mut notes = status::alarms(&name, previous, seen, &mut recall.alarms);
            notes.extend(status::news(previous, hands.status, &mut recall.degraded));
            notes
        });
        for note in notes {
            hands.tell(note).await;
        }
    }

    /// Shows the numbers of a pass.
    pub fn show(
        &self,
        hands: Hands<'_>,
        plan: &Plan,
        certificates: &BTreeMap<String, Timestamp>,
        now: Timestamp,
    ) {
        let seen = &hands.sight.observation;
        let (tally, audited) = self.memory.update(uid(hands.cluster), |recall| {
            recall.tally.look(seen, plan, now);
            (recall.tally.clone(), recall.audit.found_at())
        });
        let facts = numbers::Facts {
            name: &hands.cluster.name_any(),
            desired: hands.desired,
            seen,
            plan,
            status: hands.status,
            certificates,
            tally: &tally,
            audited,
        };
        self.board.show(&hands.cluster.metadata, numbers::of(&facts));
    }
}
