//! Which DatabaseMigrations an object concerns that another owner changes: ConfigMaps with scripts, migrations that
//! others require, and migrations with the same series. Kept in memory: what is asked for is in the objects, and they
//! are all seen before any is reconciled.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::reflector::ObjectRef;

use super::spec::{self, Series};
use crate::controllers::Watched;
use crate::kinds::databasemigration::api::v1::DatabaseMigration;

/// A reference to a DatabaseMigration.
pub type Reference = ObjectRef<Watched<DatabaseMigration>>;

/// What an object asks for of others.
#[derive(Default)]
struct Asked {
    namespace: String,
    name: String,
    config_maps: BTreeSet<String>,
    migrations: BTreeSet<String>,
    series: Option<Series>,
}

/// Who asks for what.
pub struct Subjects {
    asked: Mutex<HashMap<String, Asked>>,
    told: UnboundedSender<Reference>,
}

impl Subjects {
    /// None yet. Who is concerned by a migration that was seen is sent.
    pub fn new(told: UnboundedSender<Reference>) -> Self {
        Self { asked: Mutex::default(), told }
    }

    /// An object is as it is now.
    pub fn seen(&self, object: &Watched<DatabaseMigration>, metadata: &ObjectMeta) {
        let (namespace, name) = key(metadata);
        match (object.read(), &metadata.uid) {
            (Ok(object), Some(uid)) => {
                let (config_maps, migrations) = spec::subjects(&object);
                let series = spec::series(&object);
                let asked = Asked {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    config_maps,
                    migrations,
                    series: series.clone(),
                };
                let before = self.lock().insert(uid.clone(), asked).and_then(|before| before.series);
                if before != series {
                    self.tell_writers(&namespace, &name, &[before, series]);
                }
            }
            // An object that cannot be read is not reconciled, and does not hold up others.
            (Err(_), Some(uid)) => self.forget(uid),
            (_, None) => {}
        }
        self.tell(self.concerned(&namespace, |asked| asked.migrations.contains(&name)));
    }

    /// The object of that uid is gone.
    pub fn forget(&self, uid: &str) {
        let gone = self.lock().remove(uid);
        let Some(Asked { namespace, name, series, .. }) = gone else { return };
        self.tell_writers(&namespace, &name, &[series]);
        self.tell(self.concerned(&namespace, |asked| asked.migrations.contains(&name)));
    }

    /// The names of the others that apply scripts to the series of that object.
    pub fn peers(&self, uid: &str) -> Vec<String> {
        let asked = self.lock();
        let Some(one) = asked.get(uid).filter(|one| one.series.is_some()) else { return Vec::new() };
        let others = asked.iter().filter(|(other, _)| *other != uid);
        let peers =
            others.filter(|(_, other)| other.namespace == one.namespace && other.series == one.series);
        peers.map(|(_, other)| other.name.clone()).collect()
    }

    /// The names on the shortest way from the object of that uid, by what each requires, back to it; none when no way leads
    /// back.
    pub fn ring(&self, uid: &str) -> Option<Vec<String>> {
        let asked = self.lock();
        let one = asked.get(uid)?;
        let required = |name: &str| {
            let of_name = |other: &&Asked| other.namespace == one.namespace && other.name == name;
            asked
                .values()
                .filter(of_name)
                .flat_map(|other| other.migrations.iter().cloned())
                .collect::<Vec<_>>()
        };
        let mut known = HashSet::new();
        let mut ways = VecDeque::from([vec![one.name.clone()]]);
        while let Some(way) = ways.pop_front() {
            for next in required(way.last()?) {
                let longer = [way.as_slice(), std::slice::from_ref(&next)].concat();
                if next == one.name {
                    return Some(longer);
                }
                if known.insert(next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }

    /// Who takes scripts from that ConfigMap.
    pub fn of_config_map(&self, metadata: &ObjectMeta) -> Vec<Reference> {
        let (namespace, name) = key(metadata);
        self.concerned(&namespace, |asked| asked.config_maps.contains(&name))
    }

    /// Sends the others that apply scripts to one of these series.
    fn tell_writers(&self, namespace: &str, name: &str, series: &[Option<Series>]) {
        let writes = |asked: &Asked| asked.series.is_some() && series.contains(&asked.series);
        self.tell(self.concerned(namespace, |asked| asked.name != name && writes(asked)));
    }

    fn tell(&self, concerned: Vec<Reference>) {
        for one in concerned {
            let _no_receiver = self.told.unbounded_send(one);
        }
    }

    fn concerned(&self, namespace: &str, asks: impl Fn(&Asked) -> bool) -> Vec<Reference> {
        let asked = self.lock();
        let found = asked.values().filter(|one| one.namespace == namespace && asks(one));
        found.map(|one| ObjectRef::new(&one.name).within(&one.namespace)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Namespace and name.
fn key(metadata: &ObjectMeta) -> (String, String) {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc::{UnboundedReceiver, unbounded};
    use serde_json::json;

    use super::*;

    fn object(name: &str, series: &str, mode: &str) -> Watched<DatabaseMigration> {
        let object = json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "DatabaseMigration",
            "metadata": {"name": name, "namespace": "a", "uid": format!("uid-{name}")},
            "spec": {"database": {"engine": "PostgreSQL", "host": "pg", "name": "shop"}, "scripts": [],
                "history": {"series": series}, "mode": mode},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_ring_is_found_by_its_shortest_way_and_by_those_in_it_alone() {
        let (sender, _receiver) = unbounded();
        let subjects = Subjects::new(sender);
        let seen = |name: &str, required: &[&str]| {
            let mut asked = serde_json::to_value(object(name, name, "Apply").read().unwrap()).unwrap();
            let names: Vec<_> = required.iter().map(|name| json!({"name": name})).collect();
            asked["spec"]["requires"] = names.into();
            let asked: Watched<DatabaseMigration> = serde_json::from_value(asked).unwrap();
            subjects.seen(&asked, &asked.read().unwrap().metadata);
        };
        for (name, required) in [
            ("a", &["b", "x"][..]),
            ("b", &["c"][..]),
            ("c", &["b", "a", "missing"][..]),
            ("x", &[][..]),
            ("outside", &["a"][..]),
            ("self", &["self"][..]),
        ] {
            seen(name, required);
        }
        let ring = |name: &str| subjects.ring(&format!("uid-{name}"));
        let way = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(ring("a"), way(&["a", "b", "c", "a"]));
        assert_eq!(ring("b"), way(&["b", "c", "b"]));
        assert_eq!(ring("self"), way(&["self", "self"]));
        for name in ["x", "outside", "unknown"] {
            assert_eq!(ring(name), None, "{name}");
        }
        seen("c", &["x"]);
        assert_eq!(ring("a"), None);
    }

    fn unreadable(metadata: &ObjectMeta) -> Watched<DatabaseMigration> {
        let text = json!({"metadata": metadata, "spec": {"scripts": 1}});
        serde_json::from_value(text).unwrap()
    }

    fn told(receiver: &mut UnboundedReceiver<Reference>) -> Vec<String> {
        std::iter::from_fn(|| receiver.try_recv().ok()).map(|one| one.name).collect()
    }

    #[test]
    fn the_others_of_a_series_are_triggered_when_one_comes_or_goes_and_by_nothing_else() {
        let (sender, mut receiver) = unbounded();
        let subjects = Subjects::new(sender);
        let seen = |object: &Watched<DatabaseMigration>| {
            subjects.seen(object, &object.read().unwrap().metadata);
        };
        seen(&object("one", "shop", "Apply"));
        seen(&object("other", "else", "Apply"));
        assert!(told(&mut receiver).is_empty());
        seen(&object("two", "shop", "Apply"));
        assert_eq!(told(&mut receiver), ["one"]);
        assert_eq!(subjects.peers("uid-one"), ["two"]);
        seen(&object("two", "shop", "Apply"));
        assert!(told(&mut receiver).is_empty());
        seen(&object("two", "shop", "Plan"));
        assert_eq!((told(&mut receiver), subjects.peers("uid-two").len()), (vec!["one".to_owned()], 0));
        seen(&object("two", "else", "Apply"));
        assert_eq!(told(&mut receiver), ["other"]);
        let metadata = ObjectMeta { uid: Some("uid-other".to_owned()), ..ObjectMeta::default() };
        subjects.seen(&unreadable(&metadata), &metadata);
        assert!(subjects.peers("uid-two").is_empty());
        assert_eq!(told(&mut receiver), ["two"]);
        subjects.forget("uid-one");
        assert!(subjects.peers("uid-one").is_empty());
    }
}
