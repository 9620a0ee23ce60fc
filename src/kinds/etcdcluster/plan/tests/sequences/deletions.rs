//! What becomes of a cluster that is deleted.

use super::*;

#[test]
fn a_deleted_cluster_goes_with_its_volumes_or_leaves_them() {
    for deletes_volumes in [false, true] {
        let mut world = World::settled(3, V3_6);
        let before = world.membership_changes();
        world.desired.deletes_volumes = true;
        world.run();
        assert!(world.has_finalizer);
        world.desired.is_deleting = true;
        world.desired.deletes_volumes = deletes_volumes;
        world.run();
        assert!(!world.has_finalizer);
        assert_eq!((world.pods.len(), world.volumes.len()), (0, if deletes_volumes { 0 } else { 3 }));
        assert_eq!(world.membership_changes(), before, "no member is removed");
    }
}

#[test]
fn only_a_cluster_whose_volumes_go_or_that_is_protected_has_its_deletion_wait() {
    let mut world = World::settled(3, V3_6);
    assert!(!world.has_finalizer);
    world.desired.is_protected = true;
    world.run();
    assert!(world.has_finalizer);
}
