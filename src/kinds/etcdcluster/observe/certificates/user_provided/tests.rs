//! What is said of certificates that another client keeps, with real ones.

use jiff::SignedDuration;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;

use super::*;
use crate::certs::mint::{Authority, Name, Profile};
use crate::kinds::etcdcluster::resources::certificates::leaves;
use crate::kinds::etcdcluster::resources::tests::cluster;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

fn authority() -> Authority {
    Authority::create_as(Name { common_name: "theirs", lifetime: YEAR * 10 }, NOW).unwrap()
}

fn read(name: &str, authority: &Authority, profile: &Profile) -> Read {
    let signed = authority.sign(profile, NOW).unwrap();
    let pair = Pair {
        certificate: signed.certificate_pem(),
        key: signed.key_pem(),
        trusted: authority.certificate_pem(),
    };
    Read { place: format!("shop/{name}"), pair }
}

fn three() -> Spec {
    cluster(&json!({"replicas": 3, "auth": {"enabled": true}}))
}

/// All as they should be, of one authority.
fn sound(authority: &Authority) -> UserProvided {
    let [server, peer, client] = leaves(&three()).unwrap();
    UserProvided {
        server: read("server", authority, &server.profile()),
        peer: read("peer", authority, &peer.profile()),
        client: read("client", authority, &client.profile()),
        client_authority: None,
        peer_authority: None,
    }
}

fn checked(named: &UserProvided, now: Timestamp) -> Result<Option<String>, String> {
    let checked = named.check(&three(), now);
    checked.map(|(_, overdue)| overdue.map(|one| one.to_string())).map_err(|problem| problem.to_string())
}

#[track_caller]
fn is_refused(named: &UserProvided, words: &[&str]) {
    let said = checked(named, NOW).unwrap_err();
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn what_all_would_take_is_fit_and_tells_whom_members_trust() {
    let authority = authority();
    let named = sound(&authority);
    assert_eq!(checked(&named, NOW), Ok(None));
    let certificates = [authority.certificate().clone()];
    let (trust, _) = named.check(&three(), NOW).unwrap();
    assert_eq!(trust, resources::trust(&certificates, &certificates));
    assert!(trust.is_some());
}

#[test]
fn a_key_of_another_certificate_is_reported() {
    let authority = authority();
    let mut named = sound(&authority);
    named.peer.pair.key = named.server.pair.key.clone();
    is_refused(&named, &["shop/peer", "no private key in tls.key that fits"]);
    named.peer.pair.certificate = b"?".to_vec();
    is_refused(&named, &["shop/peer", "no certificate in tls.crt"]);
    named.peer.pair.trusted.clear();
    is_refused(&named, &["shop/peer", "no certificate in ca.crt"]);
}

#[test]
fn a_certificate_of_another_authority_is_reported_with_the_secret_that_does_not_trust_it() {
    let (ours, other) = (authority(), authority());
    let foreign = sound(&other);
    let named =
        UserProvided { server: Read { pair: foreign.server.pair, ..sound(&ours).server }, ..sound(&ours) };
    is_refused(&named, &["shop/server", "does not lead up", "ca.crt of secret shop/client"]);
    let named = UserProvided { client: foreign.client, server: sound(&other).server, ..sound(&ours) };
    assert_eq!(checked(&named, NOW), Ok(None), "peers may have an authority of their own");
    let client = Read { pair: Pair { trusted: ours.certificate_pem(), ..named.client.pair }, ..named.client };
    let named = UserProvided { client, ..sound(&ours) };
    is_refused(&named, &["shop/client", "does not lead up", "ca.crt of secret shop/server"]);
}

#[test]
fn an_authority_in_a_secret_of_its_own_is_the_one_that_is_asked() {
    let (ours, other) = (authority(), authority());
    let mut named = sound(&ours);
    named.peer_authority = Some(Read { place: "shop/peers".to_owned(), ..sound(&other).peer });
    is_refused(&named, &["shop/peer", "ca.crt of secret shop/peers"]);
}

#[test]
fn a_use_and_a_name_that_are_not_granted_are_reported() {
    let authority = authority();
    let [server, peer, client] = leaves(&three()).unwrap();
    let only_server = Profile { usages: &[Usage::Server], ..peer.profile() };
    let named = UserProvided { peer: read("peer", &authority, &only_server), ..sound(&authority) };
    is_refused(&named, &["shop/peer", "may not be shown by a client"]);
    let only_client = Profile { usages: &[Usage::Client], ..server.profile() };
    let named = UserProvided { server: read("server", &authority, &only_client), ..sound(&authority) };
    is_refused(&named, &["shop/server", "may not be shown by a server"]);
    let two = [three().host(Ordinal(0)), three().host(Ordinal(1))];
    let two = Profile { names: &two, ..server.profile() };
    let named = UserProvided { server: read("server", &authority, &two), ..sound(&authority) };
    is_refused(&named, &["shop/server", "not for the name c-2.c.shop.svc"]);
    let stranger = Profile { common_name: "stranger", ..client.profile() };
    let named = UserProvided { client: read("client", &authority, &stranger), ..sound(&authority) };
    is_refused(&named, &["shop/client", "not root"]);
}

#[test]
fn a_certificate_that_is_about_to_expire_is_no_reason_to_refuse_it() {
    let named = sound(&authority());
    let days = |days: i64| NOW + SignedDuration::from_hours(24 * days);
    assert_eq!(checked(&named, days(300)), Ok(None));
    for now in [days(310), days(400), days(-1)] {
        assert!(checked(&named, now).unwrap().unwrap().contains("shop/server"));
    }
}

#[test]
fn an_authority_between_is_sent_behind_the_leaf_and_a_key_may_have_its_parameters_before_it() {
    let root_key = KeyPair::generate().unwrap();
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let root_certificate = root.self_signed(&root_key).unwrap();
    let root = Issuer::new(root, &root_key);
    let between_key = KeyPair::generate().unwrap();
    let mut between = CertificateParams::default();
    between.distinguished_name.push(rcgen::DnType::CommonName, "between");
    between.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    between.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let between_certificate = between.signed_by(&between_key, &root).unwrap();
    let between = Issuer::new(between, &between_key);
    let key = KeyPair::generate().unwrap();
    let hosts: Vec<_> = (0..3).map(|ordinal| three().host(Ordinal(ordinal))).collect();
    let mut leaf = CertificateParams::new(hosts).unwrap();
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = leaf.signed_by(&key, &between).unwrap();

    let ours = authority();
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let pair = |chain: String| Pair {
        certificate: chain.into_bytes(),
        key: format!("{parameters}{}", key.serialize_pem()).into_bytes(),
        trusted: root_certificate.pem().into_bytes(),
    };
    let peer = |chain| Read { place: "shop/peer".to_owned(), pair: pair(chain) };
    let now = Timestamp::constant(1_900_000_000, 0);
    let named = |chain| UserProvided { peer: peer(chain), ..sound(&ours) };
    let whole = named(format!("{}{}", leaf.pem(), between_certificate.pem()));
    assert!(whole.check(&three(), now).is_ok());
    let said = named(leaf.pem()).check(&three(), now).unwrap_err().to_string();
    assert!(said.contains("does not lead up"), "{said}");
}

#[test]
fn a_self_signed_certificate_of_an_authority_is_reported() {
    let hosts: Vec<_> = (0..3).map(|ordinal| three().host(Ordinal(ordinal))).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem().into_bytes();
    let pair = Pair { trusted: certificate.clone(), certificate, key: key.serialize_pem().into_bytes() };
    let named = UserProvided { peer: Read { place: "shop/peer".to_owned(), pair }, ..sound(&authority()) };
    is_refused(&named, &["shop/peer", "that of an authority (CA:TRUE)"]);
}
