//! A member that no other one hears, beside others that go on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gatehouse::kinds::etcdcluster::actions::Action;
use gatehouse::kinds::etcdcluster::etcd::Status;
use gatehouse::kinds::etcdcluster::observation::{
    Age, ClusterId, Desired, Fact, Member, MemberId, MemberStatus, Membership, Observation, Ordinal, Role,
};
use gatehouse::kinds::etcdcluster::plan::{BlockedReason, Plan, plan};
use kit::reconciliations::log::{Event, Log};
use testbed::EtcdVersion;

use crate::support::Cluster;

const ALL: [usize; 3] = [0, 1, 2];

/// What is asked for, and all that an operator has read, of three members at rest.
fn at_rest() -> (Desired, Observation) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/members-replaced.ndjson");
    let log = Log::read([fs::read_to_string(path).unwrap().as_str()]);
    let mut passes = log.lines.into_iter().filter_map(|line| match line.event {
        Event::Pass(pass) => Some(pass),
        Event::Action(_) => None,
    });
    let rests = passes.rfind(|pass| plan(&pass.desired, &pass.seen).actions.is_empty()).unwrap();
    (rests.desired, rests.seen)
}

fn ordinal(place: usize) -> Ordinal {
    Ordinal(u32::try_from(place).unwrap())
}

/// What an operator has read of a member, with what that says of itself now. No alarm is armed, which would be one of
/// its errors.
fn heard(seen: &MemberStatus, now: &Status) -> MemberStatus {
    MemberStatus {
        cluster_id: ClusterId(now.header.cluster_id),
        member_id: MemberId(now.header.member_id),
        leader: Some(now.leader).filter(|leader| *leader != 0).map(MemberId),
        is_learner: now.is_learner,
        has_errors: !now.errors.is_empty(),
        raft_index: now.raft_index,
        raft_applied_index: now.raft_applied_index,
        ..seen.clone()
    }
}

/// Puts into what an operator has read what the members that are there now answer, those that reach each other in one
/// term, with a leader.
async fn look(cluster: &Cluster, seen: &mut Observation, reach: &[usize]) {
    let read = async || {
        let mut all = Vec::new();
        for place in ALL {
            all.push(cluster.status(place).await);
        }
        let list = cluster.client(reach[0]).members().await.ok()?;
        let led: BTreeSet<_> =
            reach.iter().map(|place| (all[*place].raft_term, all[*place].leader)).collect();
        (led.len() == 1 && led.iter().all(|(_, leader)| *leader != 0)).then_some((all, list))
    };
    let (all, list) = cluster.eventually("look within one term", read).await;
    for (place, now) in all.iter().enumerate() {
        let known = seen.statuses.get_mut(&ordinal(place)).unwrap();
        *known = Fact::Known(heard(known.known().unwrap(), now));
    }
    let place = |urls: &[String]| ALL.into_iter().find(|place| urls == [cluster.bed.peer_url(*place)]);
    let members = list.members.iter().map(|member| Member {
        id: MemberId(member.id),
        ordinal: place(&member.peer_urls).map(ordinal),
        is_learner: member.is_learner,
        is_started: !member.name.is_empty(),
    });
    let mut members: Vec<_> = members.collect();
    members.sort_unstable();
    let Fact::Known(config) = &mut seen.config else { panic!("a ConfigMap") };
    for member in &members {
        config.entries.get_mut(&member.ordinal.unwrap()).unwrap().member = Some(member.id);
    }
    let cluster_id = ClusterId(list.header.cluster_id);
    seen.record.cluster_id = Some(cluster_id);
    seen.membership = Fact::Known(Membership { cluster_id, members });
    seen.health_age = Age::PastDeadline;
}

fn label(seen: &mut Observation, place: usize, role: Option<Role>) {
    let Fact::Known(pods) = &mut seen.pods else { panic!("pods") };
    pods.get_mut(&ordinal(place)).unwrap().role = role;
}

/// The pods that get another label, and that.
fn labelled(plan: &Plan) -> Vec<(Ordinal, Option<Role>)> {
    let labels = plan.actions.iter().filter_map(|action| match action {
        Action::LabelPod { ordinal, role, .. } => Some((*ordinal, *role)),
        _ => None,
    });
    labels.collect()
}

/// A follower is cut off, and then the leader.
pub async fn a_member_that_hears_no_other_one_is_led_to_by_no_service(version: EtcdVersion) {
    let (cluster, links) = Cluster::linked(version, 3).await;
    let (desired, mut seen) = at_rest();
    for leads in [false, true] {
        let leader = cluster.leader(&ALL).await;
        look(&cluster, &mut seen, &ALL).await;
        assert_eq!(labelled(&plan(&desired, &seen)), []);

        let alone = if leads { leader } else { (leader + 1) % ALL.len() };
        links.cut(alone, cluster.status(alone).await.header.member_id);
        let client = cluster.client(alone);
        let follows = async || client.status().await.unwrap().leader != 0;
        cluster.eventually("member without a leader", async || (!follows().await).then_some(())).await;
        let others: Vec<_> = ALL.into_iter().filter(|place| *place != alone).collect();
        let leader = cluster.leader(&others).await;
        cluster.write(&cluster.client(leader), b"key", b"value").await;

        look(&cluster, &mut seen, &others).await;
        let planned = plan(&desired, &seen);
        assert_eq!(labelled(&planned), [(ordinal(alone), None)], "{planned:#?}");
        label(&mut seen, alone, None);
        // It is neither replaced nor restarted, and nothing else is begun beside it.
        let planned = plan(&desired, &seen);
        assert!(!planned.actions.iter().any(Action::is_irreversible), "{planned:#?}");
        assert_eq!(planned.summary.blocked, Some(BlockedReason::Down(ordinal(alone))));

        links.mend();
        cluster.eventually("member that follows again", async || follows().await.then_some(())).await;
        look(&cluster, &mut seen, &ALL).await;
        let planned = plan(&desired, &seen);
        assert_eq!(labelled(&planned), [(ordinal(alone), Some(Role::Voter))], "{planned:#?}");
        label(&mut seen, alone, Some(Role::Voter));
    }
}
