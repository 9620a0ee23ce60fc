//! Parts of all that can happen, each small enough to be looked at whole.

mod data;
pub mod large;
mod members;
mod surroundings;

pub use data::*;
pub use members::*;
pub use surroundings::*;

use gatehouse::kinds::etcdcluster::observation::{
    MemberId, OperationKind, Ordinal, RecoveryPhase, RecoveryRequest, Version,
};
use kit::explore::{self, World as _};

use crate::faults::Hand;
use crate::world::{Action, Edit, Faults, Operator, World};

type Slice = explore::Slice<World>;
type Reach = explore::Reach<World>;

const NEWEST: Version = Version::new(6, 16);

const THREE_VOTE: Reach = ("three vote", |_, world| world.voters().count() == 3);
const TWO_VOTE: Reach = ("two vote", |_, world| world.voters().count() == 2);
const ONE_VOTES: Reach =
    ("one votes", |_, world| world.voters().count() == 1 && world.etcd.members.len() == 1);
const WRITTEN: Reach = ("a write is acknowledged", |_, world| world.etcd.acknowledged > 0);
const NO_QUORUM: Reach =
    ("the quorum is lost", |_, world| !world.etcd.members.is_empty() && !world.has_quorum());
const RECOVERED: Reach = ("a recovery is done", |_, world| {
    world.objects.record.recovery.as_ref().is_some_and(|recovery| recovery.phase == RecoveryPhase::Done)
});
const CANCELLED: Reach = ("a recovery is cancelled", |_, world| {
    world.objects.record.recovery.as_ref().is_some_and(|recovery| recovery.phase == RecoveryPhase::Cancelled)
});
const CRASHED: Reach =
    ("an operator has crashed", |start, world| world.faults.crashes < start.faults.crashes);
const UNHEARD: Reach =
    ("an answer was lost", |start, world| world.faults.lost_answers < start.faults.lost_answers);
const ALL_ROLLED: Reach = ("all run the next version", |start, world| {
    let before = start.desired.template;
    world.objects.pods.len() == 3 && world.objects.pods.values().all(|place| place.pod.template != before)
});
const TWICE_ROLLED: Reach =
    ("all run the version after that", |_, world| world.objects.pods.len() == 3 && world.etcd.version == 7);
const STOPPED: Reach =
    ("no pod is left", |start, world| world.objects.pods.is_empty() && !start.objects.pods.is_empty());
const LET_GO: Reach = ("it is let go", |_, world| world.desired.is_deleting && !world.objects.has_finalizer);

const CLAIM_REPLACED: Reach = ("a member was replaced whose claim was deleted", |start, world| {
    let operation = world.objects.record.operation;
    world.faults.claims < start.faults.claims
        && operation.is_some_and(|operation| operation.kind == OperationKind::Replace)
        && world.voters().count() == 3
        && world.objects.volumes.values().all(|disk| !disk.volume.is_deleting)
});

const FOLLOWED: Reach = ("another authority has signed all, and is trusted alone", |start, world| {
    world.faults.authorities < start.faults.authorities && world.has_one_authority()
});

const BACK_WHILE_PAUSED: Reach = ("a pod came back while paused, and clients find it", |start, world| {
    world.desired.is_paused
        && world.faults.evictions < start.faults.evictions
        && world.is_served()
        && world.objects.pods.values().all(|place| !place.pod.is_deleting)
});

const CORRUPT_REPLACED: Reach = ("a member whose data differ was replaced", |start, world| {
    world.faults.corruptions < start.faults.corruptions
        && world.corrupt_voters() == 0
        && world.voters().count() == 3
        && world.etcd.alarms.is_empty()
});
const ROOM_MADE: Reach = ("there is room again", |start, world| {
    world.faults.fills < start.faults.fills && world.etcd.alarms.is_empty()
});
const ALL_LOWERED: Reach = ("all run the minor before", |start, world| {
    world.etcd.version < start.etcd.version && world.etcd.downgrade.is_none()
});

/// What each change of the members does.
const ADDS: &[&str] = &[
    "write-record",
    "apply-stateful-set",
    "write-config",
    "apply-budget",
    "member-add",
    "member-promote",
    "label-pod",
];
const REMOVES: &[&str] = &[
    "write-record",
    "apply-stateful-set",
    "withdraw-config",
    "apply-budget",
    "member-remove",
    "delete-volume",
];

/// The first member is made, while its volume may be lost.
pub fn bootstrap() -> Slice {
    let mut start = World::new(1, NEWEST);
    start.faults =
        Faults { crashes: 1, lost_answers: 1, losses: 1, kills: 1, writes: 1, ..Faults::default() };
    let does = &["apply-services", "apply-stateful-set", "write-config", "write-record", "delete-pod"];
    Slice::new(start, &[ONE_VOTES, WRITTEN, CRASHED, UNHEARD], does)
}

/// One becomes three.
pub fn growth() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.edits = vec![Edit::Replicas(3)];
    start.faults = Faults { crashes: 1, lost_answers: 1, kills: 1, writes: 1, ..Faults::default() };
    Slice::new(start, &[THREE_VOTE, WRITTEN, CRASHED, UNHEARD], ADDS)
}

/// Three become one, and a person thinks better of it.
pub fn shrinking() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Replicas(1), Edit::Replicas(3)];
    start.faults = Faults { crashes: 1, lost_answers: 1, writes: 1, elections: 1, ..Faults::default() };
    Slice::new(start, &[ONE_VOTES, TWO_VOTE, WRITTEN, CRASHED, UNHEARD], REMOVES)
}

/// One of three loses its volume.
pub fn loss() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.is_prompt = true;
    start.faults =
        Faults { crashes: 1, lost_answers: 1, losses: 1, kills: 1, writes: 1, ..Faults::default() };
    Slice::new(start, &[TWO_VOTE, WRITTEN, CRASHED, UNHEARD], &["member-remove", "member-add"])
}

/// Three are brought to the next version, and to the one after that, at any time.
pub fn upgrade() -> Slice {
    let mut start = World::settled(3, Version::new(5, 33));
    start.edits = vec![Edit::Version(NEWEST), Edit::Version(Version::new(7, 3))];
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, elections: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED, TWICE_ROLLED, CRASHED], &["delete-pod", "move-leader"])
}

/// One volume is lost and another one may be, the quorum with it, and a person asks for a recovery.
pub fn recovery() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.faults = Faults { losses: 1, ..Faults::default() };
    start = after(start, &[Action::Lose(Ordinal(1))]);
    let request = RecoveryRequest { token: "now".to_owned(), survivor: None };
    start.edits = vec![Edit::Recover(Some(request))];
    start.is_prompt = true;
    start.faults = Faults { losses: 1, writes: 1, ..Faults::default() };
    let does = &["write-config", "delete-pod", "delete-volume", "retain-volume", "member-add"];
    Slice::new(start, &[NO_QUORUM, RECOVERED, CANCELLED], does)
}

/// Goes a way that leads to where a slice starts.
fn after(start: World, way: &[Action]) -> World {
    let step = |world: World, action: &Action| world.after(action, Hand::default()).expect("it can be");
    way.iter().fold(start, step)
}

/// A quorum is lost that may come back by itself, while a recovery is under way: one member has no data any more, and
/// one is being started. Of a write that was acknowledged the third one knows nothing, and it is named to go on from.
pub fn comeback() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.faults = Faults { losses: 1, kills: 1, writes: 1, ..Faults::default() };
    let fail = [Action::Kill(Ordinal(0)), Action::Elect(MemberId(2)), Action::Lose(Ordinal(1))];
    start = after(start, &[&[Action::Write(0)], &fail[..]].concat());
    let request = RecoveryRequest { token: "now".to_owned(), survivor: Some(Ordinal(2)) };
    start.edits = vec![Edit::Recover(Some(request))];
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[RECOVERED, CANCELLED, CRASHED], &["write-config", "delete-pod"])
}

/// Two of five are left, of which one lacks a write that was acknowledged, and a recovery is asked for.
pub fn survivors() -> Slice {
    let mut start = World::settled(5, NEWEST);
    start.faults = Faults { losses: 3, elections: 1, writes: 1, ..Faults::default() };
    let lose = [2, 3, 4].map(|ordinal| Action::Lose(Ordinal(ordinal)));
    start = after(start, &[&[Action::Elect(MemberId(5)), Action::Write(2)], &lose[..]].concat());
    let index = |ordinal| start.objects.volumes[&Ordinal(ordinal)].data.map(|data| data.index);
    assert!(index(0) < index(1), "{start:#?}");
    let request = RecoveryRequest { token: "now".to_owned(), survivor: None };
    start.edits = vec![Edit::Recover(Some(request))];
    start.desired.replicas = 2;
    start.is_prompt = true;
    start.faults = Faults { kills: 1, ..Faults::default() };
    Slice::new(start, &[NO_QUORUM, RECOVERED, TWO_VOTE], &["write-config", "retain-volume"])
}

/// A pass cannot read something, while members come and go.
pub fn blindness() -> Slice {
    let mut start = World::settled(2, NEWEST);
    start.edits = vec![Edit::Replicas(3)];
    start.is_prompt = true;
    start.faults = Faults { blind: 2, kills: 1, losses: 1, ..Faults::default() };
    Slice::new(start, &[THREE_VOTE], ADDS)
}

/// Two operators, each of which takes itself for the only one, and a volume that is left of a growth which was given
/// up: one may be about to delete it while the other one makes a member on it.
pub fn two_operators() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.operators.push(Operator::default());
    start.leave_volume(Ordinal(1));
    start.edits = vec![Edit::Replicas(2)];
    start.is_prompt = true;
    start.faults = Faults { kills: 1, ..Faults::default() };
    Slice::new(start, &[TWO_VOTE], ADDS)
}

/// Two operators, while a person thinks better of it twice: too large to be looked at whole, and found through quickly.
pub fn second_thoughts() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.operators.push(Operator::default());
    start.edits = [2, 1, 2].map(Edit::Replicas).to_vec();
    start.is_prompt = true;
    Slice::new(start, &[], &[])
}

/// Members are restarted, stopped and started again, and work rests meanwhile.
pub fn stopping() -> Slice {
    let mut start = World::settled(2, NEWEST);
    start.edits =
        vec![Edit::Revision, Edit::Pause(true), Edit::Pause(false), Edit::Replicas(0), Edit::Replicas(2)];
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, blind: 1, kills: 1, elections: 1, ..Faults::default() };
    Slice::new(start, &[STOPPED, TWO_VOTE, CRASHED], &["delete-pod", "apply-stateful-set"])
}

/// A cluster is deleted with its volumes while it grows.
pub fn deletion() -> Slice {
    let mut start = World::new(1, NEWEST);
    start.desired.deletes_volumes = true;
    let mut start = start.settle();
    start.edits = vec![Edit::Replicas(2), Edit::Delete { volumes: true }];
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, lost_answers: 1, kills: 1, losses: 1, ..Faults::default() };
    Slice::new(start, &[TWO_VOTE, STOPPED, LET_GO, CRASHED, UNHEARD], &["delete-volume", "remove-finalizer"])
}

/// A cluster that was to go with its volumes grows, and is deleted without them.
pub fn deletion_that_keeps() -> Slice {
    let mut start = World::new(1, NEWEST);
    start.desired.deletes_volumes = true;
    let mut start = start.settle();
    start.edits = vec![Edit::Replicas(2), Edit::Delete { volumes: false }];
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, lost_answers: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[TWO_VOTE, STOPPED, LET_GO, CRASHED, UNHEARD], &["remove-finalizer"])
}

/// A pod is evicted while members are restarted. Until it has ended it goes on serving.
pub fn drain() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Revision];
    start.faults = Faults { evictions: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED], &["delete-pod"])
}

/// The authority of a cluster's certificates is taken away, and another one follows it, while members are killed.
pub fn certificates() -> Slice {
    let mut start = World::certified(2, NEWEST);
    start.is_prompt = true;
    start.faults = Faults { authorities: 1, crashes: 1, kills: 1, ..Faults::default() };
    let does = &["write-authority", "write-certificate", "delete-pod"];
    Slice::new(start, &[FOLLOWED, CRASHED], does)
}

/// Claims of members are deleted while their pods use them; the template changes, the cluster is to stop, and grows.
pub fn claims() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.edits = vec![Edit::Revision, Edit::Replicas(0), Edit::Replicas(3)];
    start.is_prompt = true;
    start.faults = Faults { claims: 1, crashes: 1, blind: 1, ..Faults::default() };
    Slice::new(start, &[THREE_VOTE, STOPPED, CLAIM_REPLACED, CRASHED], &["member-remove", "member-add"])
}

/// The ConfigMap is deleted at any time, while the cluster stops and starts again.
pub fn config() -> Slice {
    let mut start = World::settled(2, NEWEST);
    let members = start.etcd.members.iter();
    start.objects.remembered =
        Some(members.filter_map(|member| Some((member.ordinal?, member.id))).collect());
    start.edits = vec![Edit::Replicas(0), Edit::Replicas(2)];
    start.is_prompt = true;
    start.faults = Faults { configs: 1, kills: 2, crashes: 1, ..Faults::default() };
    Slice::new(start, &[STOPPED, TWO_VOTE, CRASHED, NO_QUORUM], &["write-config", "apply-stateful-set"])
}

/// The same of one that loses what is in it.
pub fn emptied_config() -> Slice {
    let mut slice = config();
    slice.start.empties_config = true;
    slice
}

/// The ConfigMap is deleted at any time of a recovery, and after it: of two others the data of one are there, and are set
/// aside.
pub fn config_in_recovery() -> Slice {
    let mut start = World::settled(3, NEWEST);
    let members = start.etcd.members.iter();
    start.objects.remembered =
        Some(members.filter_map(|member| Some((member.ordinal?, member.id))).collect());
    start.faults = Faults { losses: 1, kills: 1, ..Faults::default() };
    start = after(start, &[Action::Kill(Ordinal(0)), Action::Lose(Ordinal(1))]);
    let request = RecoveryRequest { token: "now".to_owned(), survivor: Some(Ordinal(2)) };
    start.edits = vec![Edit::Recover(Some(request))];
    start.is_prompt = true;
    start.faults = Faults { configs: 1, ..Faults::default() };
    Slice::new(start, &[RECOVERED, CANCELLED], &["set-aside-volume", "write-config", "retain-volume"])
}

/// An object that the operator has made is deleted at any time of a recovery, with the pods of the StatefulSet, and the
/// ConfigMap too.
pub fn objects_in_recovery() -> Slice {
    let mut slice = config_in_recovery();
    slice.start.faults = Faults { objects: 1, configs: 1, ..Faults::default() };
    slice
}

/// The same of one that loses what is in it.
pub fn emptied_config_in_recovery() -> Slice {
    let mut slice = config_in_recovery();
    slice.start.empties_config = true;
    slice
}

/// An object that the operator has made is deleted at any time, while the cluster stops and starts again.
pub fn objects() -> Slice {
    let mut start = World::settled(2, NEWEST);
    start.edits = vec![Edit::Replicas(0), Edit::Replicas(2)];
    start.is_prompt = true;
    start.faults = Faults { objects: 2, kills: 1, crashes: 1, ..Faults::default() };
    let does = &["apply-stateful-set", "apply-services", "apply-budget"];
    Slice::new(start, &[STOPPED, TWO_VOTE, CRASHED, NO_QUORUM], does)
}

/// The label by which clients find a member is removed while the cluster grows.
pub fn labels() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.edits = vec![Edit::Replicas(2)];
    start.is_prompt = true;
    start.faults = Faults { labels: 2, crashes: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[TWO_VOTE, CRASHED], &["label-pod", "member-add", "member-promote"])
}

/// Pods come and go while a cluster grows, work rests, and no operator may be there.
pub fn serving() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.edits = vec![Edit::Replicas(2), Edit::Pause(true), Edit::Pause(false)];
    start.is_prompt = true;
    start.counts_service = true;
    start.faults = Faults { evictions: 1, crashes: 1, elections: 1, ..Faults::default() };
    Slice::new(start, &[TWO_VOTE, CRASHED, BACK_WHILE_PAUSED], &["label-pod", "member-add"])
}

/// The same of a cluster that an earlier release has made, whose pods come up without a label.
pub fn earlier_release() -> Slice {
    let mut start = World::settled(2, NEWEST);
    if let Some(set) = &mut start.objects.set {
        set.labels_voters = false;
    }
    start.edits = vec![Edit::Pause(true), Edit::Pause(false)];
    start.is_prompt = true;
    start.faults = Faults { evictions: 1, crashes: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[CRASHED, BACK_WHILE_PAUSED], &["label-pod", "apply-stateful-set"])
}

/// A client writes while members are restarted, and not all have what it wrote.
pub fn lag() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Revision];
    start.is_prompt = true;
    start.counts_lag = true;
    start.faults = Faults { writes: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED, WRITTEN, CRASHED], &["delete-pod", "move-leader"])
}

/// A member votes and does not answer, and another one may be down, while members are restarted.
pub fn silence() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Revision];
    start.is_prompt = true;
    start.faults = Faults { silences: 1, kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED, CRASHED], &["delete-pod", "move-leader"])
}

/// All members vote and none answers, since they have too little of the processor, say; one has just been killed; and
/// another template is asked for, with more.
pub fn silence_of_all() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.faults = Faults { silences: 3, kills: 1, ..Faults::default() };
    start = after(start, &[0, 1, 2].map(|ordinal| Action::Silence(Ordinal(ordinal))));
    start = after(start, &[Action::Kill(Ordinal(1))]);
    start.edits = vec![Edit::Revision];
    start.is_prompt = true;
    start.faults = Faults { silences: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[ALL_ROLLED, CRASHED], &["delete-pod", "move-leader"])
}

/// The data of a member come to differ from the others', and etcd's alarm names that one, another one or none, or comes
/// where no data differ.
pub fn suspicion() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.is_prompt = true;
    start.counts_data = true;
    start.faults = Faults { corruptions: 1, suspicions: 1, kills: 1, crashes: 1, ..Faults::default() };
    let does = &["alarm-disarm", "member-remove", "move-leader", "member-add"];
    Slice::new(start, &[THREE_VOTE, TWO_VOTE, CORRUPT_REPLACED, CRASHED], does)
}

/// Databases come to be full while members come and go.
pub fn space() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.is_prompt = true;
    start.faults = Faults { fills: 1, kills: 1, elections: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[ROOM_MADE, CRASHED], &["compact", "defragment", "alarm-disarm"])
}

/// Three are brought to the minor before, and a person thinks better of it.
pub fn downgrade() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.desired.allows_downgrade = true;
    start.edits = [Version::new(5, 33), NEWEST].map(Edit::Version).to_vec();
    start.is_prompt = true;
    start.faults = Faults { kills: 1, crashes: 1, ..Faults::default() };
    let does = &["downgrade-enable", "downgrade-cancel", "delete-pod", "move-leader"];
    Slice::new(start, &[ALL_LOWERED, CRASHED], does)
}

/// Three become five: to find faults in, for growth is looked at from one member on.
pub fn growth_to_five() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Replicas(5)];
    start.is_prompt = true;
    Slice::new(start, &[], &[])
}
