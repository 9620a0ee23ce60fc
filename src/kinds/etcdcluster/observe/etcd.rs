//! Asks the members of a cluster about themselves and each other, all at the same time.
//!
//! Guarantees: a list of members is known only where a majority agreed on it after this reconciliation began, and it
//! was asked of the very member whose identity it carries; who does not answer is unknown. The list is asked for after
//! the statuses, so that no status is younger than it.
//! Never: retries within a reconciliation, beyond asking another member.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use tracing::debug;

use super::metrics::Metrics;
use crate::kinds::etcdcluster::api::versions;
use crate::kinds::etcdcluster::etcd;
use crate::kinds::etcdcluster::member_clients::MemberClients;
use crate::kinds::etcdcluster::observation::{
    Age, Alarm, AlarmKind, ClusterId, Fact, Keyspace, Member, MemberId, MemberStatus, Membership, Minor,
    Ordinal,
};
use crate::kinds::etcdcluster::spec::Spec;

/// Members that are asked for the list, one after the other, before it counts as unknown.
const ASKED: usize = 3;

/// The quota of etcd where it reports none: 2 GiB.
const DEFAULT_QUOTA: u64 = 2 << 30;

/// The answers.
#[derive(Debug)]
pub struct EtcdResponses {
    /// What each member reported about itself.
    pub statuses: BTreeMap<Ordinal, Fact<MemberStatus>>,
    /// Snapshots that the process of each member has saved.
    pub snapshots: BTreeMap<MemberId, u64>,
    /// The list, as a majority has it.
    pub membership: Fact<Membership>,
    /// The list, as one member remembers it.
    pub last_membership: Fact<Membership>,
    /// The alarms that are armed.
    pub alarms: Fact<Vec<Alarm>>,
    /// The version that the members agreed on.
    pub cluster_version: Fact<Minor>,
    /// Whether etcd has authentication enabled, and the revision of its users.
    pub auth: Fact<etcd::AuthStatus>,
}

/// Asks all members.
pub async fn ask(reach: &MemberClients, spec: &Spec) -> EtcdResponses {
    let (statuses, snapshots, cluster_version) = statuses(reach).await;
    let order = order(&statuses);
    let mut said = EtcdResponses {
        statuses,
        snapshots,
        membership: Fact::Unknown,
        last_membership: Fact::Unknown,
        alarms: Fact::Unknown,
        cluster_version,
        auth: Fact::Unknown,
    };
    for ordinal in order.iter().take(ASKED) {
        let Some(client) = reach.client(*ordinal) else { continue };
        match client.members().await {
            Ok(members) => {
                said.membership = Fact::Known(membership(spec, &members));
                said.alarms = alarms(client).await;
                said.auth = auth(client, spec.authenticates).await;
                return said;
            }
            Err(error) => debug!(%error, "failed to list the members"),
        }
    }
    if let Some(client) = order.first().and_then(|ordinal| reach.client(*ordinal))
        && let Ok(members) = client.remembered_members().await
    {
        said.last_membership = Fact::Known(membership(spec, &members));
    }
    said
}

/// What the members say of themselves.
type Statuses = BTreeMap<Ordinal, Fact<MemberStatus>>;

/// What each says of itself, the snapshots that each has saved, and the least version of the cluster that one of them
/// knows.
async fn statuses(reach: &MemberClients) -> (Statuses, BTreeMap<MemberId, u64>, Fact<Minor>) {
    let asked = reach.members.iter().map(|(ordinal, endpoint)| async move {
        let (status, page) = futures::join!(endpoint.client.status(), endpoint.metrics());
        let metrics = page.as_deref().map_or(Metrics::UNKNOWN, Metrics::of);
        let status = status.inspect_err(|error| debug!(%error, "a member does not answer")).ok();
        (*ordinal, status, metrics)
    });
    let answers = join_all(asked).await;
    let known = answers.iter().filter(|(_, status, _)| status.is_some());
    let agreed = known.clone().filter_map(|(_, _, metrics)| metrics.cluster_version).min();
    let snapshots = known
        .filter_map(|(_, status, metrics)| {
            Some((MemberId(status.as_ref()?.header.member_id), *metrics.snapshots.known()?))
        })
        .collect();
    let statuses = answers.into_iter().map(|(ordinal, status, metrics)| {
        let read = status.and_then(|status| read(&status, metrics));
        (ordinal, read.map_or(Fact::Unknown, Fact::Known))
    });
    (statuses.collect(), snapshots, agreed.map_or(Fact::Unknown, Fact::Known))
}

/// A status; nothing where it is not from a supported etcd.
fn read(status: &etcd::Status, metrics: Metrics) -> Option<MemberStatus> {
    // An image that was built again reports one with a suffix.
    let version = versions::parse_reported(&status.version)?;
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let minor = |text: &str| versions::parse_reported(text).map(|version| version.minor);
    let downgrade = status.downgrade.as_ref().filter(|downgrade| downgrade.enabled);
    Some(MemberStatus {
        cluster_id: ClusterId(status.header.cluster_id),
        member_id: MemberId(status.header.member_id),
        version,
        leader: Some(status.leader).filter(|leader| *leader != 0).map(MemberId),
        is_learner: status.is_learner,
        // Alarms are among them, as etcd prints their messages.
        has_errors: status.errors.iter().any(|error| !error.contains("alarm:")),
        raft_index: status.raft_index,
        raft_applied_index: status.raft_applied_index,
        db_size: unsigned(status.db_size),
        db_size_in_use: unsigned(status.db_size_in_use),
        quota: Some(unsigned(status.db_size_quota))
            .filter(|quota| *quota > 0)
            .or(metrics.quota)
            .unwrap_or(DEFAULT_QUOTA),
        storage_version: match status.storage_version.as_str() {
            "" => Fact::Absent,
            text => minor(text).map_or(Fact::Unknown, Fact::Known),
        },
        downgrade_target: match downgrade {
            None => Fact::Absent,
            Some(downgrade) => minor(&downgrade.target_version).map_or(Fact::Unknown, Fact::Known),
        },
        // Since when it counts is for what is remembered of the cluster to say.
        has_saved_snapshot: metrics.snapshots.map(|count| count > 0),
        defragmented: Age::PastDeadline,
        falls_behind: false,
        corrupt: corrupt(&status.errors),
    })
}

/// The members that alarms about their data name, as etcd prints them: `memberID:1 alarm:CORRUPT `, without a number
/// where it is unknown whose are wrong.
fn corrupt(errors: &[String]) -> BTreeSet<MemberId> {
    let alarms = errors.iter().map(|error| error.split_whitespace().collect::<Vec<_>>());
    let alarms = alarms.filter(|words| words.contains(&"alarm:CORRUPT"));
    let named = alarms.map(|words| {
        let mut numbers = words.iter().filter_map(|word| word.strip_prefix("memberID:")?.parse().ok());
        MemberId(numbers.next().unwrap_or(0))
    });
    named.collect()
}

/// In which order members are asked for what is the cluster's: who leads, then voters that follow a leader, then other
/// voters, the furthest first.
pub fn order(statuses: &BTreeMap<Ordinal, Fact<MemberStatus>>) -> Vec<Ordinal> {
    let answers = statuses.iter().filter_map(|(ordinal, status)| Some((*ordinal, status.known()?)));
    let mut voters: Vec<_> = answers.filter(|(_, status)| !status.is_learner).collect();
    voters.sort_by_key(|(ordinal, status)| {
        let leads = status.leader == Some(status.member_id);
        let further = std::cmp::Reverse(status.raft_index);
        (!leads, status.leader.is_none(), further, *ordinal)
    });
    voters.into_iter().map(|(ordinal, _)| ordinal).collect()
}

/// A list of members, sorted by identity.
pub fn membership(spec: &Spec, members: &etcd::Members) -> Membership {
    let read = |member: &etcd::Member| Member {
        id: MemberId(member.id),
        ordinal: match member.peer_urls.as_slice() {
            [url] => spec.ordinal_of(url),
            _ => None,
        },
        is_learner: member.is_learner,
        is_started: !member.name.is_empty(),
    };
    let mut list: Vec<_> = members.members.iter().map(read).collect();
    list.sort_unstable();
    Membership { cluster_id: ClusterId(members.header.cluster_id), members: list }
}

/// A kind of alarm that is not known here is left out: nothing here could be done about it. To ask is an entry of the log.
/// That is relied on: a member of 3.6 or 3.7 that was sent a snapshot says how far it has got only once it has applied
/// an entry after it, and no client may be writing.
async fn alarms(client: &etcd::Client) -> Fact<Vec<Alarm>> {
    let Ok(alarms) = client.alarms().await else { return Fact::Unknown };
    let read = alarms.iter().filter_map(|alarm| {
        let kind = match alarm.kind() {
            etcd::AlarmKind::NoSpace => AlarmKind::NoSpace,
            etcd::AlarmKind::Corrupt => AlarmKind::Corrupt,
            etcd::AlarmKind::None => return None,
        };
        Some(Alarm { member: MemberId(alarm.member), kind })
    });
    let mut read: Vec<_> = read.collect();
    read.sort_unstable();
    Fact::Known(read)
}

async fn auth(client: &etcd::Client, authenticates: bool) -> Fact<etcd::AuthStatus> {
    if !authenticates {
        return Fact::Absent;
    }
    client.auth_status().await.map_or(Fact::Unknown, Fact::Known)
}

/// The revisions of the key space, of one member. It hashes all keys for that, so it is asked only where it matters.
pub async fn keyspace(client: &etcd::Client) -> Fact<Keyspace> {
    let Ok(hash) = client.hash_keys(0).await else { return Fact::Unknown };
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let revision = unsigned(hash.header.revision);
    Fact::Known(Keyspace { revision, compact_revision: unsigned(hash.compact_revision) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::etcdcluster::observation::Version;

    fn status(member: u64, leader: u64, index: u64) -> etcd::Status {
        etcd::Status {
            header: etcd::Header { cluster_id: 1, member_id: member, ..etcd::Header::default() },
            version: "3.6.16".to_owned(),
            leader,
            raft_index: index,
            ..etcd::Status::default()
        }
    }

    /// Of a member whose metrics are not answered.
    fn alone(status: &etcd::Status) -> Option<MemberStatus> {
        read(status, Metrics::UNKNOWN)
    }

    fn known(status: &etcd::Status) -> Fact<MemberStatus> {
        Fact::Known(alone(status).unwrap())
    }

    #[test]
    fn an_alarm_is_no_error_of_a_member_and_a_missing_leader_is() {
        let mut told = status(1, 1, 1);
        told.errors = vec!["memberID:1 alarm:NOSPACE ".to_owned()];
        assert!(!alone(&told).unwrap().has_errors);
        told.errors.push("etcdserver: no leader".to_owned());
        assert!(alone(&told).unwrap().has_errors);
    }

    #[test]
    fn a_member_names_those_that_alarms_call_corrupt() {
        let of = |errors: &[&str]| {
            let mut told = status(1, 1, 1);
            told.errors = errors.iter().map(|error| (*error).to_owned()).collect();
            alone(&told).unwrap().corrupt
        };
        assert_eq!(of(&["memberID:1 alarm:NOSPACE ", "etcdserver: no leader"]), BTreeSet::new());
        let two = of(&["memberID:10276657743932975437 alarm:CORRUPT ", "memberID:7  alarm:CORRUPT"]);
        assert_eq!(two, [MemberId(7), MemberId(10_276_657_743_932_975_437)].into());
        assert_eq!(of(&["alarm:CORRUPT "]), [MemberId(0)].into());
    }

    #[test]
    fn the_quota_is_what_the_member_says_or_else_its_metrics_or_else_etcds_default() {
        let metrics = Metrics { quota: Some(7), ..Metrics::UNKNOWN };
        let mut told = status(1, 1, 1);
        assert_eq!(alone(&told).unwrap().quota, DEFAULT_QUOTA);
        assert_eq!(read(&told, metrics).unwrap().quota, 7);
        told.db_size_quota = 9;
        assert_eq!(read(&told, metrics).unwrap().quota, 9);
    }

    #[test]
    fn a_member_of_an_image_that_was_built_again_is_one_of_its_version() {
        let mut told = status(1, 1, 1);
        told.version = "3.6.16-rebuilt.1".to_owned();
        let version = |told: &etcd::Status| alone(told).map(|status| status.version);
        assert_eq!(version(&told), Some(Version::new(6, 16)));
        told.version = "4.0.0".to_owned();
        assert_eq!(version(&told), None, "another etcd");
    }

    #[test]
    fn a_downgrade_that_is_not_under_way_is_none() {
        let mut told = status(1, 1, 1);
        let state = |enabled| etcd::DowngradeState { enabled, target_version: "3.5.0".to_owned() };
        told.downgrade = Some(state(false));
        assert_eq!(alone(&told).unwrap().downgrade_target, Fact::Absent);
        told.downgrade = Some(state(true));
        assert_eq!(alone(&told).unwrap().downgrade_target, Fact::Known(5));
    }

    #[test]
    fn the_leader_is_asked_first_and_a_learner_never() {
        let mut learner = status(4, 2, 9);
        learner.is_learner = true;
        let statuses = BTreeMap::from([
            (Ordinal(0), known(&status(1, 2, 3))),
            (Ordinal(1), known(&status(2, 2, 4))),
            (Ordinal(2), known(&status(3, 0, 5))),
            (Ordinal(3), known(&learner)),
            (Ordinal(4), Fact::Unknown),
        ]);
        assert_eq!(order(&statuses), [Ordinal(1), Ordinal(0), Ordinal(2)]);
    }
}
