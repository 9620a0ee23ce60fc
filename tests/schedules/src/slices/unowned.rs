//! Slices of a workload of which the API server does not say who wrote its count.

use super::*;

/// A person scales, and the API server does not say who it was.
pub fn unowned() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Unowned, ..SHOP }]).with_foreign(5);
    start.faults = Faults { scales: 2, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE], &["tdset.write-scale", "tdset.publish-event"])
}

/// The same, and it stands.
pub fn unowned_and_kept() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Unowned, keeps: true, ..SHOP }]).with_foreign(5);
    start.faults = Faults { scales: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, STANDS], &["tdset.write-scale"])
}

/// A person scales on a ramp.
pub fn unowned_on_a_ramp() -> Slice {
    let spec = Spec { target: Target::Unowned, is_ramped: true, ..SHOP };
    let mut start = World::new(&[spec]).with_foreign(2);
    start.faults = Faults { scales: 1, conflicts: 1, ..Faults::default() };
    Slice::new(start, &[RAMPING], &["tdset.write-scale", "tdset.publish-event"])
}

/// Another operator takes over right after a boundary, and its clock is behind.
pub fn unowned_behind() -> Slice {
    let mut start = World::new(&[Spec { target: Target::Unowned, ..SHOP }]).with_foreign(5);
    start.faults = Faults { handovers: 1, ..Faults::default() };
    Slice::new(start, &[SETTLED_INSIDE, STEADY], &["tdset.write-scale"])
}
