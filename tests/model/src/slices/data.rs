//! Volumes that grow, data in memory, databases with room to give back, and versions that want care.

use super::*;
use gatehouse::kinds::etcdcluster::observation::{Backup, Fact};

const GROWN: Reach = ("all volumes that can have grown", |start, world| {
    world.desired.volume_size > start.desired.volume_size
        && world.voters().count() == 3
        && world.objects.volumes.values().filter(|disk| disk.volume.size == world.desired.volume_size).count()
            == 2
        && !world.is_growing()
});
const TIGHT: Reach = ("little is dropped, and then more", |_, world| world.etcd.compacted == 4900);
const NOTHING_LEFT: Reach = ("nothing is left to drop", |_, world| world.etcd.compacted == 5000);
const BACKED_UP: Reach = ("a backup is there", |_, world| world.surroundings.backup == Some(Backup::Recent));
const FAILED: Reach = ("a backup failed", |_, world| world.surroundings.backup == Some(Backup::Failed));
const TIGHTENED: Reach = ("all spare room was given back", |start, world| {
    world.faults.loosenings == 0
        && start.faults.loosenings > 0
        && world.objects.volumes.values().filter_map(|disk| disk.data).any(|data| data.was_defragmented)
});
const COMPARED: Reach = ("all run another template, and were compared", |start, world| {
    let before = start.desired.template;
    !world.surroundings.comparison_is_old
        && world.objects.pods.values().all(|place| place.pod.template != before)
});
const DIFFERENT: Reach =
    ("members were found to differ", |_, world| world.audit.is_some() && world.corrupt_voters() > 0);

const SOUND_ENDED: Reach = ("a sound member does not start beside one whose data differ", |_, world| {
    let ended = world.objects.pods.iter().filter(|(_, place)| place.pod.own_print.is_some());
    let mut data = ended.filter_map(|(ordinal, _)| world.objects.volumes.get(ordinal)?.data);
    data.any(|data| !data.is_corrupt)
});

const RAISED: Reach = ("all run 3.7", |_, world| {
    let places = world.objects.pods.values();
    world.etcd.version == 7 && places.filter(|place| place.pod.template.version.minor == 7).count() == 2
});

/// Larger volumes are asked for, of which one cannot grow and one drives itself; a claim is deleted, and a third member
/// comes. The spec is invalid for a while.
pub fn volumes() -> Slice {
    let mut start = World::settled(2, NEWEST);
    start.objects.volumes.entry(Ordinal(1)).and_modify(|disk| disk.volume.is_expandable = Fact::Known(false));
    start.edits = vec![Edit::Size(2 << 30), Edit::Valid(false), Edit::Valid(true), Edit::Replicas(3)];
    start.is_prompt = true;
    start.faults = Faults { claims: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[GROWN, CRASHED], &["resize-volume", "member-add"])
}

fn in_memory(replicas: u32) -> World {
    let mut start = World::new(replicas, NEWEST);
    start.desired.is_in_memory = true;
    start.is_prompt = true;
    start
}

/// The first member is made in memory, and its pod may go; another template is asked for, no members, and one again.
pub fn memory_of_one() -> Slice {
    let mut start = in_memory(1);
    start.edits = vec![Edit::Revision, Edit::Replicas(0), Edit::Replicas(1)];
    start.faults = Faults { evictions: 1, kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[ONE_VOTES, NO_QUORUM, CRASHED], &["write-config", "delete-pod"])
}

/// Another template is asked for of one member in memory, and then three members: its pod can be made again once the others
/// have its data.
pub fn memory_that_grows() -> Slice {
    let mut start = in_memory(1).settle();
    start.edits = vec![Edit::Revision, Edit::Replicas(3)];
    start.faults = Faults { crashes: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED, CRASHED], &["member-remove", "member-add", "delete-pod", "move-leader"])
}

/// Three members in memory are restarted for another template, and one of their pods goes.
pub fn memory() -> Slice {
    let mut start = in_memory(3).settle();
    start.edits = vec![Edit::Revision];
    start.faults = Faults { evictions: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED, TWO_VOTE], &["member-remove", "member-add", "delete-pod", "move-leader"])
}

/// Two of three members in memory have lost their pods, and a recovery from the third is asked for, whose data would end
/// with its pod; then another template.
pub fn memory_without_quorum() -> Slice {
    let mut start = in_memory(3).settle();
    start.faults = Faults { evictions: 2, ..Faults::default() };
    start = after(start, &[0, 1].map(|ordinal| Action::Evict(Ordinal(ordinal))));
    let request = RecoveryRequest { token: "now".to_owned(), survivor: None };
    start.edits = vec![Edit::Recover(Some(request)), Edit::Revision, Edit::Recover(None)];
    start.faults = Faults { kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[NO_QUORUM], &[])
}

/// Databases come to be full, and it takes more than the first step to make room.
pub fn tight_space() -> Slice {
    let mut slice = space();
    slice.start.surroundings.room_at = 4900;
    slice.reaches = &[ROOM_MADE, TIGHT, CRASHED];
    slice
}

/// Databases come to be full of what is in use, and nothing makes room.
pub fn no_space_left() -> Slice {
    let mut slice = space();
    slice.start.surroundings.room_at = u64::MAX;
    slice.start.edits = vec![Edit::Revision];
    slice.start.faults = Faults { fills: 1, crashes: 1, ..Faults::default() };
    slice.reaches = &[NOTHING_LEFT, ALL_ROLLED, CRASHED];
    slice.does = &["compact", "delete-pod"];
    slice
}

/// Much of each database is free, twice, and is to be given back; little of one; a member comes.
pub fn spare_room() -> Slice {
    let mut start = World::settled(2, NEWEST);
    start.desired.defragments_at = Some(50);
    start.edits = vec![Edit::Replicas(3)];
    start.is_prompt = true;
    start.faults = Faults { loosenings: 2, kills: 1, elections: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[TIGHTENED, THREE_VOTE, CRASHED], &["defragment", "member-add"])
}

/// Two members of 3.6 are brought to 3.7: a backup has to be there first, which may fail, and each has to have saved a
/// snapshot.
pub fn careful_upgrade() -> Slice {
    let mut start = World::settled(2, NEWEST).without_snapshots();
    start.desired.backs_up_before_upgrade = true;
    start.edits = vec![Edit::Version(Version::new(7, 3))];
    start.is_prompt = true;
    start.faults = Faults { failed_backups: 1, kills: 1, crashes: 1, ..Faults::default() };
    let does = &["start-backup", "append-entries", "delete-pod"];
    Slice::new(start, &[BACKED_UP, FAILED, CRASHED], does)
}

/// Two members of 3.6 that have saved snapshots are brought to 3.5, to 3.6 and to 3.7. Once 3.5 has run, no snapshot from
/// before counts.
pub fn down_and_up() -> Slice {
    let mut start = World::settled(2, NEWEST).with_snapshots();
    start.desired.allows_downgrade = true;
    start.edits = [Version::new(5, 33), NEWEST, Version::new(7, 3)].map(Edit::Version).to_vec();
    start.is_prompt = true;
    start.faults = Faults { kills: 1, crashes: 1, ..Faults::default() };
    let does = &["downgrade-enable", "append-entries", "delete-pod", "move-leader"];
    Slice::new(start, &[ALL_LOWERED, RAISED, CRASHED], does)
}

/// A later patch is asked for, the earlier one again, and the later one; each upgrade has its backup.
pub fn patches() -> Slice {
    let mut start = World::settled(2, Version::new(6, 15));
    start.desired.backs_up_before_upgrade = true;
    start.edits = [NEWEST, Version::new(6, 15), NEWEST].map(Edit::Version).to_vec();
    start.is_prompt = true;
    start.faults = Faults { failed_backups: 1, kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[BACKED_UP, FAILED, CRASHED], &["start-backup", "delete-pod"])
}

/// Versions that members may not be brought to: one that is unknown, the next from a patch that is too old, the one below
/// before it is allowed.
pub fn refused_versions() -> Slice {
    let mut start = World::settled(1, Version::new(6, 10));
    start.edits = vec![
        Edit::Version(Version::new(9, 1)),
        Edit::Version(Version::new(7, 3)),
        Edit::Version(Version::new(6, 16)),
        Edit::Version(Version::new(5, 33)),
        Edit::AllowDowngrade(true),
        Edit::AllowDowngrade(false),
        Edit::Version(Version::new(7, 3)),
    ];
    start.is_prompt = true;
    start.faults = Faults { kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[CRASHED], &["delete-pod", "downgrade-enable", "downgrade-cancel"])
}

/// The data of a member come to differ, and members that start compare theirs with the others': a member whose own differ
/// does not start, nor does a sound one beside it.
pub fn initial_check() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.is_prompt = true;
    (start.counts_data, start.compares_at_start) = (true, true);
    start.faults = Faults { corruptions: 1, kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[CORRUPT_REPLACED, SOUND_ENDED, CRASHED], &["member-remove", "member-add"])
}

/// Another template is asked for where the data of members were not compared for long, and may differ.
pub fn comparison() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Revision];
    start.is_prompt = true;
    start.counts_data = true;
    start.surroundings.comparison_is_old = true;
    start.faults = Faults { corruptions: 1, kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[COMPARED, DIFFERENT, CRASHED], &["delete-pod", "move-leader"])
}
