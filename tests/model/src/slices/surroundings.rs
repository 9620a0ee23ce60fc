//! Objects and members of others, writes that the API server refuses, passwords, and deletions that wait.

use super::*;
use crate::world::{Data, Object, Policy, Secret};
use gatehouse::kinds::etcdcluster::observation::{ClusterId, Owner, Template};

const GUARDED: Reach = ("etcd asks who is there, and root has the last password", |_, world| {
    world.edits.is_empty() && world.is_guarded() && world.lets_in()
});
const TAKEN: Reach = ("a name is taken", |_, world| world.surroundings.taken.is_some());
const FREED: Reach = ("a name was taken, and all is made", |start, world| {
    world.faults.names < start.faults.names
        && world.surroundings.taken.is_none()
        && world.voters().count() == 1
});
const REFUSED: Reach = ("a write is refused", |_, world| world.surroundings.refused.is_some());
const MENDED: Reach = ("a member was cut off, and hears the others", |start, world| {
    world.faults.cuts < start.faults.cuts && world.live_voters() == 3
});

/// Authentication is asked for from the start. Root's Secret is not there at first, has a password, has another one, is
/// deleted, and a person switches authentication off.
pub fn passwords() -> Slice {
    let mut start = World::new(1, NEWEST);
    start.desired.authenticates = true;
    start.surroundings.access.secret = Secret::Unreadable;
    start.edits = vec![
        Edit::Password(Secret::Password(1)),
        Edit::Password(Secret::Password(2)),
        Edit::AuthOff,
        Edit::Password(Secret::Unreadable),
        Edit::AuthOff,
        Edit::Password(Secret::Unnamed),
        Edit::AuthOff,
    ];
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, lost_answers: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[GUARDED, CRASHED, UNHEARD], &["auth-enable", "set-root-password", "label-pod"])
}

/// Another owner makes an object of one of our names before the first member is there, or after one of ours was deleted.
/// The object is deleted at last.
pub fn names() -> Slice {
    let mut start = World::new(1, NEWEST);
    start.desired.deletes_volumes = true;
    start.edits = vec![Edit::Delete { volumes: true }];
    start.is_prompt = true;
    start.faults = Faults { names: 1, objects: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[TAKEN, FREED, LET_GO, CRASHED], &["apply-services", "apply-stateful-set"])
}

/// A cluster of a name that there was before grows: the claims of that one are there, with data of its own, and are given
/// up one by one.
pub fn left_claims() -> Slice {
    let mut start = World::new(2, NEWEST);
    for ordinal in [0, 1] {
        start.leave_volume(Ordinal(ordinal));
        start.objects.volumes.entry(Ordinal(ordinal)).and_modify(|disk| {
            disk.volume.owner = Owner::Foreign;
            disk.data = Some(Data::new(ClusterId(1), MemberId(u64::from(ordinal) + 8), 0));
        });
    }
    start.is_prompt = true;
    start.faults = Faults { losses: 2, crashes: 1, ..Faults::default() };
    Slice::new(start, &[TWO_VOTE, CRASHED], &["member-add"])
}

/// A member of another cluster answers in the place of one of ours, whose address it has: another template, and one member
/// less, are asked for.
pub fn strangers() -> Slice {
    let mut start = World::settled(2, NEWEST);
    start.edits = vec![Edit::Revision, Edit::Replicas(1)];
    start.is_prompt = true;
    start.faults = Faults { strangers: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[ONE_VOTES], &["delete-pod", "member-remove"])
}

/// A member hears no other one, and answers the operator, while members are restarted.
pub fn cut_off() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Revision];
    start.is_prompt = true;
    start.faults = Faults { cuts: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED, MENDED, CRASHED], &["label-pod", "delete-pod", "move-leader"])
}

fn refused(replicas: u32, policy: Policy, edits: &[Edit]) -> World {
    let mut start = World::settled(replicas, NEWEST);
    start.edits = [&[Edit::Policy(Some(policy))], edits, &[Edit::Policy(None)]].concat();
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, kills: 1, ..Faults::default() };
    start
}

/// The API server lets no pods be made from the template that is asked for; members come and go meanwhile.
pub fn refused_template() -> Slice {
    let template = Template { version: NEWEST, revision: 2 };
    let edits = [Edit::Revision, Edit::Replicas(3), Edit::Replicas(2)];
    let start = refused(2, Policy::Template(template), &edits);
    Slice::new(start, &[REFUSED, THREE_VOTE, CRASHED], &["member-add", "delete-pod"])
}

/// The API server does not let the claim of one member grow; those of the others grow, and one more member comes.
pub fn refused_volume() -> Slice {
    let edits = [Edit::Size(2 << 30), Edit::Replicas(3)];
    let start = refused(2, Policy::Volume(Ordinal(0)), &edits);
    Slice::new(start, &[REFUSED, THREE_VOTE, CRASHED], &["resize-volume", "member-add"])
}

/// The API server does not let the PodDisruptionBudget be changed, once there are fewer members; work rests for a while.
pub fn refused_budget() -> Slice {
    let edits = [Edit::Replicas(1), Edit::Pause(true), Edit::Pause(false), Edit::Revision];
    let start = refused(2, Policy::Writes(&["apply-budget"]), &edits);
    Slice::new(start, &[REFUSED, ONE_VOTES, CRASHED], &["apply-budget", "delete-pod"])
}

/// The API server refuses every write of the Services.
pub fn refused_services() -> Slice {
    let mut start = refused(2, Policy::Writes(&["apply-services"]), &[Edit::Revision]);
    start.faults.objects = 1;
    Slice::new(start, &[REFUSED, CRASHED], &["apply-services", "delete-pod"])
}

/// The API server refuses the Services while the first member is made, and the StatefulSet may be deleted meanwhile.
pub fn refused_at_first() -> Slice {
    let mut start = World::new(1, NEWEST);
    start.surroundings.policy = Some(Policy::Writes(&["apply-services"]));
    start.edits = vec![Edit::Policy(None)];
    start.is_prompt = true;
    start.faults = Faults { objects: 1, crashes: 1, kills: 1, ..Faults::default() };
    Slice::new(
        start,
        &[REFUSED, ONE_VOTES, CRASHED],
        &["apply-services", "apply-stateful-set", "write-config"],
    )
}

/// The API server lets no claim grow and refuses the Services, of which one is gone.
pub fn refused_volumes_and_services() -> Slice {
    let edits = [Edit::Size(2 << 30), Edit::Revision];
    let mut start = refused(2, Policy::Writes(&["resize-volume", "apply-services"]), &edits);
    start.faults = Faults { objects: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[REFUSED, CRASHED], &["resize-volume", "apply-services", "delete-pod"])
}

/// An object is deleted whose deletion is refused, until it is not refused any more. The StatefulSet may be deleted
/// without its pods before that, and a reconciliation cannot read something.
pub fn protected() -> Slice {
    let mut start = World::new(1, NEWEST);
    start.desired.is_protected = true;
    let mut start = start.settle();
    start.edits = vec![Edit::Delete { volumes: true }, Edit::Protect(false)];
    start.faults = Faults { blind: 1, crashes: 1, lost_answers: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[LET_GO, CRASHED, UNHEARD], &["delete-volume", "remove-finalizer"])
}

/// A cluster is deleted with its volumes, and its StatefulSet before it, without the pods.
pub fn orphans() -> Slice {
    let mut start = World::new(2, NEWEST);
    start.desired.deletes_volumes = true;
    let mut start = start.settle();
    start.edits = vec![Edit::Delete { volumes: true }];
    start.faults = Faults { objects: 1, blind: 2, ..Faults::default() };
    start = after(start, &[Action::Edit, Action::LoseObject(Object::StatefulSet)]);
    Slice::new(start, &[LET_GO], &["delete-pod", "delete-volume", "remove-finalizer"])
}
