//! Slices in which another client changes what was made.

use super::*;

const PUT_BACK: Reach = ("what was changed is put back", |_, world| {
    !world.put_back.is_empty() && world.schedules[0].status.says("Ready", "True")
});
const LEFT_FOR_A_WHILE: Reach = ("it is left for a while as another client has changed it", |_, world| {
    let status = world.schedules[0].status;
    world.put_back.len() == 3 && status.says("Conflict", "True") && status.says("Ready", "False")
});
const OVER: Reach = ("a contest is over", |_, world| {
    world.later > 600_000
        && ["Conflict", "Ready"].map(|about| world.schedules[0].status.says(about, "True")) == [false, true]
});

/// The image of the Deployment is changed again each time that it is put back, and an edit does not wait for that.
pub fn changed() -> Slice {
    let mut start = World::new(&[SHOP]);
    start.edits = vec![Edit::Image];
    start.evening = 0;
    start.faults = Faults { changes: 4, ..Faults::default() };
    Slice::new(
        start,
        &[PUT_BACK, LEFT_FOR_A_WHILE, OVER],
        &["tdset.apply-deployment", "tdset.write-status", "tdset.publish-event"],
    )
}

/// The same of the port of the Service, while a transition is due.
pub fn served_otherwise() -> Slice {
    let mut start = World::new(&[Spec { has_service: true, ..SHOP }]);
    start.faults = Faults { changes: 4, crashes: 1, ..Faults::default() };
    Slice::new(
        start,
        &[PUT_BACK, LEFT_FOR_A_WHILE, SETTLED_INSIDE],
        &["tdset.apply-service", "tdset.write-count", "tdset.write-status"],
    )
}
