//! Which authorities stay in the CA bundles beside those that this replica wants. Pure.
//!
//! Replicas may want other authorities for a while: the kubelet updates the mounts of pods at different times, and a
//! rolling change of a value has replicas with other certificates side by side. A replica that wrote what it wants
//! alone would have API servers refuse the others.
//!
//! Guarantees: an authority that is found in a bundle stays there for [`KEPT`] after this replica wanted it last, or
//! has first found it; what was removed then and is found again stays for that long again, as another replica wants it.
//! Two replicas that find the same write the same.
//! Assumes: who begins a round writes all bundles in it.

use jiff::{SignedDuration, Timestamp};

use super::certificate::{Bundle, Certificate};
use super::rotate::{SKEW, after};

/// How long an authority that is not wanted any more stays in the bundles: longer than any kubelet takes to update a
/// mount.
pub const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// When each authority was wanted last, or first found.
#[derive(Debug, Default)]
pub struct Kept(Vec<(Certificate, Timestamp)>);

impl Kept {
    /// Begins a round in which `wanted` is wanted. What is not kept in it any longer.
    pub fn begin(&mut self, wanted: &Bundle, now: Timestamp) -> Vec<Certificate> {
        self.0.retain(|(one, _)| !wanted.certificates().contains(one));
        self.0.extend(wanted.certificates().iter().map(|one| (one.clone(), now)));
        let is_kept = |(_, last): &(Certificate, Timestamp)| now < after(*last, KEPT);
        let (kept, past) = std::mem::take(&mut self.0).into_iter().partition(is_kept);
        self.0 = kept;
        let past: Vec<_> = past;
        past.into_iter().map(|(one, _)| one).collect()
    }

    /// What a bundle that holds `live` has to hold, in a round in which `past` is not kept.
    pub fn beside(
        &mut self,
        wanted: &Bundle,
        past: &[Certificate],
        live: Vec<Certificate>,
        now: Timestamp,
    ) -> Bundle {
        let mut live = live;
        live.retain(|one| !past.contains(one) && now < after(one.validity().not_after, SKEW));
        for one in &live {
            if self.0.iter().all(|(known, _)| known != one) {
                self.0.push((one.clone(), now));
            }
        }
        let all = wanted.certificates().iter().cloned().chain(live);
        Bundle::of(all).unwrap_or_else(|| wanted.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::mint::Authority;
    use crate::certs::tests::START;

    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    fn authority() -> Certificate {
        Authority::create(START).unwrap().certificate().clone()
    }

    fn bundle(certificates: &[&Certificate]) -> Bundle {
        Bundle::of(certificates.iter().map(|one| (*one).clone())).unwrap()
    }

    /// A bundle that `kept` has written over what `live` holds.
    fn round(kept: &mut Kept, wanted: &Bundle, live: &Bundle, now: Timestamp) -> Bundle {
        let past = kept.begin(wanted, now);
        kept.beside(wanted, &past, live.certificates().to_vec(), now)
    }

    #[test]
    fn replicas_that_want_different_authorities_write_the_same_bundle() {
        let (old, new) = (authority(), authority());
        let (mut one, mut other) = (Kept::default(), Kept::default());
        let both = bundle(&[&old, &new]);
        let written = round(&mut one, &bundle(&[&new]), &bundle(&[&old]), START);
        assert_eq!(written, both);
        assert_eq!(round(&mut other, &bundle(&[&old]), &written, START), both);
        assert_eq!(round(&mut one, &bundle(&[&new]), &both, START + SECOND), both, "and rest");
    }

    #[test]
    fn an_authority_goes_a_day_after_it_was_wanted_last() {
        let (old, new) = (authority(), authority());
        let (both, only) = (bundle(&[&old, &new]), bundle(&[&new]));
        let mut kept = Kept::default();
        round(&mut kept, &bundle(&[&old]), &bundle(&[&old]), START);
        let last = START + SignedDuration::from_hours(3);
        round(&mut kept, &both, &both, last);
        assert_eq!(round(&mut kept, &only, &both, last + KEPT - SECOND), both);
        let past = kept.begin(&only, last + KEPT);
        for _ in 0..5 {
            let live = both.certificates().to_vec();
            assert_eq!(kept.beside(&only, &past, live, last + KEPT), only, "from all objects");
        }
    }

    #[test]
    fn one_that_another_replica_puts_back_stays_for_a_day_again() {
        let (old, new) = (authority(), authority());
        let (both, only) = (bundle(&[&old, &new]), bundle(&[&new]));
        let mut kept = Kept::default();
        round(&mut kept, &only, &both, START);
        assert_eq!(round(&mut kept, &only, &both, START + KEPT), only);
        for passed in [SECOND, SECOND * 2, KEPT] {
            assert_eq!(round(&mut kept, &only, &both, START + KEPT + passed), both, "{passed}");
        }
        assert_eq!(round(&mut kept, &only, &both, START + KEPT * 2 + SECOND), only);
    }

    #[test]
    fn one_that_has_expired_is_not_kept() {
        let (old, new) = (authority(), authority());
        let end = old.validity().not_after + SKEW;
        let both = bundle(&[&old, &new]);
        let mut kept = Kept::default();
        assert_eq!(round(&mut kept, &bundle(&[&new]), &both, end), bundle(&[&new]));
    }
}
