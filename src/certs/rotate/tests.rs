use super::steps::Why;
use super::*;
use crate::certs::mint::{Authority, Leaf};
use crate::certs::tests::{START, verify};

const NAME: &str = "gatehouse.system.svc";
const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn authority_at(now: Timestamp) -> Authority {
    Authority::create(now).unwrap()
}

fn leaf_of(authority: &Authority, now: Timestamp) -> Leaf {
    authority.mint(&[NAME.to_owned(), "127.0.0.1".to_owned()], now).unwrap()
}

fn only(authority: &Authority) -> Bundle {
    Bundle::of([authority.certificate().clone()]).unwrap()
}

fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

#[test]
fn a_leaf_verifies_for_each_of_its_names_and_no_other() {
    let authority = authority_at(START);
    let leaf = leaf_of(&authority, START);
    let bundle = only(&authority);
    verify(&leaf.chain(), &bundle, NAME, START).unwrap();
    verify(&leaf.chain(), &bundle, "127.0.0.1", START).unwrap();
    verify(&leaf.chain(), &bundle, "other.system.svc", START).unwrap_err();
}

#[test]
fn a_leaf_holds_for_a_week_and_for_clocks_that_are_an_hour_late() {
    let authority = authority_at(START);
    let leaf = leaf_of(&authority, START);
    let bundle = only(&authority);
    verify(&leaf.chain(), &bundle, NAME, START - HOUR).unwrap();
    verify(&leaf.chain(), &bundle, NAME, START - HOUR - HOUR).unwrap_err();
    verify(&leaf.chain(), &bundle, NAME, START + LEAF_LIFETIME).unwrap();
    verify(&leaf.chain(), &bundle, NAME, START + LEAF_LIFETIME + HOUR).unwrap_err();
}

#[test]
fn no_leaf_outlives_its_authority() {
    let authority = authority_at(START);
    let leaf = leaf_of(&authority, START + AUTHORITY_LIFETIME - days(2));
    assert_eq!(leaf.validity().not_after, authority.certificate().validity().not_after);
}

#[test]
fn before_and_after_a_reissue_every_bundle_verifies_every_leaf() {
    let first = authority_at(START);
    let (old_leaf, old_bundle) = (leaf_of(&first, START), only(&first));
    let old_certificate = first.certificate().clone();
    let later = START + days(3);
    let second = first.reissue(later).unwrap();
    let new_leaf = leaf_of(&second, later);
    let both = bundle(later, second.certificate(), &[old_certificate], Some(old_leaf.in_use())).unwrap();
    assert_eq!(both.certificates().len(), 2);
    for bundle in [&old_bundle, &only(&second), &both] {
        for leaf in [&old_leaf, &new_leaf] {
            verify(&leaf.chain(), bundle, NAME, later).unwrap();
        }
    }
}

#[test]
fn a_reissued_authority_has_another_serial_number_and_the_same_identity() {
    let first = authority_at(START);
    let certificate = first.certificate().clone();
    let second = first.reissue(START + days(1)).unwrap();
    assert_ne!(second.certificate().serial(), certificate.serial());
    assert_eq!(second.certificate().identity(), certificate.identity());
    assert_ne!(authority_at(START).certificate().identity(), certificate.identity());
}

#[test]
fn a_missing_authority_is_created() {
    assert_eq!(authority(START, None, b"", None), AuthorityStep::Create);
}

#[test]
fn an_authority_is_reissued_between_60_and_70_percent_of_its_life_at_a_moment_of_its_own() {
    let mut renewals = Vec::new();
    for _ in 0..20 {
        let made = authority_at(START);
        let certificate = made.certificate();
        let life = certificate.validity().not_before.duration_until(certificate.validity().not_after);
        let renewal = authority_renewal(certificate);
        let past = certificate.validity().not_before.duration_until(renewal);
        let percent = past.as_secs() * 100 / life.as_secs();
        assert!((60..70).contains(&percent), "{percent}");
        assert_eq!(authority_renewal(certificate), renewal, "all replicas agree");
        let bundle = only(&made);
        let just_before = renewal - SignedDuration::from_secs(1);
        assert_eq!(authority(just_before, Some(certificate), bundle.pem(), None), AuthorityStep::Keep);
        assert_eq!(authority(renewal, Some(certificate), bundle.pem(), None), AuthorityStep::Reissue);
        renewals.push(renewal);
    }
    renewals.sort();
    renewals.dedup();
    assert!(renewals.len() > 10, "the moments are spread");
}

#[test]
fn an_expired_authority_is_reissued_and_signs_nothing_meanwhile() {
    let made = authority_at(START);
    let now = START + AUTHORITY_LIFETIME;
    assert_eq!(authority(now, Some(made.certificate()), only(&made).pem(), None), AuthorityStep::Reissue);
    assert_eq!(leaf(now, made.certificate(), None, InForce::Trusted), LeafStep::Keep);
}

#[test]
fn a_leaf_is_minted_at_the_start_and_at_two_thirds_of_its_life() {
    let made = authority_at(START);
    let minted = leaf_of(&made, START);
    assert_eq!(leaf(START, made.certificate(), None, InForce::Distrusted), LeafStep::Sign(Why::Missing));
    let at = |now| leaf(now, made.certificate(), Some(minted.in_use()), InForce::Distrusted);
    assert_eq!(at(START + days(4)), LeafStep::Keep);
    assert_eq!(at(START + days(5)), LeafStep::Sign(Why::Aged));
    assert_eq!(at(START + days(50)), LeafStep::Sign(Why::Aged), "after a long suspension");
}

#[test]
fn the_leaf_follows_a_new_key_only_when_everybody_had_time_to_trust_it() {
    let minted = leaf_of(&authority_at(START), START);
    let lost = START + days(1);
    let new = authority_at(lost);
    for in_force in [InForce::Unseen, InForce::Trusted] {
        let at = |now| leaf(now, new.certificate(), Some(minted.in_use()), in_force);
        assert_eq!(at(lost), LeafStep::Keep);
        assert_eq!(at(lost + PROPAGATION - SignedDuration::from_secs(1)), LeafStep::Keep);
        assert_eq!(at(lost + PROPAGATION), LeafStep::Sign(Why::OtherAuthority));
    }
}

#[test]
fn the_leaf_waits_for_a_new_key_to_be_in_force_however_long_that_takes() {
    let minted = leaf_of(&authority_at(START), START);
    let new = authority_at(START + days(1));
    let at = |now| leaf(now, new.certificate(), Some(minted.in_use()), InForce::Distrusted);
    assert_eq!(at(START + days(2)), LeafStep::Keep);
    let end = minted.validity().not_after;
    assert_eq!(at(end - SignedDuration::from_secs(1)), LeafStep::Keep);
    assert_eq!(at(end), LeafStep::Sign(Why::OtherAuthority), "the old one is refused by everybody");
}

#[test]
fn an_aged_leaf_waits_for_a_new_key_to_be_trusted_but_not_beyond_its_own_end() {
    let minted = leaf_of(&authority_at(START), START);
    let aged = START + days(6);
    let at = |now| leaf(now, authority_at(now).certificate(), Some(minted.in_use()), InForce::Unseen);
    assert_eq!(at(aged), LeafStep::Keep);
    let last = minted.validity().not_after - SignedDuration::from_mins(1);
    assert_eq!(at(last), LeafStep::Sign(Why::OtherAuthority));
}

#[test]
fn an_authority_with_another_key_is_trusted_until_its_last_leaf_is_gone() {
    let old = authority_at(START);
    let lost = START + days(1);
    let new = authority_at(lost);
    let both = Bundle::of([old.certificate().clone(), new.certificate().clone()]).unwrap();
    let old_leaf = leaf_of(&old, lost);
    assert_eq!(authority(lost, Some(new.certificate()), both.pem(), None), AuthorityStep::Keep);
    let end_of_leaf = old_leaf.validity().not_after;
    assert_eq!(authority(end_of_leaf, Some(new.certificate()), both.pem(), None), AuthorityStep::Keep);
    assert_eq!(
        authority(lost + OVERLAP, Some(new.certificate()), both.pem(), None),
        AuthorityStep::WriteBundle(only(&new))
    );
}

#[test]
fn the_issuer_of_the_leaf_in_use_is_put_back_into_the_bundle() {
    let old = authority_at(START);
    let old_leaf = leaf_of(&old, START);
    let new = authority_at(START);
    let both = Bundle::of([old.certificate().clone(), new.certificate().clone()]).unwrap();
    assert_eq!(
        authority(START, Some(new.certificate()), only(&new).pem(), Some(old_leaf.in_use())),
        AuthorityStep::WriteBundle(both)
    );
}

#[test]
fn expired_certificates_leave_the_bundle_an_hour_after_their_end() {
    let old = authority_at(START);
    let old_certificate = old.certificate().clone();
    let new = old.reissue(START + days(240)).unwrap();
    let both = Bundle::of([old_certificate.clone(), new.certificate().clone()]).unwrap();
    let at = |now| bundle(now, new.certificate(), both.certificates(), None).unwrap();
    assert_eq!(at(old_certificate.validity().not_after), both);
    assert_eq!(at(old_certificate.validity().not_after + SKEW), only(&new));
}

#[test]
fn a_bundle_that_was_emptied_or_reordered_is_written_again() {
    let made = authority_at(START);
    for text in [&b""[..], b"nonsense", &[only(&made).pem(), only(&made).pem()].concat()] {
        assert_eq!(
            authority(START, Some(made.certificate()), text, None),
            AuthorityStep::WriteBundle(only(&made))
        );
    }
}

#[test]
fn a_leaf_is_never_trusted_as_an_authority() {
    let made = authority_at(START);
    let minted = leaf_of(&made, START);
    let certificate = Certificate::read(minted.chain()[0].clone()).unwrap();
    assert_eq!(bundle(START, made.certificate(), &[certificate], None).unwrap(), only(&made));
}

proptest::proptest! {
    #![proptest_config(crate::properties::config())]

    /// Whatever the day, following the decisions once leaves nothing to decide: replicas cannot chase each other.
    #[test]
    fn a_decision_that_was_followed_is_not_made_again(hours in 0_i64..24 * 400, foreign: bool) {
        let first = authority_at(START);
        let old_leaf = leaf_of(&first, START);
        let current = if foreign { authority_at(START) } else { authority_at(START).reissue(START).unwrap() };
        let now = START + SignedDuration::from_hours(hours);
        let mut held = current;
        let mut stored = only(&first).pem().to_vec();
        for _ in 0..2 {
            match authority(now, Some(held.certificate()), &stored, Some(old_leaf.in_use())) {
                AuthorityStep::Create => unreachable!("there is one"),
                AuthorityStep::Reissue => held = held.reissue(now).unwrap(),
                AuthorityStep::WriteBundle(wanted) => stored = wanted.pem().to_vec(),
                AuthorityStep::Keep => {}
            }
        }
        let last = authority(now, Some(held.certificate()), &stored, Some(old_leaf.in_use()));
        proptest::prop_assert_eq!(last, AuthorityStep::Keep);
    }
}
