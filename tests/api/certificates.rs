//! The certificates of an etcd cluster, in Secrets of a real API server, kept by an operator whose clock jumps. No etcd
//! runs here: what members make of them is in tests/certificates.rs and on a real node.

use gatehouse::certs::certificate::Certificate;
use gatehouse::certs::mint::{Authority, Name, Usage};
use gatehouse::certs::verify::is_taken;
use gatehouse::kinds::etcdcluster::api::v1::EtcdCluster;
use gatehouse::kinds::etcdcluster::resources::certificates::{AUTHORITY_LIFETIME, authority_name, leaves};
use gatehouse::kinds::etcdcluster::spec::Spec;
use gatehouse::runtime::clock;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, condition};
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use crate::Test;
use crate::site::Site;

pub const TESTS: &[Test] = &kit::tests![
    what_is_missing_is_made_and_then_left_alone,
    clients_come_by_a_load_balancer_too,
    leaves_are_renewed_and_their_authority_is_not,
    an_authority_that_is_taken_away_is_followed_by_another,
    two_operators_end_up_with_one_authority,
    secrets_of_others_are_never_touched,
    where_work_rests_nothing_is_made,
    secrets_that_the_spec_names_are_looked_at,
];

const PARTS: [&str; 4] = ["ca", "server-tls", "peer-tls", "client-tls"];

/// The minutes of a day.
const DAY: i64 = 24 * 60;

/// Clusters that an operator works, and its clock.
struct Place<'a> {
    namespace: &'a Namespace<'a>,
    site: Site<'a>,
    /// What the clock shows, in minutes after the test began.
    minutes: i64,
}

impl<'a> Place<'a> {
    fn new(namespace: &'a Namespace<'a>) -> Self {
        Self { namespace, site: Site::new(namespace), minutes: 0 }
    }

    /// Makes a cluster of one member.
    fn create(&self, name: &str, more: &Value) -> Value {
        let mut object = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": name},
            "spec": {"replicas": 1}});
        for (key, value) in more.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        self.namespace.create(&object)
    }

    fn pause(&self, name: &str, is_paused: bool) {
        self.namespace.change(&format!("etcdcluster/{name}"), &json!({"spec": {"paused": is_paused}}));
    }

    /// Has so many days have passed since the test began.
    fn until_day(&mut self, day: i64) {
        self.minutes = day * DAY;
        self.site.jump(self.minutes);
    }

    fn now(&self) -> Timestamp {
        self.site.at(self.minutes)
    }

    /// Waits until the operator has looked at the cluster from the beginning to the end.
    fn look(&mut self, name: &str) {
        let looked = format!("/etcdclusters/{name}");
        let count = |site: &Site| {
            let asked = site.asked();
            asked.iter().filter(|asked| asked.starts_with("get ") && asked.ends_with(&looked)).count()
        };
        // The second begins after the first has ended.
        for _ in 0..2 {
            let before = count(&self.site);
            self.minutes += 1;
            self.site.jump(self.minutes);
            eventually(|| if count(&self.site) > before { Ok(()) } else { Err("it has not looked") });
        }
    }

    /// Waits until the condition of the certificates is that, with these words in it.
    #[track_caller]
    fn until(&self, name: &str, reason: &str, words: &str) {
        let object = format!("etcdcluster/{name}");
        self.namespace.bed.objects.until(&object, &self.namespace.name, |found| {
            let said = condition(found, "CertificatesReady");
            let has_words = said["message"].as_str().is_some_and(|message| message.contains(words));
            if said["reason"] == reason && has_words { Ok(()) } else { Err(said.to_string()) }
        });
    }

    /// Waits until the Secrets are like that, and the status says that all is well.
    #[track_caller]
    fn settle(&self, name: &str, is_so: impl Fn(&[Secret]) -> bool) -> Vec<Secret> {
        let secrets = eventually(|| {
            let secrets = self.secrets(name)?;
            if is_so(&secrets) { Ok(secrets) } else { Err("they are otherwise".to_owned()) }
        });
        self.until(name, "CertificatesValid", "");
        secrets
    }

    fn secrets(&self, name: &str) -> Result<Vec<Secret>, String> {
        let names = PARTS.map(|part| format!("secret/{name}-{part}"));
        let found = names.iter().map(|name| self.namespace.bed.objects.get(name, &self.namespace.name));
        found.map(|found| serde_json::from_value(found?).map_err(|error| error.to_string())).collect()
    }

    fn has_no_secret(&self, name: &str) -> bool {
        PARTS.iter().all(|part| {
            let path = self.namespace.path(&format!("secret/{name}-{part}"));
            self.namespace.bed.objects.one(Ask::get(path)).is_err_and(|refusal| refusal.code == 404)
        })
    }
}

fn certificates(secret: &Secret, key: &str) -> Vec<Certificate> {
    Certificate::read_all(&secret.data.as_ref().unwrap()[key].0)
}

/// The leaves that Secrets hold.
fn shown(secrets: &[Secret]) -> Vec<Certificate> {
    secrets[1..].iter().map(|leaf| certificates(leaf, "tls.crt").remove(0)).collect()
}

/// How many each Secret with a leaf has trusted.
fn trusted(secrets: &[Secret]) -> Vec<usize> {
    secrets[1..].iter().map(|leaf| certificates(leaf, "ca.crt").len()).collect()
}

/// Whether a client that trusts the CA stored with each leaf accepts all of them.
fn are_of_one_piece(secrets: &[Secret], now: Timestamp) -> bool {
    secrets[1..].iter().all(|beside| {
        let roots = certificates(beside, "ca.crt");
        shown(secrets).iter().all(|leaf| is_taken(leaf, &roots, &[Usage::Client], &[], now))
    })
}

/// Whether the authority has signed every leaf.
fn are_signed(secrets: &[Secret], now: Timestamp) -> bool {
    let signs = certificates(&secrets[0], "ca.crt");
    shown(secrets).iter().all(|leaf| is_taken(leaf, &signs, &[Usage::Client], &[], now))
}

fn what_is_missing_is_made_and_then_left_alone(bed: &Bed) {
    let namespace = bed.namespace();
    let mut place = Place::new(&namespace);
    let _operator = place.site.start(Fate::Lives);
    let cluster = place.create("c", &json!({}));
    let made = place.settle("c", |secrets| are_of_one_piece(secrets, clock::now()));
    let uid = cluster["metadata"]["uid"].as_str();
    for secret in &made {
        let owner = &secret.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((Some(owner.uid.as_str()), owner.controller), (uid, Some(true)));
    }
    assert!(made[1..].iter().all(|leaf| leaf.type_.as_deref() == Some("kubernetes.io/tls")));
    place.look("c");
    assert_eq!(place.secrets("c").unwrap(), made, "what is settled is not written again");

    namespace.delete("secret/c-server-tls");
    place.site.jump(place.minutes + 1);
    let again = place.settle("c", |secrets| shown(secrets) != shown(&made));
    assert_eq!((&again[0], &again[2..]), (&made[0], &made[2..]));
    assert!(are_of_one_piece(&again, clock::now()));
}

fn clients_come_by_a_load_balancer_too(bed: &Bed) {
    let namespace = bed.namespace();
    let place = Place::new(&namespace);
    let _operator = place.site.start(Fate::Lives);
    place.create("c", &json!({}));
    let made = place.settle("c", |_| true);
    let template =
        || bed.objects.until("statefulset/c", &namespace.name, |found| Ok(found["spec"]["template"].clone()));
    let before = template();
    let names = ["etcd.example.com", "192.0.2.7"].map(ToOwned::to_owned);
    let annotation = "external-dns.alpha.kubernetes.io/hostname";
    namespace.change(
        "etcdcluster/c",
        &json!({"spec": {"tls": {"extraNames": names},
            "clientService": {"type": "LoadBalancer", "annotations": {annotation: names[0]}}}}),
    );
    let shows_them = |secrets: &[Secret]| {
        let roots = certificates(&secrets[1], "ca.crt");
        is_taken(&shown(secrets)[0], &roots, &[Usage::Server], &names, clock::now())
    };
    let shown_now = place.settle("c", shows_them);
    assert_eq!(
        (&shown_now[0], &shown_now[2..]),
        (&made[0], &made[2..]),
        "of what members show to clients alone"
    );
    let until = |type_: &str, hostname: Value| {
        bed.objects.until("service/c-client", &namespace.name, |service| {
            let is_there = service["spec"]["type"] == *type_;
            let has_it = service["metadata"]["annotations"][annotation] == hostname;
            if is_there && has_it { Ok(service.clone()) } else { Err(service.to_string()) }
        })
    };
    until("LoadBalancer", json!(names[0]));
    assert_eq!(template(), before, "no member is restarted");
    namespace.change("etcdcluster/c", &json!({"spec": {"clientService": null}}));
    let service = until("ClusterIP", Value::Null);
    assert_eq!(service["spec"]["ports"][0]["nodePort"], Value::Null);
}

fn leaves_are_renewed_and_their_authority_is_not(bed: &Bed) {
    let namespace = bed.namespace();
    let mut place = Place::new(&namespace);
    let _operator = place.site.start(Fate::Lives);
    place.create("c", &json!({}));
    let made = place.settle("c", |_| true);
    place.until_day(240);
    place.look("c");
    assert_eq!(place.secrets("c").unwrap(), made);
    place.until_day(250);
    let is_other = |secrets: &[Secret]| shown(secrets).iter().zip(shown(&made)).all(|(new, old)| *new != old);
    let renewed = place.settle("c", is_other);
    assert_eq!(renewed[0], made[0]);
    for (renewed, made) in renewed[1..].iter().zip(&made[1..]) {
        assert_eq!(certificates(renewed, "ca.crt"), certificates(made, "ca.crt"));
    }
    assert!(are_of_one_piece(&renewed, place.now()));
}

/// No member of three meets what it does not trust: tests/model looks at every order in which that can happen.
fn an_authority_that_is_taken_away_is_followed_by_another(bed: &Bed) {
    let namespace = bed.namespace();
    let mut place = Place::new(&namespace);
    let _operator = place.site.start(Fate::Lives);
    place.create("c", &json!({}));
    let made = place.settle("c", |_| true);
    let pod = || bed.objects.until("pod/c-0", &namespace.name, |pod| Ok(pod["metadata"]["uid"].clone()));
    let before = pod();

    namespace.delete("secret/c-ca");
    place.until_day(1);
    let both = place.settle("c", |secrets| trusted(secrets) == [2; 3]);
    assert_eq!(shown(&both), shown(&made), "what members take");
    place.until("c", "CertificatesValid", "each member is restarted");
    eventually(|| if pod() == before { Err("the previous pod") } else { Ok(()) });

    place.minutes += 10;
    place.site.jump(place.minutes);
    let signed = place.settle("c", |secrets| are_signed(secrets, place.now()));
    assert_eq!((trusted(&signed), are_of_one_piece(&signed, place.now())), (vec![2; 3], true));
    place.until("c", "CertificatesValid", "for a day");

    place.until_day(3);
    let after = place.settle("c", |secrets| trusted(secrets) == [1; 3]);
    assert_eq!((shown(&after), are_of_one_piece(&after, place.now())), (shown(&signed), true));
    place.until("c", "CertificatesValid", "every certificate is there and valid");
}

fn two_operators_end_up_with_one_authority(bed: &Bed) {
    let namespace = bed.namespace();
    let mut place = Place::new(&namespace);
    let _operators = [place.site.start(Fate::Lives), place.site.start(Fate::Lives)];
    for name in ["a", "b", "c"] {
        place.create(name, &json!({}));
    }
    for name in ["a", "b", "c"] {
        let made = place.settle(name, |secrets| are_of_one_piece(secrets, clock::now()));
        place.look(name);
        assert_eq!(place.secrets(name).unwrap(), made);
        assert_eq!(trusted(&made), [1; 3], "no other one was trusted");
    }
}

fn secrets_of_others_are_never_touched(bed: &Bed) {
    let namespace = bed.namespace();
    let mut place = Place::new(&namespace);
    let _operator = place.site.start(Fate::Lives);
    let clusters = ["a", "b", "c", "d"];
    let theirs = clusters.iter().zip(PARTS).map(|(name, part)| {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-{part}")},
            "stringData": {"a": "b"}});
        (*name, part, namespace.create(&object))
    });
    for (name, part, theirs) in theirs.collect::<Vec<_>>() {
        place.create(name, &json!({}));
        let secret = format!("{name}-{part}");
        let words = format!("{}/{secret} belongs to another owner", namespace.name);
        place.until(name, "SecretUnreadable", &words);
        place.look(name);
        assert_eq!(namespace.get("secret", &secret), theirs);
        let others = PARTS.iter().filter(|other| **other != part);
        for other in others {
            let path = namespace.path(&format!("secret/{name}-{other}"));
            assert!(bed.objects.one(Ask::get(path)).is_err_and(|refusal| refusal.code == 404));
        }
        namespace.delete(&format!("secret/{secret}"));
        place.minutes += 1;
        place.site.jump(place.minutes);
        place.settle(name, |_| true);
    }
}

fn where_work_rests_nothing_is_made(bed: &Bed) {
    let namespace = bed.namespace();
    let mut place = Place::new(&namespace);
    let _operator = place.site.start(Fate::Lives);
    place.create("c", &json!({"paused": true}));
    place.until("c", "SecretUnreadable", "c-server-tls is missing");
    place.look("c");
    assert!(place.has_no_secret("c"));

    place.pause("c", false);
    let made = place.settle("c", |_| true);
    place.pause("c", true);
    place.until_day(240);
    place.look("c");
    place.until("c", "CertificatesValid", "");
    place.until_day(310);
    place.until("c", "CertificateExpiring", "has expired or soon will");
    place.look("c");
    assert_eq!(place.secrets("c").unwrap(), made);
}

fn secrets_that_the_spec_names_are_looked_at(bed: &Bed) {
    let namespace = bed.namespace();
    let mut place = Place::new(&namespace);
    let _operator = place.site.start(Fate::Lives);
    let secrets = json!({"serverRef": {"name": "c-server-tls"}, "peerRef": {"name": "c-peer-tls"},
        "clientRef": {"name": "theirs"}, "peerCARef": {"name": "c-client-tls"}});
    let made = place.create("c", &json!({"tls": {"mode": "Secrets", "secrets": secrets}}));
    let cluster: EtcdCluster = serde_json::from_value(made).unwrap();
    let spec = Spec::resolve(&cluster, &[]);
    let common_name = authority_name(&spec);
    let name = Name { common_name: &common_name, lifetime: AUTHORITY_LIFETIME };
    let authority = Authority::create_as(name, clock::now()).unwrap();
    let put = |name: &str, data: Value| {
        namespace
            .create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}))
    };
    let [server, peer, client] = leaves(&spec).unwrap().map(|leaf| {
        let signed = authority.sign(&leaf.profile(), clock::now()).unwrap();
        let (certificate, key) = (ByteString(signed.certificate_pem()), ByteString(signed.key_pem()));
        json!({"tls.crt": certificate, "tls.key": key, "ca.crt": ByteString(authority.certificate_pem())})
    });
    let made = [put("c-server-tls", server), put("c-peer-tls", peer), put("c-client-tls", client.clone())];
    place.site.jump(1);
    place.until("c", "SecretUnreadable", "theirs is missing");
    put("theirs", json!({}));
    place.site.jump(2);
    place.until("c", "CertificateInvalid", "theirs has no certificate in ca.crt");
    namespace.delete("secret/theirs");
    put("theirs", client);
    place.site.jump(3);
    place.until("c", "CertificatesValid", "");
    place.until_day(310);
    place.until("c", "CertificateExpiring", "c-server-tls");
    let now = ["c-server-tls", "c-peer-tls", "c-client-tls"].map(|name| namespace.get("secret", name));
    assert_eq!(now, made, "they are only read");
}
