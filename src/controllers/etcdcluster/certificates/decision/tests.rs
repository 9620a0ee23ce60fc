//! What certificates need, with real ones; and that a TLS library takes them for what they are for.

use super::*;
use crate::api::etcdcluster::v1::EtcdClusterSpec;
use crate::certs::mint::Name;
use crate::controllers::etcdcluster::resources::certificates::{AUTHORITY_LIFETIME, LEAF_LIFETIME, leaves};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const NAME: Name<'static> = Name { common_name: "c etcd authority", lifetime: AUTHORITY_LIFETIME };
const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn days(days: i64) -> Timestamp {
    NOW + SignedDuration::from_hours(24 * days)
}

fn wanted() -> [Leaf; 3] {
    let mut cluster = EtcdCluster::new("c", EtcdClusterSpec::default());
    cluster.metadata.namespace = Some("shop".to_owned());
    leaves(&cluster).unwrap()
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
    let step = |now| leaf(now, &server, &pair, &only(&ours));
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
    let step = |wanted: &Leaf, pair: &Pair| leaf(NOW, wanted, pair, &only(&ours));
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
fn an_authority_that_was_lost_stays_trusted_until_its_leaves_have_gone() {
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
    for (wanted, pair) in wanted.iter().zip(&old) {
        assert_eq!(leaf(days(10), wanted, pair, &both), LeafStep::Trust, "what members take stays in use");
    }
    let new: Vec<_> = wanted.iter().map(|leaf| signed(&ours, leaf, days(244))).collect();
    let mixed = [old[0].clone(), new[1].clone(), new[2].clone()];
    assert_eq!(trusted(days(245), &mixed), both, "one leaf still needs it");
    assert_eq!(trusted(days(244), &new), both, "mounts may be old");
    assert_eq!(trusted(days(244) + HOUR, &new), only(&ours));
    assert_eq!(trusted(days(10), &[]), only(&ours), "nobody needs it");
}

#[test]
fn of_others_pairs_faults_are_told() {
    let ours = create(NOW);
    let [server, ..] = wanted();
    let pair = signed(&ours, &server, NOW);
    assert_eq!(fault(NOW, &pair, true), None);
    assert_eq!(fault(days(300), &pair, true), None);
    assert_eq!(fault(days(310), &pair, true), Some(Fault::Overdue));
    assert_eq!(fault(days(-1), &pair, true), Some(Fault::Overdue), "it does not hold yet");
    let alone = Pair { trusted: Vec::new(), ..pair.clone() };
    assert!(matches!(fault(NOW, &alone, true), Some(Fault::Unreadable(words)) if words.contains("ca.crt")));
    assert_eq!(fault(NOW, &alone, false), None);
    let keyless = Pair { key: Vec::new(), ..pair };
    assert!(
        matches!(fault(NOW, &keyless, true), Some(Fault::Unreadable(words)) if words.contains("tls.key"))
    );
}
