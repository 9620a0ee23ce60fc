//! Membership: adding, promoting and removing members, and moving the leader.
//!
//! Guarantees: before each change the list is read once more, linearizably, from the member that is then asked for the
//! change, and has to be the very one that the change was decided on; nothing is sent twice. The next list shows
//! whether a change whose answer was lost was done.

use futures::future::join_all;
use futures::join;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use super::{Execution, Failure, unless_refused};
use crate::kinds::etcdcluster::actions::MembershipGuard;
use crate::kinds::etcdcluster::etcd::{Client, Refusal};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{
    ClusterId, Fact, MemberId, Membership, Ordinal, PodPhase, Role, Uid,
};
use crate::kinds::etcdcluster::observe::{etcd as asking, kubernetes, phase};
use crate::kinds::etcdcluster::plan::{has_caught_up, quorum};

/// Members that are asked, one after the other, before a change is left to the next reconciliation.
const ASKED: usize = 2;

/// How often the last voter is asked to append an entry.
const ASKED_TO_LOG: usize = 3;

/// The members that can be asked, other than `not`.
fn candidates(
    execution: Execution<'_>,
    guard: MembershipGuard,
    not: Option<MemberId>,
) -> impl Iterator<Item = &Client> {
    let seen = execution.observation();
    let is_other = move |ordinal: &Ordinal| {
        let status = seen.status(*ordinal).found();
        status.is_some_and(|status| status.cluster_id == guard.cluster_id && Some(status.member_id) != not)
    };
    let others = asking::order(&seen.statuses).into_iter().filter(is_other);
    others.filter_map(move |ordinal| execution.seen.reach.client(ordinal)).take(ASKED)
}

/// The list of members, where it is the very one that a change was decided on.
async fn agrees(
    execution: Execution<'_>,
    client: &Client,
    guard: MembershipGuard,
) -> Result<Membership, Failure> {
    let membership = asking::membership(execution.spec, &client.members().await?);
    if MembershipGuard::of(&membership) == guard {
        return Ok(membership);
    }
    Err(Failure::moved("the list of members has changed"))
}

/// A member that answers with the very list that a change was decided on, other than `not`.
pub async fn agreed(
    execution: Execution<'_>,
    guard: MembershipGuard,
    not: Option<MemberId>,
) -> Result<(&Client, Membership), Failure> {
    let mut last = Failure::moved("no member can be asked");
    for client in candidates(execution, guard, not) {
        match agrees(execution, client, guard).await {
            Ok(membership) => return Ok((client, membership)),
            Err(failure @ Failure::Elsewhere { .. }) => last = failure,
            Err(refused) => return Err(refused),
        }
    }
    Err(last)
}

/// A change of the list of members.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// A learner is added.
    Add,
    /// That member is removed.
    Remove(MemberId),
}

/// Asks one member for a change, and another one where that thinks itself cut off. Each has its own view of who is
/// connected, and one that was notified late of a failure believes that a working connection is broken for as long as
/// it lasts (etcd's `rafthttp`: a pipeline that fails makes a peer inactive whose streams are new).
async fn ask_for(
    execution: Execution<'_>,
    guard: MembershipGuard,
    ordinal: Ordinal,
    change: Change,
) -> Result<(), Failure> {
    let not = match change {
        Change::Add => None,
        Change::Remove(member) => Some(member),
    };
    let mut last = Failure::moved("no member can be asked");
    for client in candidates(execution, guard, not) {
        let asked = match (agrees(execution, client, guard).await, change) {
            (Ok(membership), Change::Add) => add_by(execution, client, &membership, ordinal).await,
            (Ok(membership), Change::Remove(member)) => {
                remove_by(execution, client, &membership, (member, ordinal)).await
            }
            (Err(failure), _) => Err(failure),
        };
        match asked {
            // Surely not done.
            Err(failure @ Failure::Elsewhere { is_undone: true, .. }) => last = failure,
            answer => return answer,
        }
    }
    Err(last)
}

/// The member at an ordinal, where it answers now as the one that is meant.
pub async fn itself(
    execution: Execution<'_>,
    ordinal: Ordinal,
    cluster_id: ClusterId,
    member: MemberId,
) -> Result<&Client, Failure> {
    let name = || names::member(&execution.name(), ordinal);
    let client = execution.seen.reach.client(ordinal);
    let client = client.ok_or_else(|| Failure::moved(format!("member {} cannot be asked", name())))?;
    let header = client.status().await?.header;
    if (header.cluster_id, header.member_id) != (cluster_id.0, member.0) {
        return Err(Failure::moved(format!("member {} is another one", name())));
    }
    Ok(client)
}

/// Adds a learner, for a pod that waits on an empty volume.
pub async fn add(
    execution: Execution<'_>,
    guard: MembershipGuard,
    ordinal: Ordinal,
    pod: &Uid,
    volume: &Uid,
) -> Result<(), Failure> {
    waits(execution, ordinal, pod).await?;
    if !execution.seen.desired.is_in_memory {
        is_claimed(execution, ordinal, volume).await?;
    } else if pod != volume {
        return Err(Failure::moved("the volume in memory is that of another pod"));
    }
    ask_for(execution, guard, ordinal, Change::Add).await
}

async fn add_by(
    execution: Execution<'_>,
    client: &Client,
    membership: &Membership,
    ordinal: Ordinal,
) -> Result<(), Failure> {
    if membership.at(ordinal).is_some() {
        return Err(Failure::moved("there is a member with that peer URL"));
    }
    client.add_learner(&execution.spec.peer_url(ordinal)).await?;
    Ok(())
}

/// Whether the pod is there and its guard still waits.
async fn waits(execution: Execution<'_>, ordinal: Ordinal, uid: &Uid) -> Result<(), Failure> {
    let name = names::member(&execution.name(), ordinal);
    let pod: Option<Pod> = execution.read(&name).await?;
    let waits = pod.is_some_and(|pod| {
        pod.metadata.uid.as_ref() == Some(&uid.0)
            && pod.metadata.deletion_timestamp.is_none()
            && phase::of(&pod) == PodPhase::Waiting
            && kubernetes::role(&pod) != Some(Role::Voter)
    });
    if waits { Ok(()) } else { Err(Failure::moved(format!("pod {name} no longer waits"))) }
}

/// Whether the volume is the one that was seen.
async fn is_claimed(execution: Execution<'_>, ordinal: Ordinal, uid: &Uid) -> Result<(), Failure> {
    let name = names::claim(&execution.name(), ordinal);
    let claim: Option<PersistentVolumeClaim> = execution.read(&name).await?;
    let stays = claim.is_some_and(|claim| {
        claim.metadata.uid.as_ref() == Some(&uid.0) && claim.metadata.deletion_timestamp.is_none()
    });
    if stays { Ok(()) } else { Err(Failure::moved(format!("claim {name} has changed"))) }
}

/// Gives a learner its vote.
pub async fn promote(
    execution: Execution<'_>,
    guard: MembershipGuard,
    member: MemberId,
    ordinal: Ordinal,
) -> Result<(), Failure> {
    itself(execution, ordinal, guard.cluster_id, member).await?;
    let (client, membership) = agreed(execution, guard, Some(member)).await?;
    let found = membership.find(member).filter(|found| found.ordinal == Some(ordinal));
    if !found.is_some_and(|found| found.is_learner && found.is_started) {
        return Err(Failure::moved("the member is no learner that has started"));
    }
    unless_refused(client.promote(member.0).await, Refusal::MemberNotLearner)
}

/// Removes a member.
pub async fn remove(
    execution: Execution<'_>,
    guard: MembershipGuard,
    member: MemberId,
    ordinal: Ordinal,
) -> Result<(), Failure> {
    ask_for(execution, guard, ordinal, Change::Remove(member)).await
}

async fn remove_by(
    execution: Execution<'_>,
    client: &Client,
    membership: &Membership,
    (member, ordinal): (MemberId, Ordinal),
) -> Result<(), Failure> {
    let Some(found) = membership.find(member).filter(|found| found.ordinal == Some(ordinal)) else {
        return Err(Failure::moved("the member has another peer URL"));
    };
    if !found.is_learner {
        let left = membership.voters().count() - 1;
        serve_without(execution, membership, member, quorum(left)).await?;
    }
    unless_refused(client.remove(member.0).await, Refusal::MemberNotFound)?;
    let left = membership.voters().filter(|voter| voter.id != member).count();
    if left == 1 && !found.is_learner { log_removal(client).await } else { Ok(()) }
}

/// Has the last voter append an entry once it is alone: etcd before 3.7 that is killed between the removal and its next
/// entry comes back with the removal in its log and not committed, and waits for ever for the vote of the member that is
/// gone. To ask for the alarms is an entry, and changes nothing.
async fn log_removal(client: &Client) -> Result<(), Failure> {
    let mut last = client.alarms().await;
    for _ in 1..ASKED_TO_LOG {
        if last.is_ok() {
            break;
        }
        last = client.alarms().await;
    }
    last.map(|_| ()).map_err(Failure::from)
}

/// Whether the others are a majority of the voters without that one.
pub async fn others_serve(
    execution: Execution<'_>,
    guard: MembershipGuard,
    member: MemberId,
) -> Result<(), Failure> {
    let (_, membership) = agreed(execution, guard, None).await?;
    serve_without(execution, &membership, member, quorum(membership.voters().count())).await
}

/// Whether the member list can still not be read from a majority, although members can be asked.
pub async fn quorum_is_lost(execution: Execution<'_>) -> Result<(), Failure> {
    if !execution.observation().certificates.is_usable() {
        return Err(Failure::moved("without the client's certificate no member can be asked"));
    }
    let clients = execution
        .observation()
        .pods
        .elements()
        .filter_map(|(ordinal, _)| execution.seen.reach.client(ordinal));
    let answers = join_all(clients.map(Client::members)).await;
    if answers.iter().any(Result::is_ok) {
        return Err(Failure::moved("a majority answers again"));
    }
    Ok(())
}

/// Whether so many of the other voters answer now, follow a leader and have caught up, in pods that stay: one that is
/// being deleted answers until its grace period is over.
async fn serve_without(
    execution: Execution<'_>,
    membership: &Membership,
    member: MemberId,
    needed: usize,
) -> Result<(), Failure> {
    let asked = membership.voters().filter(|voter| voter.id != member).map(|voter| async move {
        let ordinal = voter.ordinal?;
        let client = execution.seen.reach.client(ordinal)?;
        let name = names::member(&execution.name(), ordinal);
        let (status, pod) = join!(client.status(), execution.read::<Pod>(&name));
        let (status, pod) = (status.ok()?, pod.ok()??);
        let serves = status.header.member_id == voter.id.0 && status.leader != 0;
        (serves && pod.metadata.deletion_timestamp.is_none()).then_some(status)
    });
    let answers: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
    let seen = execution.observation().answers().map(|(_, status)| status.raft_index);
    let furthest = seen.chain(answers.iter().map(|status| status.raft_index)).max().unwrap_or(0);
    if answers.iter().filter(|status| has_caught_up(status.raft_applied_index, furthest)).count() >= needed {
        return Ok(());
    }
    Err(Failure::moved("the other voters cannot spare the member"))
}

/// Execution leadership over.
pub async fn move_leader(
    execution: Execution<'_>,
    guard: MembershipGuard,
    from: MemberId,
    to: MemberId,
) -> Result<(), Failure> {
    let statuses = execution.observation().statuses.iter();
    let mut leaders =
        statuses.filter(|(_, status)| matches!(status, Fact::Known(status) if status.member_id == from));
    let leader = leaders.next().map(|(ordinal, _)| *ordinal);
    let Some(leader) = leader else { return Err(Failure::moved("the leader cannot be asked")) };
    let (_, membership) = agreed(execution, guard, None).await?;
    if !membership.find(to).is_some_and(|to| !to.is_learner && to.is_started) {
        return Err(Failure::moved("the member that is to lead does not vote"));
    }
    let client = itself(execution, leader, guard.cluster_id, from).await?;
    Ok(client.move_leader(to.0).await?)
}
