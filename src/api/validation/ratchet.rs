//! Which faults of a change were there before.
//!
//! Guarantees: a fault is the same as one of the stored object if rule, field and value there are the same, wherever in
//! its list the field lies: removing an item moves the others. One fault excuses one.

use std::collections::HashMap;

use serde_json::Value;

use super::{Fault, Found, Version};
use crate::api::field::{Reason, Segment, Warning};

/// An object in each version that a fault may be found in.
pub(super) type Objects<'a> = [(Version, &'a Value); 2];

/// Turns faults that the stored object has as well into warnings, one for one.
pub(super) fn ratchet(new: &mut Found, objects: Objects, stored: &[Fault], before: Objects) {
    let mut known: HashMap<_, Vec<_>> = HashMap::new();
    for fault in stored {
        known.entry(rule(fault)).or_default().push(value(fault, before));
    }
    let mut is_known = |fault: &Fault| {
        let values = known.get_mut(&rule(fault))?;
        let found = value(fault, objects);
        let place = values.iter().position(|value| *value == found)?;
        Some(values.swap_remove(place))
    };
    let (tolerated, kept): (Vec<_>, Vec<_>) =
        std::mem::take(&mut new.faults).into_iter().partition(|fault| is_known(fault).is_some());
    new.faults = kept;
    let warning = |fault: Fault| Warning::new(format!("unchanged and still invalid: {}", fault.error));
    new.warnings.extend(tolerated.into_iter().map(warning));
}

/// The rule of a fault, by its words, and the field without its places in lists.
fn rule(fault: &Fault) -> (Version, Vec<Segment>, String) {
    let named = fault.path.segments().iter().filter(|step| !matches!(step, Segment::Index(_)));
    (fault.version, named.cloned().collect(), fault.error.message())
}

/// The value of the field; none for a duplicate, which is one by the key that its message has.
fn value<'a>(fault: &Fault, objects: Objects<'a>) -> Option<&'a Value> {
    let (_, object) = objects.iter().find(|(version, _)| *version == fault.version)?;
    (fault.error.reason != Reason::Duplicate).then(|| fault.path.value(object)).flatten()
}
