//! Values that are made once, and compared by what they were made of.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

use super::fingerprint;

/// A value that is compared, and hashed, by the fingerprint of what it was made of.
#[derive(Debug)]
pub struct Keyed<Value> {
    key: u64,
    value: Value,
}

impl<Value> Deref for Keyed<Value> {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl<Value> PartialEq for Keyed<Value> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<Value> Eq for Keyed<Value> {}

impl<Value> Hash for Keyed<Value> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// Values that were made already.
#[derive(Debug)]
pub struct Memo<Value>(RefCell<HashMap<u64, Rc<Keyed<Value>>>>);

impl<Value> Default for Memo<Value> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<Value> Memo<Value> {
    /// The value that is made of that, which may look for others meanwhile.
    pub fn of(&self, made_of: &impl Hash, make: impl FnOnce() -> Value) -> Rc<Keyed<Value>> {
        let key = fingerprint(made_of);
        let known = self.0.borrow().get(&key).map(Rc::clone);
        known.unwrap_or_else(|| {
            let new = Rc::new(Keyed { key, value: make() });
            self.0.borrow_mut().insert(key, Rc::clone(&new));
            new
        })
    }
}
