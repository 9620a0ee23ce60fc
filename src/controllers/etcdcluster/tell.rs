//! What is told of a pass beside its status: events, each when it begins, and numbers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt as _;

use super::ages::Recall;
use super::apply::Hands;
use super::certificates::Standing;
use super::observation::{Desired, Observation};
use super::plan::Plan;
use super::trace::{self, Pass, Told};
use super::{Operator, metrics, status, uid};
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
        state: &mut Recall,
    ) -> Told<'_> {
        if !trace::is_on() {
            return self.trace.nothing();
        }
        let facts = trace::digest(desired, seen);
        let before = state.traced.replace(facts);
        if plan.effects.is_empty() && before == Some(facts) {
            return self.trace.nothing();
        }
        let pass = Pass { object: &named(cluster), uid: uid(cluster), desired, seen, plan };
        self.trace.pass(&pass)
    }

    /// Shows the numbers of a pass.
    pub fn show(
        &self,
        hands: Hands<'_>,
        plan: &Plan,
        certificates: &BTreeMap<String, Timestamp>,
        state: &mut Recall,
        now: Timestamp,
    ) {
        let seen = &hands.sight.observation;
        state.tally.look(seen, plan, now);
        let facts = metrics::Facts {
            name: &hands.cluster.name_any(),
            desired: hands.desired,
            seen,
            plan,
            status: hands.status,
            certificates,
            tally: &state.tally,
            audited: state.audit.found_at(),
        };
        self.board.show(&hands.cluster.metadata, metrics::of(&facts));
    }
}

/// Tells once what there is to say of the certificates.
pub async fn of_certificates(hands: Hands<'_>, standing: &Standing, state: &mut Recall) {
    let words = standing.words.clone();
    let is_news = std::mem::replace(&mut state.certificates, words.clone()) != words;
    if let Some(text) = words.filter(|_| is_news) {
        let (warning, reason, action) = (standing.is_problem, "CertificateRotation", "KeepCertificates");
        hands.tell(Note { warning, reason, action, text }).await;
    }
}

/// Tells what the status says that `previous`, which it follows, did not.
pub async fn news(hands: Hands<'_>, previous: &EtcdClusterStatus, state: &mut Recall) {
    let (name, seen) = (hands.cluster.name_any(), &hands.sight.observation);
    let mut notes = status::alarms(&name, previous, seen, &mut state.alarms);
    notes.extend(status::news(previous, hands.status, &mut state.degraded));
    for note in notes {
        hands.tell(note).await;
    }
}
