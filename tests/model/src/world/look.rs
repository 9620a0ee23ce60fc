//! What a reconciliation reads, and what it plans.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gatehouse::kinds::etcdcluster::observation::{
    Budget, Certificates, Config, Fact, Found, MemberStatus, Membership, Observation, Refusals,
};
use gatehouse::kinds::etcdcluster::plan::{Plan, plan};
use kit::explore::fingerprint;

use super::*;
use crate::faults::Hand;

/// How much of the log a rank stands for: a member that lacks one has not caught up.
fn entries(rank: u64) -> u64 {
    rank * 1_000_000
}

impl World {
    /// What a reconciliation reads now, all at once.
    pub fn observe(&self, unread: Option<Unread>) -> Observation {
        let quorum = self.is_heard() && unread != Some(Unread::Members);
        let list = Membership { cluster_id: self.cluster(), members: self.etcd.members.clone() };
        let agreed = |known: bool| if known { Fact::Known(list.clone()) } else { Fact::Unknown };
        let age = |is_fresh| if is_fresh { Age::Fresh } else { Age::PastDeadline };
        let statuses = self.statuses(unread);
        Observation {
            record: self.objects.record.clone(),
            operation_age: age(self.fresh.operation),
            health_age: age(self.fresh.health),
            quorum_loss_age: age(self.fresh.quorum_loss || self.seems_led()),
            replacement_age: age(self.fresh.replacement),
            comparison_age: Age::Fresh,
            services: Fact::Known(if self.objects.has_services { Found::Current } else { Found::Outdated }),
            certificates: self.objects.keyring.as_ref().map_or(Certificates::Valid, Keyring::state),
            certificate_secrets: self.objects.keyring.as_ref().map(Keyring::facts),
            stateful_set: match self.objects.set.clone() {
                _ if unread == Some(Unread::StatefulSet) => Fact::Unknown,
                Some(set) => Fact::Known(StatefulSet { handle: seen(&set.handle, &set), ..set }),
                None => Fact::Absent,
            },
            config: match &self.objects.config {
                _ if unread == Some(Unread::Config) => Fact::Unknown,
                Some(entries) => Fact::Known(Config {
                    handle: seen(&identity("config"), entries),
                    owner: Owner::Ours,
                    entries: entries.clone(),
                }),
                None => Fact::Absent,
            },
            budget: self.objects.budget.map_or(Fact::Absent, |min_available| {
                let handle = seen(&identity("budget"), &min_available);
                Fact::Known(Budget { handle, owner: Owner::Ours, min_available, is_current: true })
            }),
            pods: if unread == Some(Unread::Pods) { Fact::Unknown } else { Fact::Known(self.pods()) },
            volumes: if unread == Some(Unread::Volumes) {
                Fact::Unknown
            } else {
                Fact::Known(self.volumes())
            },
            membership: agreed(quorum),
            remembered: self.objects.remembered.clone().unwrap_or_default(),
            last_membership: agreed(statuses.values().any(|status| status.known().is_some())),
            statuses,
            alarms: if quorum { Fact::Known(self.etcd.alarms.clone()) } else { Fact::Unknown },
            keyspace: self.keyspace(),
            cluster_version: if quorum { Fact::Known(self.etcd.version) } else { Fact::Unknown },
            auth: Fact::Known(false),
            root_password: Fact::Absent,
            audit: self.audit.clone().map_or(Fact::Unknown, Fact::Known),
            backup_schedule: Fact::Known(Found::Current),
            backup: Fact::Absent,
            has_finalizer: self.objects.has_finalizer,
            refused: None,
            refusals: Refusals::default(),
        }
    }

    fn pods(&self) -> BTreeMap<Ordinal, Pod> {
        let pods = self.objects.pods.iter().map(|(ordinal, Place { pod, is_silent, .. })| {
            let startup_age = if *is_silent { Age::PastDeadline } else { pod.startup_age };
            (*ordinal, Pod { handle: seen_pod(pod), startup_age, ..pod.clone() })
        });
        pods.collect()
    }

    fn volumes(&self) -> BTreeMap<Ordinal, Volume> {
        let volumes = self.objects.volumes.iter().map(|(ordinal, Disk { volume, .. })| {
            (*ordinal, Volume { handle: seen(&volume.handle, volume), ..volume.clone() })
        });
        volumes.collect()
    }

    fn statuses(&self, unread: Option<Unread>) -> BTreeMap<Ordinal, Fact<MemberStatus>> {
        let running = self.objects.pods.iter().filter(|(_, place)| place.pod.phase == PodPhase::Up);
        let asked = running.filter_map(|(ordinal, place)| {
            if unread == Some(Unread::Status(*ordinal)) || place.is_silent {
                return Some((*ordinal, Fact::Unknown));
            }
            let data = self.objects.volumes.get(ordinal)?.data?;
            let version = place.pod.template.version;
            let is_learner = self.member(data.member).is_some_and(|member| member.is_learner);
            let storage = Fact::Known(self.etcd.version.min(version.minor));
            let (db_size, db_size_in_use, quota) = data.database.sizes();
            let status = MemberStatus {
                cluster_id: data.cluster,
                member_id: data.member,
                version,
                // A learner goes on naming the one that it last heard of.
                leader: self.etcd.leader.filter(|_| is_learner || self.leads()),
                is_learner,
                has_errors: false,
                raft_index: entries(data.index),
                raft_applied_index: entries(data.index),
                db_size,
                db_size_in_use,
                quota,
                storage_version: if version.minor >= 6 { storage } else { Fact::Absent },
                downgrade_target: self.etcd.downgrade.map_or(Fact::Absent, Fact::Known),
                has_saved_snapshot: Fact::Known(true),
                defragmented: Age::PastDeadline,
                falls_behind: false,
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
        if plan.actions.is_empty() && self.broken.is_none() && remembered == self.objects.remembered {
            return None;
        }
        self.objects.remembered = remembered;
        let going = if seen.volumes.is_unknown() { BTreeSet::new() } else { self.held_claims() };
        self.operators[operator] = Operator { rest: plan.actions.clone(), going };
        Some(())
    }
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
