//! Members that are no longer wanted before they vote, that are down when fewer are asked for, or that a recovery finds in
//! the middle of something else.

use super::*;

const LEARNED: Reach = ("a learner is there", |_, world| world.etcd.members.len() > world.voters().count());
const CALLED_OFF: Reach = ("a learner was removed", |start, world| {
    world.edits.is_empty() && world.etcd.members == start.etcd.members && world.most_asked == 3
});
const SICK_REMOVED: Reach = ("a member that was down was removed, and two are left", |start, world| {
    world.faults.kills < start.faults.kills && world.etcd.members.len() == 2 && world.live_voters() == 2
});

/// One is to become three, and a person thinks better of it.
pub fn growth_called_off() -> Slice {
    let mut start = World::settled(1, NEWEST);
    start.edits = vec![Edit::Replicas(3), Edit::Replicas(1)];
    start.is_prompt = true;
    start.faults = Faults { crashes: 1, kills: 1, ..Faults::default() };
    Slice::new(start, &[LEARNED, CALLED_OFF, CRASHED], &["member-add", "member-remove", "delete-volume"])
}

/// Three become two while one of them may be down.
pub fn shrinking_beside_the_dead() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.edits = vec![Edit::Replicas(2)];
    start.is_prompt = true;
    start.faults = Faults { kills: 1, crashes: 1, ..Faults::default() };
    Slice::new(start, &[SICK_REMOVED, CRASHED], REMOVES)
}

const WAITS_FOR_CLAIM: Reach = ("a recovery waits for a claim that goes with its pod", |_, world| {
    let recovery = world.objects.record.recovery.as_ref();
    recovery.is_some_and(|recovery| recovery.phase.is_active()) && !world.held_claims().is_empty()
});

/// A claim is deleted while its pod uses it, at any time of a recovery or after it: of two others one has no data, and one
/// is being started.
pub fn claim_in_recovery() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.faults = Faults { losses: 1, kills: 1, ..Faults::default() };
    start = after(start, &[Action::Kill(Ordinal(0)), Action::Lose(Ordinal(1))]);
    let request = RecoveryRequest { token: "now".to_owned(), survivor: Some(Ordinal(2)) };
    start.edits = vec![Edit::Recover(Some(request))];
    start.is_prompt = true;
    start.faults = Faults { claims: 1, crashes: 1, ..Faults::default() };
    let reaches = &[RECOVERED, CANCELLED, CRASHED, WAITS_FOR_CLAIM];
    Slice::new(start, reaches, &["set-aside-volume", "write-config", "delete-pod"])
}

/// The quorum is lost, and a recovery is asked for before another template is, or after; something cannot be read.
pub fn recovery_for_another_template() -> Slice {
    let mut start = World::settled(3, NEWEST);
    start.faults = Faults { losses: 1, kills: 1, ..Faults::default() };
    start = after(start, &[Action::Kill(Ordinal(0)), Action::Lose(Ordinal(1))]);
    let request = RecoveryRequest { token: "now".to_owned(), survivor: Some(Ordinal(2)) };
    start.edits = vec![Edit::Recover(Some(request)), Edit::Revision];
    start.is_prompt = true;
    start.faults = Faults { blind: 1, ..Faults::default() };
    Slice::new(start, &[RECOVERED, CANCELLED], &["write-config", "delete-pod", "apply-stateful-set"])
}

/// One of three loses its claim, which may be deleted once more, and the ConfigMap is deleted, at any time.
pub fn claims_and_config() -> Slice {
    let mut start = World::settled(3, NEWEST);
    let members = start.etcd.members.iter();
    start.objects.remembered =
        Some(members.filter_map(|member| Some((member.ordinal?, member.id))).collect());
    start.is_prompt = true;
    start.faults = Faults { losses: 1, claims: 1, configs: 1, ..Faults::default() };
    Slice::new(
        start,
        &[CLAIM_REPLACED, TWO_VOTE, NO_QUORUM],
        &["write-config", "member-remove", "member-add"],
    )
}
