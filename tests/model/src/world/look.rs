//! What a reconciliation reads, and what it plans.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use gatehouse::kinds::etcdcluster::observation::{
    Budget, Certificates, Config, Fact, Found, Hindered, MemberStatus, Membership, Observation,
};
use gatehouse::kinds::etcdcluster::plan::{Plan, plan};
use kit::explore::fingerprint;

use super::*;
use crate::faults::Hand;

/// How much of the log a rank stands for: a member that lacks one has not caught up.
fn entries(rank: u64) -> u64 {
    rank * 1_000_000
}

/// Another cluster, and a member of it.
const STRANGER: (ClusterId, MemberId) = (ClusterId(0xbad), MemberId(99));

impl World {
    /// What a reconciliation reads now, all at once.
    #[expect(clippy::too_many_lines, reason = "one field of what is read a line")]
    pub fn observe(&self, unread: Option<Unread>) -> Observation {
        let quorum = self.is_heard() && unread != Some(Unread::Members);
        let list = Membership { cluster_id: self.cluster(), members: self.etcd.members.clone() };
        let agreed = |known: bool| if known { Fact::Known(list.clone()) } else { Fact::Unknown };
        let age = |is_fresh| if is_fresh { Age::Fresh } else { Age::PastDeadline };
        let statuses = self.statuses(unread);
        let stranger = stranger(unread, &statuses);
        Observation {
            record: self.objects.record.clone(),
            operation_age: age(self.fresh.operation),
            health_age: age(self.fresh.health),
            quorum_loss_age: age(self.fresh.quorum_loss || self.seems_led()),
            replacement_age: age(self.fresh.replacement),
            comparison_age: age(!self.surroundings.comparison_is_old),
            services: self.services(),
            certificates: self.objects.keyring.as_ref().map_or(Certificates::Valid, Keyring::state),
            certificate_secrets: self.objects.keyring.as_ref().map(Keyring::facts),
            stateful_set: match self.objects.set.clone() {
                _ if unread == Some(Unread::StatefulSet) => Fact::Unknown,
                _ if self.surroundings.taken == Some(Object::StatefulSet) => Fact::Known(self.of_another()),
                Some(set) => Fact::Known(StatefulSet { handle: seen(&set.handle, &set), ..set }),
                None => Fact::Absent,
            },
            config: match &self.objects.config {
                _ if unread == Some(Unread::Config) => Fact::Unknown,
                Some(entries) => Fact::Known(Config {
                    handle: seen(&identity("config"), entries),
                    owner: Owner::Ours,
                    entries: entries.clone(),
                    is_altered: false,
                }),
                None if self.surroundings.taken == Some(Object::Config) => Fact::Known(Config {
                    handle: identity("another"),
                    owner: Owner::Foreign,
                    entries: BTreeMap::new(),
                    is_altered: false,
                }),
                None => Fact::Absent,
            },
            budget: self.budget(),
            pods: if unread == Some(Unread::Pods) { Fact::Unknown } else { Fact::Known(self.pods()) },
            volumes: if unread == Some(Unread::Volumes) {
                Fact::Unknown
            } else {
                Fact::Known(self.volumes())
            },
            membership: stranger.unwrap_or_else(|| agreed(quorum)),
            remembered: self.objects.remembered.clone().unwrap_or_default(),
            last_membership: agreed(statuses.values().any(|status| status.known().is_some())),
            statuses,
            alarms: if quorum { Fact::Known(self.etcd.alarms.clone()) } else { Fact::Unknown },
            keyspace: self.keyspace(),
            cluster_version: if quorum { Fact::Known(self.etcd.version) } else { Fact::Unknown },
            auth: self.auth(quorum),
            root_password: self.root_password(quorum),
            audit: self.audit.clone().map_or(Fact::Unknown, Fact::Known),
            backup_schedule: Fact::Known(Found::Current),
            backup: self.surroundings.backup.map_or(Fact::Absent, Fact::Known),
            has_finalizer: self.objects.has_finalizer,
            refused: self.surroundings.refused_write(),
            hindered: Hindered::default(),
            refusals: self.surroundings.refusals,
        }
    }

    fn services(&self) -> Fact<Found> {
        Fact::Known(match self.surroundings.taken {
            Some(Object::Services) => Found::Foreign,
            _ if self.objects.has_services => Found::Current,
            _ => Found::Outdated,
        })
    }

    /// The StatefulSet of our name that another owner has.
    fn of_another(&self) -> StatefulSet {
        let (handle, owner, template) = (identity("another"), Owner::Foreign, self.desired.template);
        StatefulSet {
            handle,
            owner,
            replicas: 1,
            template,
            has_our_guard: false,
            labels_voters: false,
            is_altered: false,
        }
    }

    fn budget(&self) -> Fact<Budget> {
        if self.surroundings.taken == Some(Object::Budget) {
            let (handle, owner) = (identity("another"), Owner::Foreign);
            return Fact::Known(Budget { handle, owner, min_available: 0, is_current: false });
        }
        self.objects.budget.map_or(Fact::Absent, |min_available| {
            let handle = seen(&identity("budget"), &min_available);
            Fact::Known(Budget { handle, owner: Owner::Ours, min_available, is_current: true })
        })
    }

    fn pods(&self) -> BTreeMap<Ordinal, Pod> {
        let pods = self.objects.pods.iter().map(|(ordinal, Place { pod, is_silent, is_cut_off, .. })| {
            let startup_age = if *is_silent || *is_cut_off { Age::PastDeadline } else { pod.startup_age };
            (*ordinal, Pod { handle: seen_pod(pod), startup_age, ..pod.clone() })
        });
        pods.collect()
    }

    fn volumes(&self) -> BTreeMap<Ordinal, Volume> {
        let is_going = |ordinal: &Ordinal| {
            let place = self.objects.pods.get(ordinal).filter(|_| self.desired.is_in_memory);
            place.is_some_and(|place| place.pod.is_deleting)
        };
        let volumes = self.objects.volumes.iter().map(|(ordinal, Disk { volume, .. })| {
            let is_deleting = volume.is_deleting || is_going(ordinal);
            (*ordinal, Volume { handle: seen(&volume.handle, volume), is_deleting, ..volume.clone() })
        });
        volumes.collect()
    }

    fn statuses(&self, unread: Option<Unread>) -> BTreeMap<Ordinal, Fact<MemberStatus>> {
        let running = self.objects.pods.iter().filter(|(_, place)| place.pod.phase == PodPhase::Up);
        let asked = running.filter_map(|(ordinal, place)| {
            if unread == Some(Unread::Status(*ordinal)) || place.is_silent {
                return Some((*ordinal, Fact::Unknown));
            }
            let mut data = self.objects.volumes.get(ordinal)?.data?;
            if unread == Some(Unread::Stranger(*ordinal)) {
                (data.cluster, data.member) = STRANGER;
            }
            let version = place.pod.template.version;
            let is_learner = self.member(data.member).is_some_and(|member| member.is_learner);
            let storage = Fact::Known(self.etcd.version.min(version.minor));
            let (db_size, db_size_in_use, quota) = data.database.sizes();
            let status = MemberStatus {
                cluster_id: data.cluster,
                member_id: data.member,
                version,
                // A learner goes on naming the one that it last heard of.
                leader: self.etcd.leader.filter(|_| is_learner || self.leads() && !place.is_cut_off),
                is_learner,
                has_errors: false,
                raft_index: entries(data.index),
                raft_applied_index: entries(data.index),
                db_size,
                db_size_in_use,
                quota,
                storage_version: if version.minor >= 6 { storage } else { Fact::Absent },
                downgrade_target: self.etcd.downgrade.map_or(Fact::Absent, Fact::Known),
                has_saved_snapshot: Fact::Known(self.has_saved_snapshot(data.member)),
                defragmented: if data.was_defragmented { Age::Fresh } else { Age::PastDeadline },
                falls_behind: false,
                corrupt: BTreeSet::new(),
            };
            Some((*ordinal, Fact::Known(status)))
        });
        asked.collect()
    }

    /// What the operator plans now.
    pub fn planned(&self, unread: Option<Unread>, hand: Hand) -> (Observation, Rc<Plan>) {
        let seen = self.observe(unread);
        if hand.0.is_none() {
            let plan = planned_once(&self.desired, &seen);
            return (seen, plan);
        }
        let mut believed = seen.clone();
        hand.look(&self.desired, &mut believed);
        let mut plan = plan(&hand.desired(&self.desired), &believed);
        hand.plan(self, &seen, &mut plan);
        (seen, Rc::new(plan))
    }

    /// An operator looks, and means to do what it planned.
    pub fn pass(&mut self, operator: usize, unread: Option<Unread>, hand: Hand) -> Option<()> {
        let (seen, plan) = self.planned(unread, hand);
        self.judge_plan(&seen, &plan);
        let listed = || plan.summary.members.iter().filter_map(|member| Some((member.ordinal, member.id?)));
        let remembered = self.objects.remembered.as_ref().map(|_| listed().collect());
        let is_idle = plan.actions.is_empty() && self.surroundings.refused.is_none()
            || self.is_refused_again(unread, hand);
        if is_idle && self.broken.is_none() && remembered == self.objects.remembered {
            return None;
        }
        self.surroundings.refused = None;
        self.objects.remembered = remembered;
        let going = if seen.volumes.is_unknown() { BTreeSet::new() } else { self.held_claims() };
        self.operators[operator] = Operator { rest: plan.actions.clone(), going };
        Some(())
    }
}

/// The list that a stranger gives, where it is the one that is asked.
fn stranger(
    unread: Option<Unread>,
    statuses: &BTreeMap<Ordinal, Fact<MemberStatus>>,
) -> Option<Fact<Membership>> {
    let Some(Unread::Stranger(ordinal)) = unread else { return None };
    let mut answers = statuses.iter().filter(|(_, status)| status.known().is_some());
    let is_asked = answers.next().is_some_and(|(first, _)| *first == ordinal);
    let (cluster_id, id) = STRANGER;
    let alone = Member { id, ordinal: Some(ordinal), is_learner: false, is_started: true };
    is_asked.then(|| Fact::Known(Membership { cluster_id, members: vec![alone] }))
}

thread_local! {
    static PLANS: RefCell<HashMap<u64, Rc<Plan>>> = RefCell::default();
}

/// The plan is a function: the same is asked for over and over, and planned once.
fn planned_once(desired: &Desired, seen: &Observation) -> Rc<Plan> {
    let asked = fingerprint(&(desired, seen));
    let known = PLANS.with_borrow(|plans| plans.get(&asked).map(Rc::clone));
    known.unwrap_or_else(|| {
        let plan = Rc::new(plan(desired, seen));
        PLANS.with_borrow_mut(|plans| plans.insert(asked, Rc::clone(&plan)));
        plan
    })
}
