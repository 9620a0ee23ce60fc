//! Which TDSet refers to which object: its workload, its autoscaler, the ConfigMaps with its dates.
//!
//! Guarantees: of several TDSets with one workload or one autoscaler, exactly one holds it: the oldest, and of equally
//! old ones that with the least uid. So all replicas and all restarts agree. When that changes, only its old and its
//! new holder are reconciled: where n TDSets claim one object, n newcomers cause n reconciliations and not n². One that
//! is to make a Deployment, where another owner has one of that name, does not hold that.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc::UnboundedSender;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::reflector::ObjectRef;

use super::observation::ObjectKey;
use crate::controllers::Watched;
use crate::kinds::tdset::api::v1::TDSet;

/// Who claims something; older ones are less.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claimant {
    since: Option<Timestamp>,
    uid: String,
    namespace: String,
    name: String,
    /// Whether it makes the workload.
    makes: bool,
    /// Of which state of its spec that is.
    generation: Option<i64>,
}

impl Claimant {
    fn reference(&self) -> ObjectRef<Watched<TDSet>> {
        ObjectRef::new(&self.name).within(&self.namespace)
    }
}

/// All of them.
pub struct TargetOwnership {
    entries: Mutex<Entries>,
    told: UnboundedSender<ObjectRef<Watched<TDSet>>>,
}

/// A claimant and what it claims, without one twice.
type Claims = (Arc<Claimant>, Box<[Arc<ObjectKey>]>);

/// Both maps share what they have of an object: a node of a set of keys alone takes a kilobyte.
#[derive(Default)]
struct Entries {
    of: HashMap<String, Claims>,
    on: HashMap<Arc<ObjectKey>, BTreeSet<Arc<Claimant>>>,
}

impl Entries {
    /// Sets what `uid` claims; the others who hold something from now on, or no longer do.
    fn set(&mut self, uid: &str, claims: Option<Claims>) -> Vec<Arc<Claimant>> {
        let before = self.of.remove(uid);
        if before == claims {
            self.of.extend(before.map(|before| (uid.to_owned(), before)));
            return Vec::new();
        }
        let subjects = before.iter().chain(&claims).flat_map(|(_, subjects)| subjects.iter());
        let subjects: BTreeSet<Arc<ObjectKey>> =
            subjects.filter(|subject| is_held(subject)).cloned().collect();
        let holders = self.holders(&subjects);
        if let Some((claimant, subjects)) = &before {
            for subject in subjects {
                let Some(claimants) = self.on.get_mut(subject) else { continue };
                claimants.remove(claimant);
                if claimants.is_empty() {
                    self.on.remove(subject);
                }
            }
        }
        if let Some((claimant, subjects)) = claims {
            for subject in &subjects {
                self.on.entry(Arc::clone(subject)).or_default().insert(Arc::clone(&claimant));
            }
            self.of.insert(uid.to_owned(), (claimant, subjects));
        }
        let pairs = holders.into_iter().zip(self.holders(&subjects));
        let changed = pairs.filter(|(before, after)| before != after);
        let concerned: BTreeSet<_> =
            changed.flat_map(|(before, after)| before.into_iter().chain(after)).collect();
        concerned.into_iter().filter(|one| one.uid != uid).collect()
    }

    /// Who holds each of them.
    fn holders(&self, subjects: &BTreeSet<Arc<ObjectKey>>) -> Vec<Option<Arc<Claimant>>> {
        subjects.iter().map(|subject| self.on.get(subject)?.first().cloned()).collect()
    }
}

/// Whether that is for one TDSet alone: all may read the same ConfigMap.
fn is_held(subject: &ObjectKey) -> bool {
    (subject.group.as_str(), subject.kind.as_str()) != ("", "ConfigMap")
}

impl TargetOwnership {
    /// None yet. The objects that a change concerns are sent to `told`.
    #[must_use]
    pub fn new(told: UnboundedSender<ObjectRef<Watched<TDSet>>>) -> Self {
        Self { entries: Mutex::default(), told }
    }

    /// Whether it is known what the object of that metadata refers to. That follows from its spec, whose every change counts
    /// as a generation (apiextensions-apiserver `pkg/registry/customresource/strategy.go`).
    #[must_use]
    pub fn knows(&self, meta: &ObjectMeta) -> bool {
        let entries = self.lock();
        let known = meta.uid.as_deref().and_then(|uid| entries.of.get(uid));
        meta.generation.is_some() && known.is_some_and(|(known, _)| known.generation == meta.generation)
    }

    /// The object of that metadata as it is now: whether it makes its workload, and what it refers to; nothing where it
    /// cannot be decoded.
    pub fn seen(&self, meta: &ObjectMeta, subjects: Option<(bool, BTreeSet<ObjectKey>)>) {
        let (Some(uid), Some(name)) = (&meta.uid, &meta.name) else { return };
        let claims = subjects.map(|(makes, subjects)| {
            let claimant = Claimant {
                since: meta.creation_timestamp.as_ref().map(|time| time.0),
                uid: uid.clone(),
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: name.clone(),
                makes,
                generation: meta.generation,
            };
            (Arc::new(claimant), subjects.into_iter().map(Arc::new).collect())
        });
        let concerned = self.lock().set(uid, claims);
        self.tell(&concerned);
    }

    /// The object of that uid is gone.
    pub fn forget(&self, uid: &str) {
        let concerned = self.lock().set(uid, None);
        self.tell(&concerned);
    }

    /// The objects that share its workload.
    #[must_use]
    pub fn concerned(&self, subject: &ObjectKey) -> Vec<ObjectRef<Watched<TDSet>>> {
        let entries = self.lock();
        entries.on.get(subject).into_iter().flatten().map(|one| one.reference()).collect()
    }

    /// The name of the TDSet that holds the object, if that is not the one of `uid`. `maker` is the TDSet that made it.
    #[must_use]
    pub fn holder(&self, subject: &ObjectKey, uid: &str, maker: Option<&str>) -> Option<String> {
        let entries = self.lock();
        let holds = |one: &&Arc<Claimant>| one.uid == uid || !one.makes || maker == Some(one.name.as_str());
        let first = entries.on.get(subject)?.iter().find(holds)?;
        (first.uid != uid).then(|| first.name.clone())
    }

    fn tell(&self, concerned: &[Arc<Claimant>]) {
        for claimant in concerned {
            let _no_receiver = self.told.unbounded_send(claimant.reference());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TargetOwnership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TargetOwnership")
    }
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc;
    use futures::{FutureExt as _, StreamExt as _};
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::tdset::spec;

    /// There is a TDSet that refers to that object.
    fn see_object(claims: &TargetOwnership, object: Value, subject: ObjectKey) {
        let object: TDSet = serde_json::from_value(object).unwrap();
        claims.seen(&object.metadata, Some((spec::makes(&object), BTreeSet::from([subject]))));
    }

    /// There is a TDSet that refers to the Deployment `target`.
    fn see(claims: &TargetOwnership, [name, uid, created, target]: [&str; 4]) {
        let object = json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
            "metadata": {"name": name, "namespace": "a", "uid": uid, "creationTimestamp": created},
            "spec": {"defaultReplicas": 1, "target": {}},
        });
        see_object(claims, object, ObjectKey::new("apps", "Deployment", "a", target));
    }

    #[test]
    fn the_oldest_holds_it_and_the_next_one_is_triggered_when_it_goes() {
        let (told, mut heard) = mpsc::unbounded();
        let claims = TargetOwnership::new(told);
        let subject = ObjectKey::referred("apps/v1beta1", "Deployment", "a", "web");
        see(&claims, ["young", "1", "2026-01-02T00:00:00Z", "web"]);
        assert_eq!(claims.holder(&subject, "1", None), None);
        see(&claims, ["old", "2", "2026-01-01T00:00:00Z", "web"]);
        assert_eq!(claims.holder(&subject, "1", None), Some("old".to_owned()));
        assert_eq!(claims.holder(&subject, "2", None), None);
        let mut next = || heard.next().now_or_never().unwrap().unwrap().name;
        assert_eq!(next(), "young");
        claims.forget("2");
        assert_eq!(next(), "young");
        assert_eq!(claims.holder(&subject, "1", None), None);
        see(&claims, ["young", "1", "2026-01-02T00:00:00Z", "other"]);
        assert!(claims.concerned(&subject).is_empty());
    }

    #[test]
    fn what_an_object_refers_to_is_known_until_its_spec_changes() {
        let (told, mut heard) = mpsc::unbounded();
        let claims = TargetOwnership::new(told);
        let metadata = |uid: &str, generation: Option<i64>, version: &str| ObjectMeta {
            name: Some(format!("t{uid}")),
            namespace: Some("a".to_owned()),
            uid: Some(uid.to_owned()),
            generation,
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        let subject =
            |name: &str| Some((false, BTreeSet::from([ObjectKey::new("apps", "Deployment", "a", name)])));
        assert!(!claims.knows(&metadata("1", Some(1), "7")));
        claims.seen(&metadata("1", Some(1), "7"), subject("web"));
        assert!(claims.knows(&metadata("1", Some(1), "8")), "the status was written");
        assert!(!claims.knows(&metadata("1", Some(2), "9")) && !claims.knows(&metadata("2", Some(1), "9")));
        claims.seen(&metadata("2", Some(1), "9"), subject("web"));
        claims.seen(&metadata("1", Some(2), "10"), subject("web"));
        assert!(claims.knows(&metadata("1", Some(2), "10")));
        assert!(heard.next().now_or_never().is_none(), "the same one holds it");
        // One that cannot be decoded may be by its next change, whatever that is of.
        claims.seen(&metadata("1", Some(2), "11"), None);
        assert!(!claims.knows(&metadata("1", Some(2), "12")));
        claims.seen(&metadata("3", None, "13"), subject("web"));
        assert!(!claims.knows(&metadata("3", None, "14")), "it has no generation to go by");
    }

    #[test]
    fn a_config_map_that_many_read_has_no_holder_and_triggers_none() {
        let (told, mut heard) = mpsc::unbounded();
        let claims = TargetOwnership::new(told);
        let days = ObjectKey::config_map("a", "days");
        // Each one would hold it before those that came earlier.
        for number in (0..2_000).rev() {
            let object = json!({
                "apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
                "metadata": {"name": format!("t{number}"), "namespace": "a", "uid": format!("{number:04}")},
                "spec": {"defaultReplicas": 1, "target": {}},
            });
            see_object(&claims, object, days.clone());
        }
        assert!(heard.next().now_or_never().is_none());
        assert_eq!(claims.concerned(&days).len(), 2_000, "a change of it concerns all");
    }

    #[test]
    fn of_a_crowd_on_one_workload_only_the_holder_is_triggered() {
        let (told, mut heard) = mpsc::unbounded();
        let claims = TargetOwnership::new(told);
        for number in 0..100 {
            let uid = format!("{number:03}");
            see(&claims, [&uid, &uid, "2026-01-01T00:00:00Z", "web"]);
        }
        assert!(heard.next().now_or_never().is_none(), "the oldest came first");
        claims.forget("000");
        assert_eq!(heard.next().now_or_never().unwrap().unwrap().name, "001");
        assert!(heard.next().now_or_never().is_none());
    }

    #[test]
    fn of_equally_old_ones_the_uid_decides() {
        let claims = TargetOwnership::new(mpsc::unbounded().0);
        let subject = ObjectKey::new("apps", "Deployment", "a", "web");
        see(&claims, ["b", "2", "2026-01-01T00:00:00Z", "web"]);
        see(&claims, ["c", "1", "2026-01-01T00:00:00Z", "web"]);
        assert_eq!(claims.holder(&subject, "2", None), Some("c".to_owned()));
    }

    #[test]
    fn one_that_cannot_make_its_deployment_does_not_hold_that_of_another_owner() {
        let claims = TargetOwnership::new(mpsc::unbounded().0);
        let subject = ObjectKey::new("apps", "Deployment", "a", "shop");
        let maker = json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
            "metadata": {"name": "shop", "namespace": "a", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"defaultReplicas": 1, "target": {"create": {"image": "shop", "port": 80}}},
        });
        see_object(&claims, maker, subject.clone());
        see(&claims, ["hours", "2", "2026-01-02T00:00:00Z", "shop"]);
        assert_eq!(claims.holder(&subject, "2", None), None);
        assert_eq!(claims.holder(&subject, "2", Some("other")), None);
        assert_eq!(claims.holder(&subject, "2", Some("shop")), Some("shop".to_owned()));
        assert_eq!(claims.holder(&subject, "1", None), None, "its own conflict is another one");
    }
}
