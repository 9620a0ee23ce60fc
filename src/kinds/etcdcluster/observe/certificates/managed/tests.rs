//! The status of certificates, with real ones; and that a TLS library accepts them for their purpose.

use serde_json::json;

use super::*;
use crate::certs::mint::{Authority as Signs, Name};
use crate::kinds::etcdcluster::observation::Certificates;
use crate::kinds::etcdcluster::observation::Uid;
use crate::kinds::etcdcluster::resources::certificates::{
    AUTHORITY_LIFETIME, AUTHORITY_TYPE, LEAF_LIFETIME, LEAF_TYPE, leaves,
};
use crate::kinds::etcdcluster::resources::tests::cluster;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const NAME: Name<'static> = Name { common_name: "c etcd authority", lifetime: AUTHORITY_LIFETIME };

fn days(days: i64) -> Timestamp {
    NOW + SignedDuration::from_hours(24 * days)
}

fn create() -> Signs {
    Signs::create_as(NAME, NOW).unwrap()
}

fn id(authority: &Signs) -> CertificateId {
    resources::id(authority.certificate())
}

fn signed(authority: &Signs, leaf: &Wanted, now: Timestamp) -> Pair {
    let signed = authority.sign(&leaf.profile(), now).unwrap();
    Pair {
        certificate: signed.certificate_pem(),
        key: signed.key_pem(),
        trusted: authority.certificate_pem(),
    }
}

fn stored(authority: &Signs) -> Pair {
    let certificate = authority.certificate_pem();
    Pair { trusted: certificate.clone(), certificate, key: authority.key_pem() }
}

/// The Secrets of a cluster.
struct Kept {
    spec: Spec,
    secrets: BTreeMap<String, Secret>,
}

impl Kept {
    /// All as they should be, of one authority.
    fn sound(authority: &Signs) -> Self {
        let mut kept = Self { spec: cluster(&json!({})), secrets: BTreeMap::new() };
        kept.put("c-ca", stored(authority));
        for leaf in leaves(&kept.spec).unwrap() {
            kept.put(&leaf.secret, signed(authority, &leaf, NOW));
        }
        kept
    }

    fn put(&mut self, name: &str, pair: Pair) {
        let (keys, kind) = if name == "c-ca" { (OF_AUTHORITY, AUTHORITY_TYPE) } else { (OF_LEAF, LEAF_TYPE) };
        let secret = resources::secret(&self.spec, name, kind, pair.data(keys));
        self.secrets.insert(name.to_owned(), secret);
    }

    fn found(&self) -> Found<'_> {
        let read = |name: String| {
            let found = self.secrets.get(&name).cloned();
            (name, Ok(found))
        };
        Found { spec: &self.spec, secrets: names(&self.spec).into_iter().map(read).collect() }
    }

    fn facts(&self, now: Timestamp) -> CertificateSecrets {
        facts(&self.found(), now)
    }

    fn leaf(&self, holder: Holder, now: Timestamp) -> LeafSecret {
        self.facts(now).leaves[&holder].known().unwrap().clone()
    }

    fn checked(&self, now: Timestamp) -> (Certificates, Option<String>) {
        let standing = status(&self.found(), now);
        (standing.state, standing.words)
    }
}

#[test]
fn a_tls_library_takes_each_leaf_for_what_it_is_for_and_for_nothing_else() {
    let (ours, other) = (create(), create());
    let [server, peer, client] = leaves(&cluster(&json!({}))).unwrap();
    let take = |leaf: &Wanted, names: &[&str], usage, roots: &Signs| {
        let leaf = signed(&ours, leaf, NOW).leaf().unwrap();
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        verify::is_taken(&leaf, std::slice::from_ref(roots.certificate()), &[usage], &names, NOW)
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
fn an_authority_whose_certificate_and_key_are_a_pair_signs() {
    let (ours, other) = (create(), create());
    let signer = |pair: Pair, now| {
        let mut kept = Kept::sound(&ours);
        kept.put("c-ca", pair);
        kept.facts(now).authority.known().unwrap().signer
    };
    let of = |renewal_age, spread_age| Some(Signer { certificate: id(&ours), renewal_age, spread_age });
    assert_eq!(signer(stored(&ours), NOW), of(Age::Fresh, Age::Fresh));
    let spread = NOW + SignedDuration::from_mins(2);
    assert_eq!(signer(stored(&ours), spread), of(Age::Fresh, Age::PastDeadline));
    assert_eq!(signer(stored(&ours), days(365 * 5)), of(Age::Fresh, Age::PastDeadline));
    assert_eq!(signer(stored(&ours), days(365 * 8)), of(Age::PastDeadline, Age::PastDeadline));
    assert_eq!(signer(stored(&ours), days(365 * 11)), of(Age::PastDeadline, Age::PastDeadline), "expired");
    assert_eq!(signer(Pair { key: other.key_pem(), ..stored(&ours) }, NOW), None);
    assert_eq!(signer(Pair { certificate: b"?".to_vec(), ..stored(&ours) }, NOW), None);
}

#[test]
fn members_that_trust_an_authority_of_before_take_what_it_signs_after_its_renewal() {
    let before = create();
    let (mut kept, trusted) = (Kept::sound(&before), before.certificate_pem());
    let now = days(365 * 8);
    let renewed = before.reissue_as(NAME, days(365 * 7)).unwrap();
    for leaf in leaves(&kept.spec).unwrap() {
        let pair = Pair { trusted: trusted.clone(), ..signed(&renewed, &leaf, now) };
        kept.put(&leaf.secret, pair);
    }
    let facts = kept.facts(now);
    let identities: BTreeSet<_> = facts.authorities.values().map(|authority| authority.identity).collect();
    assert_eq!(identities.len(), 1);
    assert_eq!(facts.readable().filter(|(_, secret, _)| secret.is_fit()).count(), 3);
}

#[test]
fn a_leaf_tells_how_much_of_its_life_is_over() {
    let kept = Kept::sound(&create());
    let ages = |now| {
        let leaf = kept.leaf(Holder::Server, now).leaf.unwrap();
        [leaf.overlap_age, leaf.renewal_age, leaf.last_call_age].map(Age::is_past)
    };
    assert_eq!(ages(NOW), [false; 3]);
    assert_eq!(ages(days(1)), [true, false, false]);
    assert_eq!(ages(days(243)), [true, false, false]);
    assert_eq!(ages(days(244)), [true, true, false]);
    assert_eq!(ages(days(304)), [true, true, false]);
    assert_eq!(ages(days(305)), [true; 3]);
    assert_eq!(LEAF_LIFETIME, SignedDuration::from_hours(365 * 24));
}

#[test]
fn a_leaf_that_no_client_would_accept_is_reported() {
    let (ours, other) = (create(), create());
    let [server, peer, client] = leaves(&cluster(&json!({}))).unwrap();
    let put = |name: &str, pair: Pair| {
        let mut kept = Kept::sound(&ours);
        kept.spec.is_paused = true;
        kept.put(name, pair);
        kept
    };
    let pair = signed(&ours, &server, NOW);
    for (name, pair, why) in [
        ("c-server-tls", Pair::default(), "no certificate"),
        ("c-server-tls", Pair { key: other.key_pem(), ..pair.clone() }, "a key of another"),
    ] {
        let kept = put(name, pair);
        assert_eq!(kept.leaf(Holder::Server, NOW).leaf, None, "{why}");
        let (state, words) = kept.checked(NOW);
        assert_eq!(state, Certificates::Unfit);
        assert!(words.unwrap().starts_with("secret shop/c-server-tls has no certificate"), "{why}");
    }
    for (name, holder, pair, why) in [
        ("c-server-tls", Holder::Server, signed(&ours, &peer, NOW), "other names"),
        ("c-peer-tls", Holder::Peer, signed(&ours, &server, NOW), "another common name"),
        ("c-client-tls", Holder::Client, signed(&ours, &server, NOW), "another client than root"),
        (
            "c-client-tls",
            Holder::Client,
            Pair { trusted: Vec::new(), ..signed(&ours, &client, NOW) },
            "no authority trusted",
        ),
    ] {
        let kept = put(name, pair);
        assert!(!kept.leaf(holder, NOW).is_fit(), "{why}");
        assert_eq!(kept.checked(NOW).0, Certificates::Unfit, "{why}");
    }
    let foreign = Pair { trusted: ours.certificate_pem(), ..signed(&other, &server, NOW) };
    let foreign = put("c-server-tls", foreign).leaf(Holder::Server, NOW);
    assert!(!foreign.is_fit() && foreign.leaf.unwrap().signed_by.is_empty(), "of another authority");
}

#[test]
fn each_authority_that_a_leaf_is_of_or_trusts_is_found() {
    let (before, ours) = (create(), create());
    let mut kept = Kept::sound(&before);
    kept.put("c-ca", stored(&ours));
    let facts = kept.facts(NOW);
    assert_eq!(
        facts.authorities.keys().copied().collect::<BTreeSet<_>>(),
        BTreeSet::from([id(&before), id(&ours)])
    );
    assert_eq!(facts.authority.known().unwrap().bundle, BTreeSet::from([id(&ours)]));
    assert!(facts.all_signed_by(id(&before)) && !facts.all_signed_by(id(&ours)));
    let leaf = kept.leaf(Holder::Peer, NOW);
    assert_eq!(leaf.trusted, BTreeSet::from([id(&before)]));
    assert_eq!(leaf.leaf.unwrap().fit_for, BTreeSet::from([id(&before)]));
}

#[test]
fn what_happens_to_an_authority_is_reported_while_it_happens() {
    let (before, ours) = (create(), create());
    let both = [before.certificate_pem(), ours.certificate_pem()].concat();
    let mut kept = Kept::sound(&before);
    kept.put("c-ca", Pair { trusted: both, ..stored(&ours) });
    assert!(kept.checked(NOW).1.unwrap().contains("restarted, one at a time"));
    for leaf in leaves(&kept.spec).unwrap() {
        kept.put(&leaf.secret, signed(&ours, &leaf, NOW));
    }
    assert!(kept.checked(NOW).1.unwrap().contains("for a day"));
    kept.put("c-ca", stored(&ours));
    assert_eq!(kept.checked(NOW), (Certificates::Valid, None));
}

#[test]
fn a_leaf_is_for_the_names_that_are_asked_for_and_no_others() {
    let authority = create();
    let mut kept = Kept::sound(&authority);
    let asking = |names: &[&str]| cluster(&json!({"tls": {"extraNames": names}}));
    let is_as_asked = |kept: &Kept| {
        let secret = kept.leaf(Holder::Server, NOW);
        assert!(secret.is_fit(), "members start with it");
        secret.leaf.is_some_and(|leaf| leaf.has_wanted_names)
    };
    assert!(is_as_asked(&kept));
    kept.spec = asking(&["*.example.com", "2001:DB8::7"]);
    assert!(!is_as_asked(&kept), "a wildcard is missing");
    let [server, ..] = leaves(&kept.spec).unwrap();
    kept.put(&server.secret, signed(&authority, &server, NOW));
    assert!(is_as_asked(&kept));
    kept.spec = asking(&["*.example.com"]);
    assert!(!is_as_asked(&kept), "an address is not asked for any more");
}

#[test]
fn members_trust_no_one_yet_while_one_of_their_secrets_is_written_and_the_other_is_not() {
    let (before, ours) = (create(), create());
    let both = [before.certificate_pem(), ours.certificate_pem()].concat();
    let sound = Kept::sound(&before);
    let alone = status(&sound.found(), NOW).trust;
    assert!(alone.is_some());
    let [server, peer, _] = leaves(&sound.spec).unwrap();
    for leaf in [&server, &peer] {
        let mut kept = Kept::sound(&before);
        kept.put(&leaf.secret, Pair { trusted: both.clone(), ..signed(&before, leaf, NOW) });
        let standing = status(&kept.found(), NOW);
        assert_eq!((standing.state, standing.trust), (Certificates::Unfit, None));
    }
    let mut kept = sound;
    for leaf in [&server, &peer] {
        kept.put(&leaf.secret, Pair { trusted: both.clone(), ..signed(&before, leaf, NOW) });
    }
    let all = status(&kept.found(), NOW).trust;
    assert!(all.is_some() && all != alone);
}

#[test]
fn what_belongs_to_others_is_reported_before_what_is_missing() {
    let mut kept = Kept::sound(&create());
    kept.secrets.remove("c-server-tls");
    let name = "c-client-tls";
    let theirs = kept.secrets.get_mut(name).unwrap();
    theirs.metadata.owner_references = None;
    assert!(kept.facts(NOW).is_name_taken());
    let (state, words) = kept.checked(NOW);
    assert_eq!(state, Certificates::Missing);
    assert!(words.unwrap().starts_with("secret shop/c-client-tls belongs to another owner"));
}

#[test]
fn what_the_next_reconciliation_makes_is_no_problem_and_what_rests_is() {
    let mut kept = Kept::sound(&create());
    kept.secrets.remove("c-server-tls");
    assert_eq!(kept.checked(NOW), (Certificates::Missing, None));
    kept.spec.is_paused = true;
    let standing = status(&kept.found(), NOW);
    assert!(standing.is_problem);
    assert_eq!(standing.words.as_deref(), Some("secret shop/c-server-tls is missing"));
    let mut kept = Kept::sound(&create());
    kept.spec.is_paused = true;
    assert_eq!(kept.checked(days(300)), (Certificates::Valid, None));
    assert_eq!(kept.checked(days(310)).0, Certificates::Expiring);
}

#[test]
fn of_each_secret_the_end_of_its_certificate_is_reported() {
    let mut kept = Kept::sound(&create());
    kept.put("c-client-tls", Pair { certificate: b"nothing that can be read".to_vec(), ..Pair::default() });
    let ends = kept.found().ends();
    let expected = ["c-ca", "c-peer-tls", "c-server-tls"];
    assert_eq!(ends.keys().collect::<Vec<_>>(), expected);
    assert_eq!(ends["c-peer-tls"], NOW + LEAF_LIFETIME);
}

#[test]
fn a_secret_is_known_by_its_identity_and_its_version() {
    let mut kept = Kept::sound(&create());
    let metadata = &mut kept.secrets.get_mut("c-peer-tls").unwrap().metadata;
    metadata.uid = Some("u".to_owned());
    metadata.resource_version = Some("7".to_owned());
    let handle = kept.leaf(Holder::Peer, NOW).handle;
    assert_eq!((handle.uid, handle.resource_version.0.as_str()), (Uid("u".to_owned()), "7"));
}
