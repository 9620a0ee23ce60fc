//! Which DatabaseMigrations an object concerns that another owner changes: ConfigMaps with scripts, and migrations that
//! others require. Kept in memory: what is asked for is in the objects, and they are all seen before any is worked.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::reflector::ObjectRef;

use super::spec;
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
        if let (Ok(object), Some(uid)) = (&object.0, &metadata.uid) {
            let (config_maps, migrations) = spec::subjects(object);
            let asked = Asked { namespace: namespace.clone(), name: name.clone(), config_maps, migrations };
            self.lock().insert(uid.clone(), asked);
        }
        for concerned in self.concerned(&namespace, |asked| asked.migrations.contains(&name)) {
            let _nobody_works = self.told.unbounded_send(concerned);
        }
    }

    /// The object of that uid is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Only the objects of these uids are left.
    pub fn forget_all_but(&self, uids: &HashSet<String>) {
        self.lock().retain(|uid, _| uids.contains(uid));
    }

    /// Who takes scripts from that ConfigMap.
    pub fn of_config_map(&self, metadata: &ObjectMeta) -> Vec<Reference> {
        let (namespace, name) = key(metadata);
        self.concerned(&namespace, |asked| asked.config_maps.contains(&name))
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
