use std::collections::HashMap;

use jiff::SignedDuration;

use super::*;
use crate::certs::tests::{START, verify};

const NAME: &str = "gatehouse.system.svc";

fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

/// A Secret whose writes are checked as the API server does: by the version they are based on.
#[derive(Default)]
struct Store {
    secret: Option<Secret>,
    version: u32,
}

impl Store {
    fn write(&mut self, change: Change) -> bool {
        if self.secret.as_ref().and_then(Secret::resource_version) != change.version {
            return false;
        }
        self.version += 1;
        let secret = self.secret.get_or_insert_default();
        secret.metadata.resource_version = Some(self.version.to_string());
        let data = secret.data.get_or_insert_default();
        data.extend(change.data.into_iter().map(|(key, value)| (key.to_owned(), value)));
        true
    }

    fn damage(&mut self, key: &str, value: &[u8]) {
        self.version += 1;
        let secret = self.secret.as_mut().unwrap();
        secret.metadata.resource_version = Some(self.version.to_string());
        secret.data.as_mut().unwrap().insert(key.to_owned(), ByteString(value.to_vec()));
    }
}

/// What one replica holds.
#[derive(Default)]
struct Replica {
    known: Option<Known>,
    leaf: Option<Leaf>,
}

impl Replica {
    /// What it would do with what it read.
    fn read(&self, store: &Store, now: Timestamp) -> Settled {
        let stored = Stored::of(store.secret.as_ref());
        let leaf = self.leaf.as_ref().map(Leaf::in_use);
        let known = self.known.as_ref().map(|known| known.authority.certificate());
        let step = stored.step(now, leaf, &names());
        stored.after(step, now, known, leaf, &names()).unwrap()
    }

    /// Rounds until there is nothing left to write.
    fn settle(&mut self, store: &mut Store, now: Timestamp) -> usize {
        for writes in 0..ATTEMPTS {
            match self.read(store, now) {
                Settled::Known(known) => {
                    let in_use = self.leaf.as_ref().map(Leaf::in_use);
                    let authority = known.authority.certificate();
                    if rotate::leaf(now, authority, in_use, InForce::Unseen) != LeafStep::Keep {
                        self.leaf = Some(known.authority.mint(&[NAME.to_owned()], now).unwrap());
                    }
                    self.known = Some(*known);
                    return writes;
                }
                Settled::Change(change) => assert!(store.write(change)),
            }
        }
        panic!("never settles");
    }

    fn bundle(&self) -> Bundle {
        self.known.as_ref().unwrap().bundle.clone().unwrap()
    }

    fn chain(&self) -> Vec<rustls::pki_types::CertificateDer<'static>> {
        self.leaf.as_ref().unwrap().chain()
    }
}

#[test]
fn replicas_that_start_at_once_agree_on_the_authority_of_the_first_writer() {
    let mut store = Store::default();
    let (mut one, mut two) = (Replica::default(), Replica::default());
    let (Settled::Change(first), Settled::Change(second)) =
        (one.read(&store, START), two.read(&store, START))
    else {
        panic!("both want to create");
    };
    assert!(store.write(first));
    assert!(!store.write(second), "the second is refused");
    assert_eq!(one.settle(&mut store, START), 0);
    assert_eq!(two.settle(&mut store, START), 0);
    assert_eq!(one.bundle(), two.bundle());
    for replica in [&one, &two] {
        verify(&replica.chain(), &one.bundle(), NAME, START).unwrap();
    }
    assert_ne!(one.chain(), two.chain(), "each has a leaf of its own");
}

#[test]
fn what_was_written_is_read_back_as_it_was() {
    let mut store = Store::default();
    Replica::default().settle(&mut store, START);
    let before = store.secret.clone();
    assert_eq!(Replica::default().settle(&mut store, START), 0);
    assert_eq!(store.secret, before);
    let keys: Vec<_> = before.unwrap().data.unwrap().into_keys().collect();
    assert_eq!(keys, [BUNDLE, CERTIFICATE, KEY]);
}

/// Years of two replicas that see each other's writes, with every bundle and leaf that was ever in force: at each
/// hour, each server is trusted by each client that has the newest bundle, or that of ten minutes ago.
#[test]
fn through_years_of_renewals_every_leaf_verifies_with_the_current_bundle_and_the_one_before() {
    let mut store = Store::default();
    let mut replicas = [Replica::default(), Replica::default()];
    let mut before: Option<Bundle> = None;
    let (mut writes, mut leaves) = (0, HashMap::new());
    for hour in (0..24 * 365 * 2).step_by(12) {
        let now = START + SignedDuration::from_hours(hour);
        for replica in &mut replicas {
            writes += replica.settle(&mut store, now);
        }
        let current = replicas[1].bundle();
        for (index, replica) in replicas.iter().enumerate() {
            leaves.entry((index, replica.chain())).or_insert(hour);
            for bundle in before.iter().chain([&current]) {
                verify(&replica.chain(), bundle, NAME, now).unwrap();
            }
        }
        before = Some(current);
    }
    assert!((4..=9).contains(&writes), "{writes} writes: renewals and expiries only");
    assert!(leaves.len() > 2 * 140, "{} leaves", leaves.len());
}

#[test]
fn a_deleted_secret_gives_a_new_key_while_the_old_leaves_stay_trusted() {
    let mut store = Store::default();
    let mut running = Replica::default();
    running.settle(&mut store, START);
    let old_bundle = running.bundle();
    store.secret = None;
    let lost = START + SignedDuration::from_hours(30);
    let mut newcomer = Replica::default();
    newcomer.settle(&mut store, lost); // knows nothing of the old authority
    running.settle(&mut store, lost);
    newcomer.settle(&mut store, lost);
    assert_eq!(running.bundle(), newcomer.bundle());
    assert_eq!(running.bundle().certificates().len(), 2);
    verify(&running.chain(), &old_bundle, NAME, lost).unwrap();
    verify(&running.chain(), &running.bundle(), NAME, lost).unwrap();
    verify(&newcomer.chain(), &running.bundle(), NAME, lost).unwrap();
    let trusted = lost + rotate::PROPAGATION;
    running.settle(&mut store, trusted);
    verify(&running.chain(), &old_bundle, NAME, trusted).unwrap_err();
    verify(&running.chain(), &running.bundle(), NAME, trusted).unwrap();
    let over = lost + rotate::OVERLAP;
    for _ in 0..2 {
        running.settle(&mut store, over);
        newcomer.settle(&mut store, over);
    }
    assert_eq!(running.bundle().certificates().len(), 1, "the old key is gone");
}

#[test]
fn an_unusable_secret_is_replaced_and_what_can_be_read_of_its_bundle_stays() {
    let other = Authority::create(START).unwrap();
    let damages: [(&str, &[u8]); 5] = [
        (KEY, b"nonsense"),
        (KEY, &other.key_pem()),
        (CERTIFICATE, b""),
        (CERTIFICATE, &other.certificate_pem()),
        (CERTIFICATE, b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ];
    for (key, value) in damages {
        let mut store = Store::default();
        let mut running = Replica::default();
        running.settle(&mut store, START);
        store.damage(key, value);
        let mut newcomer = Replica::default();
        assert_eq!(newcomer.settle(&mut store, START), 1);
        assert_eq!(running.settle(&mut store, START), 0, "both agree");
        verify(&running.chain(), &newcomer.bundle(), NAME, START).unwrap();
        verify(&newcomer.chain(), &running.bundle(), NAME, START).unwrap();
    }
}

#[test]
fn a_damaged_bundle_is_restored_without_a_new_key() {
    for damage in [&b""[..], b"nonsense"] {
        let mut store = Store::default();
        let mut replica = Replica::default();
        replica.settle(&mut store, START);
        let bundle = replica.bundle();
        store.damage(BUNDLE, damage);
        assert_eq!(replica.settle(&mut store, START), 1);
        assert_eq!(replica.bundle(), bundle);
    }
}

#[test]
fn an_authority_that_an_administrator_puts_there_is_taken_up() {
    let mut store = Store::default();
    let mut replica = Replica::default();
    replica.settle(&mut store, START);
    let theirs = Authority::create(START).unwrap();
    store.damage(KEY, &theirs.key_pem());
    store.damage(CERTIFICATE, &theirs.certificate_pem());
    assert_eq!(replica.settle(&mut store, START), 1, "only the bundle is corrected");
    assert!(replica.bundle().certificates().contains(theirs.certificate()));
    assert_eq!(replica.bundle().certificates().len(), 2);
}

#[test]
fn nothing_prints_a_private_key() {
    let authority = Authority::create(START).unwrap();
    let leaf = authority.mint(&[NAME.to_owned()], START).unwrap();
    for printed in [format!("{authority:?}"), format!("{leaf:?}")] {
        assert!(printed.len() < 120, "{printed}");
        assert!(!printed.to_lowercase().contains("key"), "{printed}");
    }
}

#[test]
fn what_the_authority_signs_for_others_is_worth_nothing() {
    for (names, others) in [
        (["gatehouse.system.svc", "gatehouse"], ["kubernetes.default.svc", "10.0.0.1"]),
        (["192.0.2.1", "2001:db8::1"], ["kubernetes.default.svc", "10.0.0.1"]),
    ] {
        let names = names.map(str::to_owned);
        let authority = Authority::create_for(&names, START).unwrap().reissue_for(&names, START).unwrap();
        let bundle = Bundle::of([authority.certificate().clone()]).unwrap();
        for (name, is_good) in names
            .iter()
            .map(|name| (name, true))
            .chain(others.map(str::to_owned).iter().map(|name| (name, false)))
        {
            let leaf = authority.mint(std::slice::from_ref(name), START).unwrap();
            assert_eq!(verify(&leaf.chain(), &bundle, name, START).is_ok(), is_good, "{names:?}: {name}");
        }
    }
}

#[test]
fn a_replica_by_another_name_has_the_authority_issued_for_both() {
    let mut store = Store::default();
    Replica::default().settle(&mut store, START);
    let stored = Stored::of(store.secret.as_ref());
    let other = vec!["192.0.2.1".to_owned()];
    assert_eq!(stored.step(START, None, &other), AuthorityStep::Reissue);
    let Settled::Change(change) = stored.after(AuthorityStep::Reissue, START, None, None, &other).unwrap()
    else {
        panic!("nothing is written");
    };
    assert!(store.write(change));
    let stored = Stored::of(store.secret.as_ref());
    assert!([names(), other].iter().all(|names| stored.step(START, None, names) == AuthorityStep::Keep));
    assert_eq!(stored.trusted.len(), 3, "the one before stays trusted");
}
