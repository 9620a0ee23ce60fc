//! When the voters' data are compared, and what follows from the result. Pure.
//!
//! ```text
//! begun ──── within an hour ──▶
//! equal ────────────────────────────── an hour ──▶ again
//! different ─ the next reconciliation ─▶ different, the same ones ─▶ said ─ ten minutes ─▶ again
//! nothing told ──────── ten minutes ──▶ again
//! ```
//!
//! Guarantees: a difference is reported only where two comparisons in a row found it; a result holds for the list of
//! members that it was found in and for no other, but that data differ holds until they have been compared again: by then
//! it is not known whose. A process that has just begun has found nothing, and takes up so much from the status.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::kinds::etcdcluster::observation::{Age, Audit, Fact, MemberId, Ordinal, Reach};

/// How long after data were found equal they are compared again. To hash them a member reads all of them, and etcd
/// compares by itself what it hashes at each compaction.
const EQUAL: SignedDuration = SignedDuration::from_hours(1);

/// The same where something is to be found out: whether data still differ, or what could not be compared.
const UNCLEAR: SignedDuration = SignedDuration::from_mins(10);

/// The same while an alarm says that data differ: etcd takes no writes.
const ALARMED: SignedDuration = SignedDuration::from_secs(30);

/// For how long a comparison, or a try at one, counts for pods that are to be restarted.
const RECENT: SignedDuration = SignedDuration::from_mins(10);

/// Data differ, and it is not known whose.
const UNNAMED: Audit = Audit::Different { revision: 0, minority: BTreeSet::new() };

/// What one voter reported of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Where it is.
    pub ordinal: Ordinal,
    /// Their hash.
    pub hash: u32,
    /// The revision up to which older ones were dropped: with another one it is a hash of other keys.
    pub compact_revision: i64,
}

/// What hashes of all voters at a revision tell.
#[must_use]
pub fn verdict(revision: u64, prints: &[Print]) -> Fact<Audit> {
    verdict_of(prints.len(), revision, prints)
}

/// The same of so many voters, of which some were not asked. A majority is one of all voters.
#[must_use]
pub fn verdict_of(voters: usize, revision: u64, prints: &[Print]) -> Fact<Audit> {
    let Some(first) = prints.first().filter(|_| prints.len() > 1) else { return Fact::Absent };
    if prints.iter().any(|print| print.compact_revision != first.compact_revision) {
        return Fact::Unknown;
    }
    let mut camps: BTreeMap<u32, BTreeSet<Ordinal>> = BTreeMap::new();
    for print in prints {
        camps.entry(print.hash).or_default().insert(print.ordinal);
    }
    if camps.len() == 1 {
        return Fact::Known(Audit::Equal);
    }
    let majority = camps.values().find(|camp| camp.len() > voters / 2);
    let all = || prints.iter().map(|print| print.ordinal).collect::<BTreeSet<_>>();
    let minority = majority.map(|agreed| &all() - agreed).unwrap_or_default();
    Fact::Known(Audit::Different { revision, minority })
}

/// The same of those that were asked. That followers agree says nothing of the leader's data, and so nothing is said.
#[must_use]
pub fn verdict_within(reach: Reach, revision: u64, prints: &[Print]) -> Fact<Audit> {
    match verdict(revision, prints) {
        Fact::Known(Audit::Equal) if reach != Reach::All => Fact::Absent,
        verdict => verdict,
    }
}

/// What is remembered from one comparison to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsistencyCheckState {
    /// Whether the status has been taken up.
    has_begun: bool,
    /// [`super::super::observation::Membership::fingerprint`] of the list that all of it is about.
    list: Option<u64>,
    /// What was found, and when.
    found: Option<(Audit, Timestamp)>,
    /// A difference that has been seen once.
    suspicion: Option<BTreeSet<Ordinal>>,
    /// When to compare again; none: at once.
    next: Option<Timestamp>,
    /// When it was tried last.
    tried: Option<Timestamp>,
    /// The members that etcd suspects, by an alarm or of itself.
    alarmed: BTreeSet<MemberId>,
}

impl ConsistencyCheckState {
    /// What is known of the members of a list. Of others it is nothing but that data differ, which those that are left
    /// may have brought along.
    pub fn recall(&mut self, list: Option<u64>) -> Fact<Audit> {
        if list.is_some() && self.list.is_some() && self.list != list {
            self.doubt();
            self.tried = None;
        }
        self.list = list.or(self.list);
        self.found.as_ref().map_or(Fact::Unknown, |(audit, _)| Fact::Known(audit.clone()))
    }

    /// What etcd suspects now. What was found before a new suspicion says nothing of it, and is asked again at once.
    pub fn suspect(&mut self, alarmed: BTreeSet<MemberId>) {
        if !alarmed.is_subset(&self.alarmed) {
            self.doubt();
        }
        self.alarmed = alarmed;
    }

    /// Has the data compared again at once. Of what was found no more is left than that they differ.
    fn doubt(&mut self) {
        let before = self.found.take().filter(|(audit, _)| *audit != Audit::Equal);
        self.found = before.map(|(_, at)| (UNNAMED, at));
        (self.suspicion, self.next) = (None, None);
    }

    /// Whether the last comparison, or the last try at one, lies too far back for pods to be restarted on the strength of
    /// it. One that found a difference has to be repeated.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Age {
        let is_recent = self.tried.is_some_and(|tried| now.duration_since(tried) < RECENT);
        if is_recent && self.suspicion.is_none() { Age::Fresh } else { Age::PastDeadline }
    }

    /// Begins, once in a process: with what the status says of data that differ, or with a wait that is another one for
    /// each cluster, so that a process that takes many over does not have all of them read their data at once.
    pub fn begin(&mut self, says_different: bool, uid: &str, now: Timestamp) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        if says_different {
            self.found = Some((UNNAMED, now));
        } else {
            let number =
                uid.bytes().fold(0_i64, |number, byte| (number * 31 + i64::from(byte)) % EQUAL.as_secs());
            self.next = now.checked_add(SignedDuration::from_secs(number)).ok();
        }
    }

    /// When this process last found data equal or different.
    #[must_use]
    pub fn found_at(&self) -> Option<Timestamp> {
        let found =
            self.found.as_ref().filter(|(audit, _)| !matches!(audit, Audit::Different { revision: 0, .. }));
        found.map(|(_, at)| *at)
    }

    /// Whether to compare now.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// The result of a comparison at `now`.
    pub fn heard(&mut self, verdict: Fact<Audit>, now: Timestamp) {
        let after = |pause| now.checked_add(pause).unwrap_or(Timestamp::MAX);
        let suspicion = self.suspicion.take();
        let unclear = if self.alarmed.is_empty() { UNCLEAR } else { ALARMED };
        self.tried = Some(now);
        match verdict {
            Fact::Known(Audit::Equal) => {
                self.found = Some((Audit::Equal, now));
                self.next = Some(after(EQUAL));
            }
            Fact::Known(Audit::Different { revision, minority }) => {
                let is_said = matches!(&self.found, Some((Audit::Different { .. }, _)));
                if is_said || suspicion.as_ref() == Some(&minority) {
                    self.found = Some((Audit::Different { revision, minority }, now));
                    self.next = Some(after(UNCLEAR));
                } else {
                    (self.found, self.suspicion, self.next) = (None, Some(minority), None);
                }
            }
            // A suspicion stays one.
            Fact::Unknown => (self.suspicion, self.next) = (suspicion, Some(after(unclear))),
            Fact::Absent => (self.found, self.next) = (None, Some(after(EQUAL))),
        }
    }
}

#[cfg(test)]
mod tests;
