//! The state that a process keeps for each object between two reconciliations.
//!
//! Guarantees: nothing that matters is here alone; without it a reconciliation is only less precise or does a call too
//! many. What is forgotten when: with the object.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something for each object, by uid.
#[derive(Default)]
pub struct StateStore<Item>(Mutex<HashMap<String, Item>>);

impl<Item: Clone + Default> StateStore<Item> {
    /// What is known of an object.
    pub fn of(&self, uid: &str) -> Item {
        self.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Takes out what is known of an object, for as long as it is reconciled.
    pub fn take(&self, uid: &str) -> Item {
        self.lock().get_mut(uid).map(std::mem::take).unwrap_or_default()
    }

    /// Puts it back, unless the object has gone meanwhile.
    pub fn put(&self, uid: &str, item: Item) {
        self.update_known(uid, |known| *known = item);
    }

    /// The object is there: what is known of it is kept until it is forgotten.
    pub fn admit(&self, uid: &str) {
        self.update(uid, |_| ());
    }

    /// Changes what is known of an object.
    pub fn update<Output>(&self, uid: &str, change: impl FnOnce(&mut Item) -> Output) -> Output {
        change(self.lock().entry(uid.to_owned()).or_default())
    }

    /// The same, where something is known of it.
    pub fn update_known(&self, uid: &str, change: impl FnOnce(&mut Item)) {
        if let Some(known) = self.lock().get_mut(uid) {
            change(known);
        }
    }

    /// Whether the object is there.
    pub fn knows(&self, uid: &str) -> bool {
        self.lock().contains_key(uid)
    }

    /// The object is gone, or there is nothing left to know.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Only these objects are left; the uids of the others.
    pub fn forget_all_but(&self, uids: &HashSet<String>) -> Vec<String> {
        self.lock().extract_if(|uid, _| !uids.contains(uid)).map(|(uid, _)| uid).collect()
    }

    /// Looks at what is known of each object, until that fails.
    ///
    /// # Errors
    /// What `look` fails with.
    pub fn each<Failure>(&self, look: impl FnMut(&Item) -> Result<(), Failure>) -> Result<(), Failure> {
        self.lock().values().try_for_each(look)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Item>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Item> fmt::Debug for StateStore<Item> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StateStore")
    }
}
