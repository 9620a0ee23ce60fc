//! Slices in which something cannot be read.

use super::*;

/// Counts of others stand, while the API server does not say what there is, or what dates there are.
pub fn kept_unread() -> Slice {
    let spec = Spec { target: Target::Reference(None), keeps: true, holds: true, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(5);
    start.evening = 2;
    start.faults = Faults { unread: 1, scales: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, UNREAD, STANDS], &["tdset.write-scale"])
}

/// The API server does not say what there is, or what dates there are, while a workload comes and goes that is to be
/// left with 4.
pub fn unread() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Reference(Some(4)), ..SHOP }]).with_foreign(5);
    start.edits = vec![Edit::Delete];
    start.faults = Faults { unread: 1, deletions: 1, squatters: 1, ..Faults::default() };
    Slice::new(start, &[UNREAD, LEFT], &["tdset.write-scale", "tdset.remove-finalizer"])
}

/// Dates cannot be read, and such days are held.
pub fn undated() -> Slice {
    let mut start = World::new(&[Spec { holds: true, has_service: true, ..SHOP }]);
    start.faults = Faults { unread: 2, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE], &["tdset.make-deployment", "tdset.write-count"])
}

/// The API server does not say what there is while the count moves.
pub fn unread_on_a_ramp() -> Slice {
    let spec = Spec { target: Target::Reference(None), is_ramped: true, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(2);
    start.faults = Faults { unread: 2, ..Faults::default() };
    Slice::new(start, &[RAMPING, UNREAD], &["tdset.write-scale"])
}
