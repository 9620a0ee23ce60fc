//! What certificates need, with real ones; and that a TLS library takes them for what they are for.

use serde_json::json;

use super::*;
use crate::certs::mint::Name;
use crate::controllers::etcdcluster::resources::certificates::{AUTHORITY_LIFETIME, LEAF_LIFETIME, leaves};
use crate::controllers::etcdcluster::resources::tests::cluster;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const NAME: Name<'static> = Name { common_name: "c etcd authority", lifetime: AUTHORITY_LIFETIME };
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn days(days: i64) -> Timestamp {
    NOW + SignedDuration::from_hours(24 * days)
}

fn wanted() -> [Leaf; 3] {
    leaves(&cluster(&json!({}))).unwrap()
}

fn create(now: Timestamp) -> Authority {
    Authority::create_as(NAME, now).unwrap()
}

fn stored(authority: &Authority) -> Pair {
    let certificate = authority.certificate_pem();
    Pair { trusted: certificate.clone(), certificate, key: authority.key_pem() }
}

fn only(authority: &Authority) -> Bundle {
    Bundle::of([authority.certificate().clone()]).unwrap()
}

/// Trusts the one that signs alone, as everybody does.
fn alone<'a>(signs: &'a Authority, bundle: &'a Bundle) -> Authorities<'a> {
    Authorities { signs: signs.certificate(), bundle, is_known: true }
}

fn signed(authority: &Authority, leaf: &Leaf, now: Timestamp) -> Pair {
    let signed = authority.sign(&leaf.profile(), now).unwrap();
    Pair {
        certificate: signed.certificate_pem(),
        key: signed.key_pem(),
        trusted: only(authority).pem().to_vec(),
    }
}

fn step(now: Timestamp, stored: Option<&Pair>) -> &'static str {
    match authority(now, stored) {
        AuthorityStep::Create => "create",
        AuthorityStep::Reissue(_) => "reissue",
        AuthorityStep::Keep(_) => "keep",
    }
}

#[test]
fn a_tls_library_takes_each_leaf_for_what_it_is_for_and_for_nothing_else() {
    let (ours, other) = (create(NOW), create(NOW));
    let [server, peer, client] = wanted();
    let take = |leaf: &Leaf, names: &[&str], usage, roots: &Authority| {
        let leaf = signed(&ours, leaf, NOW).leaf().unwrap();
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        verify::is_taken(&leaf, only(roots).certificates(), &[usage], &names, NOW)
    };
    let asked = ["c-0.c.shop.svc", "c-6.c.shop.svc", "c-9.c.shop.svc", "c-client.shop.svc", "127.0.0.1"];
    assert!(take(&server, &asked, Usage::Server, &ours));
    assert!(take(&server, &["c-2.c.shop.svc.cluster.local", "localhost", "c-client"], Usage::Server, &ours));
    assert!(take(&server, &[], Usage::Client, &ours));
    assert!(!take(&server, &["d-0.d.shop.svc"], Usage::Server, &ours));
    assert!(!take(&server, &["c-0.c.shop.svc"], Usage::Server, &other));

    assert!(take(&peer, &["c-0.c.shop.svc"], Usage::Server, &ours));
    assert!(take(&peer, &[], Usage::Client, &ours));
    assert!(!take(&peer, &["c-client.shop.svc"], Usage::Server, &ours));

    assert!(take(&client, &[], Usage::Client, &ours));
    assert!(!take(&client, &[], Usage::Client, &other));
    assert!(!take(&client, &["c-0.c.shop.svc"], Usage::Server, &ours));
}

#[test]
fn an_authority_that_can_be_read_keeps_its_key_for_good() {
    let ours = create(NOW);
    let pair = stored(&ours);
    assert_eq!(step(NOW, None), "create");
    assert_eq!(step(NOW, Some(&pair)), "keep");
    assert_eq!(step(days(365 * 5), Some(&pair)), "keep");
    assert_eq!(step(days(365 * 8), Some(&pair)), "reissue");
    assert_eq!(step(days(365 * 11), Some(&pair)), "reissue", "expired");
    assert_eq!(step(NOW, Some(&Pair { key: create(NOW).key_pem(), ..pair.clone() })), "create");
    assert_eq!(step(NOW, Some(&Pair { certificate: b"?".to_vec(), ..pair })), "create");
}

#[test]
fn members_that_trust_an_authority_of_before_take_what_it_signs_after_its_renewal() {
    let before = create(NOW);
    let roots = only(&before);
    let renewed = before.reissue_as(NAME, days(365 * 7)).unwrap();
    for wanted in wanted() {
        let leaf = signed(&renewed, &wanted, days(365 * 8)).leaf().unwrap();
        assert!(is_fit(days(365 * 8), &wanted, &leaf, roots.certificates()), "{}", wanted.secret);
    }
}

#[test]
fn a_leaf_is_renewed_before_its_last_third() {
    let ours = create(NOW);
    let [server, ..] = wanted();
    let pair = signed(&ours, &server, NOW);
    let step = |now| leaf(now, &server, &pair, alone(&ours, &only(&ours)));
    let validity = pair.leaf().unwrap().validity();
    assert_eq!(validity.not_after, NOW + LEAF_LIFETIME);
    assert_eq!(step(NOW), LeafStep::Keep);
    assert_eq!(step(days(243)), LeafStep::Keep);
    assert_eq!(step(days(244)), LeafStep::Sign(Why::Aged));
    assert_eq!(step(days(400)), LeafStep::Sign(Why::Aged));
}

#[test]
fn a_leaf_that_nobody_would_take_is_signed_anew() {
    let (ours, other) = (create(NOW), create(NOW));
    let [server, peer, client] = wanted();
    let step = |wanted: &Leaf, pair: &Pair| leaf(NOW, wanted, pair, alone(&ours, &only(&ours)));
    let pair = signed(&ours, &server, NOW);
    assert_eq!(step(&server, &Pair::default()), LeafStep::Sign(Why::Missing));
    assert_eq!(
        step(&server, &Pair { key: other.key_pem(), ..pair.clone() }),
        LeafStep::Sign(Why::Missing),
        "a key of another"
    );
    assert_eq!(step(&server, &signed(&other, &server, NOW)), LeafStep::Sign(Why::Unfit), "another authority");
    assert_eq!(step(&server, &signed(&ours, &peer, NOW)), LeafStep::Sign(Why::Unfit), "other names");
    assert_eq!(step(&peer, &pair), LeafStep::Sign(Why::Unfit), "another common name");
    assert_eq!(step(&client, &pair), LeafStep::Sign(Why::Unfit), "somebody else than root");
    assert_eq!(step(&server, &Pair { trusted: Vec::new(), ..pair }), LeafStep::Trust);
}

#[test]
fn an_authority_that_was_taken_away_stays_trusted_until_its_leaves_have_gone_for_a_day() {
    let (lost, ours) = (create(NOW), create(days(10)));
    let wanted = wanted();
    let old: Vec<_> = wanted.iter().map(|leaf| signed(&lost, leaf, NOW)).collect();
    let known = vec![lost.certificate().clone()];
    let trusted = |now, pairs: &[Pair]| {
        let leaves: Vec<_> = pairs.iter().filter_map(Pair::leaf).collect();
        bundle(now, ours.certificate(), &known, &leaves).unwrap()
    };
    let both = trusted(days(10), &old);
    assert_eq!(both.certificates().len(), 2);
    let new: Vec<_> = wanted.iter().map(|leaf| signed(&ours, leaf, days(11))).collect();
    let mixed = [old[0].clone(), new[1].clone(), new[2].clone()];
    assert_eq!(trusted(days(30), &mixed), both, "one leaf still needs it");
    assert_eq!(trusted(days(11), &new), both, "mounts and copies may be old");
    assert_eq!(trusted(days(11) + DAY, &new), only(&ours));
    assert_eq!(trusted(days(10), &[]), only(&ours), "nobody needs it");
}

#[test]
fn another_authority_signs_nothing_before_all_know_it_and_then_everything() {
    let (lost, ours) = (create(NOW), create(days(10)));
    let both = Bundle::of([&lost, &ours].map(|one| one.certificate().clone())).unwrap();
    let by = |is_known| Authorities { signs: ours.certificate(), bundle: &both, is_known };
    for wanted in &wanted() {
        let old = signed(&lost, wanted, NOW);
        let step = |now, is_known| leaf(now, wanted, &old, by(is_known));
        assert_eq!(step(days(10), false), LeafStep::Trust);
        assert_eq!(step(days(10), true), LeafStep::Sign(Why::OtherAuthority));
        assert_eq!(step(days(250), false), LeafStep::Trust, "due, and it still holds");
        assert_eq!(step(days(250), true), LeafStep::Sign(Why::Aged));
        assert_eq!(step(days(310), false), LeafStep::Sign(Why::Aged), "soon nobody would take it");
        let new = Pair { trusted: both.pem().to_vec(), ..signed(&ours, wanted, days(10)) };
        assert_eq!(leaf(days(10), wanted, &new, by(true)), LeafStep::Keep);
    }
    assert!(!has_spread(days(10), ours.certificate()));
    assert!(has_spread(days(10) + SignedDuration::from_mins(2), ours.certificate()));
}

#[test]
fn what_happens_to_an_authority_is_told_while_it_happens() {
    let (lost, ours) = (create(NOW), create(NOW));
    let both = Bundle::of([&lost, &ours].map(|one| one.certificate().clone())).unwrap();
    let by = |bundle| Authorities { signs: ours.certificate(), bundle, is_known: true };
    let leaves = |authority: &Authority| -> Vec<_> {
        wanted().iter().filter_map(|leaf| signed(authority, leaf, NOW).leaf()).collect()
    };
    assert!(overlap(NOW, &leaves(&lost), by(&both)).unwrap().contains("restarted, one at a time"));
    assert!(overlap(NOW, &leaves(&ours), by(&both)).unwrap().contains("for a day"));
    assert_eq!(overlap(NOW, &leaves(&ours), by(&only(&ours))), None);
}

#[test]
fn members_are_to_trust_nobody_yet_while_one_of_their_secrets_is_written_and_the_other_is_not() {
    let (before, ours) = (create(NOW), create(NOW));
    let [server, peer, client] = wanted();
    let [server, peer, client] = [server, peer, client].map(|leaf| signed(&before, &leaf, NOW));
    let both = Bundle::of([before.certificate().clone(), ours.certificate().clone()]).unwrap().pem().to_vec();
    let with_both = |pair: &Pair| Pair { trusted: both.clone(), ..pair.clone() };
    let alone = trust(&[&server, &peer, &client]);
    assert!(alone.is_some());
    for (first, second) in [(with_both(&server), peer.clone()), (server.clone(), with_both(&peer))] {
        assert_eq!(trust(&[&first, &second, &client]), None);
    }
    let all = trust(&[&with_both(&server), &with_both(&peer), &client]);
    assert!(all.is_some() && all != alone);
}

#[test]
fn an_authority_has_signed_all_or_it_has_not() {
    let (before, ours) = (create(NOW), create(NOW));
    let [first, second, _] = wanted();
    let leaves = [signed(&ours, &first, NOW), signed(&before, &second, NOW)].map(|pair| pair.leaf().unwrap());
    assert!(has_signed(NOW, &leaves[..1], ours.certificate()));
    assert!(!has_signed(NOW, &leaves, ours.certificate()));
}
