//! The certificates of an etcd cluster, in Secrets of a real API server. The clusters rest, so that nobody but the test
//! works them; what the test hands over is the same object at work.

use futures::future::join_all;
use gatehouse::api::etcdcluster::v1::{EtcdCluster, NamedReference, TlsMode, TlsSecrets};
use gatehouse::certs::certificate::Certificate;
use gatehouse::certs::mint::Usage;
use gatehouse::certs::verify::is_taken;
use gatehouse::controllers::etcdcluster::certificates::{Ends, Standing, ensure};
use gatehouse::controllers::etcdcluster::names;
use gatehouse::controllers::etcdcluster::observation::Certificates;
use gatehouse::controllers::etcdcluster::spec::Spec;
use gatehouse::runtime::clock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, Objects};
use serde_json::{Value, json};

use crate::Test;

pub const TESTS: &[Test] = &[
    ("what_is_missing_is_made_and_then_left_alone", what_is_missing_is_made_and_then_left_alone),
    ("leaves_are_renewed_and_their_authority_is_not", leaves_are_renewed_and_their_authority_is_not),
    (
        "an_authority_that_is_taken_away_is_followed_member_by_member",
        an_authority_that_is_taken_away_is_followed_member_by_member,
    ),
    ("two_operators_end_up_with_one_authority", two_operators_end_up_with_one_authority),
    ("secrets_of_others_are_never_touched", secrets_of_others_are_never_touched),
    ("where_work_rests_nothing_is_made", where_work_rests_nothing_is_made),
    ("secrets_that_the_spec_names_are_looked_at", secrets_that_the_spec_names_are_looked_at),
];

const SECRETS: [&str; 4] = ["c-ca", "c-server-tls", "c-peer-tls", "c-client-tls"];

/// A cluster that rests, and the administrator.
struct Place<'a> {
    namespace: Namespace<'a>,
    objects: &'a Objects,
    cluster: EtcdCluster,
}

impl<'a> Place<'a> {
    fn new(bed: &'a Bed) -> Self {
        let namespace = bed.namespace();
        let made = namespace.create(&json!({
            "apiVersion": "gatehouse.dev/v1",
            "kind": "EtcdCluster",
            "metadata": {"name": "c", "namespace": namespace.name},
            "spec": {"paused": true},
        }));
        let mut cluster: EtcdCluster = serde_json::from_value(made).unwrap();
        cluster.spec.paused = None;
        Self { namespace, objects: &bed.objects, cluster }
    }

    fn standing(&self, now: Timestamp) -> Standing {
        let spec = Spec::resolve(&self.cluster, &[]);
        self.objects.with(async |client| ensure(&client, &spec, &Ends::default(), now).await)
    }

    fn ensure(&self, now: Timestamp) -> (Certificates, Option<String>) {
        let Standing { state, words, .. } = self.standing(now);
        (state, words)
    }

    #[track_caller]
    fn is_valid(&self, now: Timestamp) {
        assert_eq!(self.ensure(now), (Certificates::Valid, None));
    }

    /// Makes the pod of a member as it is made while the certificates are as they were found; one that is there goes.
    fn restart(&self, member: &str, standing: &Standing) {
        let gone = self.objects.one(Ask {
            method: "DELETE",
            path: self.namespace.path(&format!("pod/{member}")),
            body: json!({"gracePeriodSeconds": 0}),
        });
        assert!(gone.is_ok() || gone.is_err_and(|refusal| refusal.code == 404));
        let template =
            names::template_text(&Spec::resolve(&self.cluster, &[]).desired(standing.trust).template);
        self.namespace.create(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": member, "annotations": {names::TEMPLATE: template}},
            "spec": {"containers": [{"name": "etcd", "image": "etcd"}]},
        }));
    }

    /// Whom each Secret of a leaf has trusted, and whether the authority of now has signed all.
    fn overlap(&self, now: Timestamp) -> (Vec<usize>, bool) {
        let secrets = self.secrets();
        let (authority, leaves) = secrets.split_first().unwrap();
        let signs = certificates(authority, "ca.crt");
        let counts = leaves.iter().map(|leaf| certificates(leaf, "ca.crt").len()).collect();
        let all_signed = leaves
            .iter()
            .all(|leaf| is_taken(&certificates(leaf, "tls.crt")[0], &signs, &[Usage::Client], &[], now));
        (counts, all_signed)
    }

    fn secret(&self, name: &str) -> Secret {
        serde_json::from_value(self.namespace.get("secret", name)).unwrap()
    }

    fn secrets(&self) -> Vec<Secret> {
        SECRETS.iter().map(|name| self.secret(name)).collect()
    }

    fn delete(&self, name: &str) {
        self.namespace.delete(&format!("secret/{name}"));
    }

    fn is_missing(&self, name: &str) -> bool {
        let found = self.objects.one(Ask::get(self.namespace.path(&format!("secret/{name}"))));
        found.is_err_and(|refusal| refusal.code == 404)
    }

    fn create(&self, secret: &Value) {
        self.namespace.create(secret);
    }

    /// Whether all leaves are taken by whoever trusts what stands beside each other one.
    fn is_of_one_piece(&self, now: Timestamp) -> bool {
        let leaves = &self.secrets()[1..];
        leaves.iter().all(|leaf| {
            leaves.iter().all(|other| {
                let leaf = &certificates(leaf, "tls.crt")[0];
                is_taken(leaf, &certificates(other, "ca.crt"), &[Usage::Client], &[], now)
            })
        })
    }
}

fn certificates(secret: &Secret, key: &str) -> Vec<Certificate> {
    Certificate::read_all(&secret.data.as_ref().unwrap()[key].0)
}

fn days(days: i64) -> Timestamp {
    clock::now() + SignedDuration::from_hours(24 * days)
}

fn what_is_missing_is_made_and_then_left_alone(bed: &Bed) {
    let place = Place::new(bed);
    let now = clock::now();
    place.is_valid(now);
    let made = place.secrets();
    let uid = place.cluster.metadata.uid.as_ref().unwrap();
    for secret in &made {
        let owner = &secret.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((&owner.uid, owner.controller), (uid, Some(true)));
    }
    assert!(made[1..].iter().all(|leaf| leaf.type_.as_deref() == Some("kubernetes.io/tls")));
    assert!(place.is_of_one_piece(now));

    place.is_valid(now);
    assert_eq!(place.secrets(), made, "what is settled is not written again");

    place.delete("c-server-tls");
    place.is_valid(now);
    let again = place.secrets();
    assert_eq!((&again[0], &again[2..]), (&made[0], &made[2..]));
    assert_ne!(again[1].data, made[1].data);
    assert!(place.is_of_one_piece(now));
}

fn leaves_are_renewed_and_their_authority_is_not(bed: &Bed) {
    let place = Place::new(bed);
    place.is_valid(days(0));
    let made = place.secrets();
    place.is_valid(days(240));
    assert_eq!(place.secrets(), made);
    place.is_valid(days(250));
    let renewed = place.secrets();
    assert_eq!(renewed[0], made[0]);
    for (renewed, made) in renewed[1..].iter().zip(&made[1..]) {
        assert_ne!(certificates(renewed, "tls.crt"), certificates(made, "tls.crt"));
        assert_eq!(certificates(renewed, "ca.crt"), certificates(made, "ca.crt"));
    }
    assert!(place.is_of_one_piece(days(250)));
}

fn an_authority_that_is_taken_away_is_followed_member_by_member(bed: &Bed) {
    let place = Place::new(bed);
    let before = place.standing(days(0));
    let made = place.secrets();
    for member in ["c-0", "c-1", "c-2"] {
        place.restart(member, &before);
    }
    assert_eq!(place.standing(days(0)), before);

    place.delete("c-ca");
    let both = place.standing(days(1));
    assert_eq!(both.state, Certificates::Valid);
    assert!(both.words.as_ref().unwrap().contains("each member is restarted"));
    assert_ne!(both.trust, before.trust, "pods are made of something else");
    assert_eq!(place.overlap(days(1)), (vec![2; 3], false));
    for member in ["c-2", "c-1"] {
        place.restart(member, &both);
        assert_eq!(place.standing(days(2)), both, "one member does not know it yet");
    }
    for (leaf, made) in place.secrets()[1..].iter().zip(&made[1..]) {
        assert_eq!(certificates(leaf, "tls.crt"), certificates(made, "tls.crt"), "what members take");
    }

    place.restart("c-0", &both);
    assert_eq!(place.standing(days(1)), both, "clients have had no time to read it");
    let signed = place.standing(days(2));
    assert_eq!((signed.state, signed.trust), (Certificates::Valid, both.trust), "nobody has to start again");
    assert!(signed.words.unwrap().contains("for a day"));
    assert_eq!(place.overlap(days(2)), (vec![2; 3], true));
    assert!(place.is_of_one_piece(days(2)));

    let after = place.standing(days(3));
    assert_eq!((after.state, after.words), (Certificates::Valid, None));
    assert!(![before.trust, both.trust].contains(&after.trust), "members forget it at their next start");
    assert_eq!(place.overlap(days(3)), (vec![1; 3], true));
}

fn two_operators_end_up_with_one_authority(bed: &Bed) {
    let place = Place::new(bed);
    let (now, ends) = (clock::now(), Ends::default());
    let spec = Spec::resolve(&place.cluster, &[]);
    let said =
        place.objects.with(async |client| join_all((0..2).map(|_| ensure(&client, &spec, &ends, now))).await);
    assert!(said.iter().all(|said| (said.state, &said.words) == (Certificates::Valid, &None)), "{said:?}");
    assert_eq!(said[0], said[1]);
    assert!(place.is_of_one_piece(now));
}

fn secrets_of_others_are_never_touched(bed: &Bed) {
    for name in SECRETS {
        let place = Place::new(bed);
        let others = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "b"}});
        place.create(&others);
        let before = place.secret(name);
        let (state, words) = place.ensure(clock::now());
        assert_eq!(state, Certificates::Missing);
        let words = words.unwrap();
        assert!(
            words.contains(&format!("{}/{name} belongs to somebody else", place.namespace.name)),
            "{words}"
        );
        assert_eq!(place.secret(name), before);
        place.delete(name);
        place.is_valid(clock::now());
    }
}

fn where_work_rests_nothing_is_made(bed: &Bed) {
    let mut place = Place::new(bed);
    place.cluster.spec.paused = Some(true);
    let (state, words) = place.ensure(days(0));
    assert_eq!(state, Certificates::Missing);
    assert!(words.unwrap().contains("is missing"));
    assert!(SECRETS.iter().all(|name| place.is_missing(name)));

    place.cluster.spec.paused = None;
    place.is_valid(days(0));
    place.cluster.spec.paused = Some(true);
    place.is_valid(days(240));
    let made = place.secrets();
    assert_eq!(place.ensure(days(250)).0, Certificates::Expiring);
    assert_eq!(place.secrets(), made);
}

fn secrets_that_the_spec_names_are_looked_at(bed: &Bed) {
    let mut place = Place::new(bed);
    place.is_valid(days(0));
    let made = place.secrets();
    let named = |name: &str| Some(NamedReference { name: name.to_owned() });
    let mut tls = place.cluster.spec.tls.clone().unwrap();
    tls.mode = Some(TlsMode::Secrets);
    tls.secrets = Some(TlsSecrets {
        server: named("c-server-tls"),
        peer: named("c-peer-tls"),
        client: named("theirs"),
        client_ca: None,
        peer_ca: named("c-client-tls"),
    });
    place.cluster.spec.tls = Some(tls);
    let said = |state, what: &str| {
        let (found, words) = place.ensure(days(0));
        assert!(words.as_ref().is_some_and(|words| words.contains(what)), "{words:?}");
        assert_eq!(found, state);
    };
    said(Certificates::Missing, "theirs is missing");
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs"}, "data": {}});
    place.create(&theirs);
    said(Certificates::Unfit, "theirs has no certificate in ca.crt");
    place.delete("theirs");
    place.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs"}, "data": made[3].data,
    }));
    place.is_valid(days(0));
    let (state, words) = place.ensure(days(310));
    assert_eq!(state, Certificates::Expiring);
    assert!(words.unwrap().contains("c-server-tls"));
    assert_eq!(place.secrets(), made, "they are only read");
}
