//! The conditions of an EtcdCluster: what the plan found. Pure.
//!
//! Never: shows what a Secret holds, or what a spec has in its environment.

mod objects;
mod recovery;

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{StatusInputs, backups, messages};
use crate::api::condition::{self, State, Statement};
use crate::api::field::FieldError;
use crate::kinds::etcdcluster::api::status::{ConditionType, Reason};
use crate::kinds::etcdcluster::api::v1::BackupStatus;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{
    AlarmKind, Audit, Cause, Fact, Observation, Ordinal, PodPhase, Reach, Target,
};
use crate::kinds::etcdcluster::plan::{Finding, Plan, Preparation, Problem, Step};
use crate::kinds::etcdcluster::spec::Spec;

/// The conditions, those of others too, with what was found written into them.
pub fn of(
    spec: &Spec,
    said: StatusInputs<'_>,
    seen: &Observation,
    plan: &Plan,
    backup: Option<&BackupStatus>,
) -> Vec<Condition> {
    let generation = spec.metadata.generation;
    let mut conditions = said.previous.conditions.clone().unwrap_or_default();
    let lost_since = lost_since(&conditions).unwrap_or(said.now);
    let certificates = said.certificates;
    let (name, hindrances) = (spec.name(), said.hindrances);
    let facts = Facts { spec, name, seen, plan, certificates, hindrances, backup, lost_since };
    let found = plan.summary.findings.iter().map(|finding| facts.statement(finding));
    let backups = backups::statement(spec, seen, backup, said.backups, said.now);
    for statement in found.chain([backups]) {
        condition::set(&mut conditions, statement, generation, said.now);
    }
    let place = |one: &Condition| ConditionType::ALL.iter().position(|about| about.as_str() == one.type_);
    conditions.sort_by_key(|one| place(one).unwrap_or(ConditionType::ALL.len()));
    conditions
}

/// The conditions of an object that this release cannot read, with the paths of its faults, for a value may be a
/// secret.
#[must_use]
pub fn undecodable(faults: &[FieldError]) -> Vec<Statement> {
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.clone()).collect();
    let at = messages::fields(&paths).map_or_else(String::new, |fields| format!(" at {fields}"));
    let message = format!("this release cannot read the object{at}: nothing is done until it is changed");
    [ConditionType::Ready, ConditionType::SpecValid]
        .map(|about| about.is(false, Reason::SpecInvalid, message.clone()))
        .into()
}

/// The condition of an object in the namespace of gatehouse.
#[must_use]
pub fn in_own_namespace(message: String) -> Statement {
    ConditionType::Ready.is(false, Reason::NamespaceRefused, message)
}

/// What messages are made of.
struct Facts<'a> {
    spec: &'a Spec,
    name: &'a str,
    seen: &'a Observation,
    plan: &'a Plan,
    certificates: Option<&'a str>,
    hindrances: &'a BTreeMap<Ordinal, String>,
    backup: Option<&'a BackupStatus>,
    /// Since when the quorum is called lost; now, where it is not yet.
    lost_since: Timestamp,
}

/// Since when the quorum is called lost.
fn lost_since(conditions: &[Condition]) -> Option<Timestamp> {
    let lost = conditions
        .iter()
        .find(|one| one.type_ == ConditionType::QuorumLost.as_str() && one.status == "True")?;
    Some(lost.last_transition_time.0)
}

impl Facts<'_> {
    fn statement(&self, finding: &Finding) -> Statement {
        let Finding { about, state, reason, .. } = *finding;
        let message = match about {
            ConditionType::Ready => self.ready(reason),
            ConditionType::Progressing => self.progressing(reason),
            ConditionType::Degraded => self.degraded(reason),
            ConditionType::SpecValid => self.spec_valid(reason),
            ConditionType::CertificatesReady => self.certificates(reason),
            ConditionType::Paused if state == State::True => {
                "reconciliation is paused: spec.paused is true".to_owned()
            }
            ConditionType::Paused => "reconciliation is not paused".to_owned(),
            _ => self.quorum(reason),
        };
        about.is(state, reason, message)
    }

    /// In the words of the condition that is in the way.
    fn ready(&self, reason: Reason) -> String {
        match reason {
            Reason::MembersReady => return self.quorum(Reason::QuorumServes),
            Reason::ChangePending => return self.at_rest(),
            _ => {}
        }
        let telling = [
            ConditionType::SpecValid,
            ConditionType::Degraded,
            ConditionType::CertificatesReady,
            ConditionType::Progressing,
            ConditionType::Available,
            ConditionType::Paused,
        ];
        // In the way are these two only as they stand here, whatever words others share with them.
        let is_in_the_way = |one: &Finding| match one.about {
            ConditionType::Degraded => one.state == State::True,
            ConditionType::CertificatesReady => one.state == State::False,
            _ => true,
        };
        let found = |about: &ConditionType| {
            let mut findings = self.plan.summary.findings.iter();
            findings.find(|one| one.about == *about && one.reason == reason && is_in_the_way(one))
        };
        telling.iter().find_map(found).map(|finding| self.statement(finding).message).unwrap_or_default()
    }

    /// Of Available and QuorumLost.
    fn quorum(&self, reason: Reason) -> String {
        let summary = &self.plan.summary;
        match reason {
            Reason::QuorumServes => {
                format!("{} of {} members serve", summary.ready_replicas, summary.members.len())
            }
            Reason::QuorumPresent => "a majority of the voters answers".to_owned(),
            Reason::Stopped => "the cluster is stopped, its data are kept".to_owned(),
            Reason::Bootstrapping => "the first member has not served yet".to_owned(),
            Reason::QuorumLost if self.all_answer() => {
                "all members answer, and none of them leads".to_owned()
            }
            Reason::QuorumLost => {
                format!("fewer voters than a majority answer: {}", self.silent())
            }
            _ => format!("no majority has confirmed the member list: {}", self.silent()),
        }
    }

    fn all_answer(&self) -> bool {
        let mut members = self.plan.summary.members.iter();
        members.all(|member| self.seen.status(member.ordinal).found().is_some())
    }

    /// Who does not answer.
    fn silent(&self) -> String {
        let members = self.plan.summary.members.iter().map(|member| member.ordinal);
        let silent: Vec<_> = members.filter(|ordinal| self.seen.status(*ordinal).found().is_none()).collect();
        match silent.as_slice() {
            [] => "all members answer".to_owned(),
            [one] => format!("{} does not answer", self.with_hindrance(*one)),
            several => format!("{} do not answer", self.names(several)),
        }
    }

    fn names(&self, ordinals: &[Ordinal]) -> String {
        let names: Vec<_> = ordinals.iter().map(|ordinal| names::member(self.name, *ordinal)).collect();
        messages::listed(&names)
    }

    /// A member, and why its pod does not come up.
    fn with_hindrance(&self, ordinal: Ordinal) -> String {
        let name = names::member(self.name, ordinal);
        match self.hindrance(ordinal) {
            Some(hindrance) => format!("{name} ({hindrance})"),
            None => name,
        }
    }

    /// Why the pod of a member does not come to serve: in Kubernetes' words where it says so, else by its phase.
    fn hindrance(&self, ordinal: Ordinal) -> Option<Cow<'_, str>> {
        if let Some(words) = self.hindrances.get(&ordinal) {
            return Some(words.as_str().into());
        }
        let said = match self.seen.pod(ordinal) {
            Fact::Known(pod) if pod.is_deleting => Some("its pod is being deleted"),
            Fact::Known(pod) => {
                let entry = self.seen.entry(ordinal).found();
                let is_named = entry.is_some_and(|entry| entry.pod.as_ref() == Some(&pod.handle.uid));
                messages::hindrance(pod.phase, entry.filter(|_| is_named).map(|entry| entry.purpose))
            }
            Fact::Absent => Some("it has no pod"),
            Fact::Unknown => None,
        };
        said.map(Cow::Borrowed)
    }

    fn progressing(&self, reason: Reason) -> String {
        let target = self.plan.record.operation.map(|operation| operation.target);
        let who = match target {
            Some(Target::Member(ordinal)) => names::member(self.name, ordinal),
            _ => "a member".to_owned(),
        };
        let version = match target {
            Some(Target::Version(version)) => version.to_string(),
            _ => "another version".to_owned(),
        };
        let said = match reason {
            Reason::Bootstrapping => format!("{who} is being made, the first member"),
            Reason::Recovering => self.recovering(),
            Reason::Replacing => format!("{who} is being replaced"),
            Reason::ScalingIn => format!("{who} is being removed"),
            Reason::ScalingOut => format!("{who} is being added"),
            Reason::WaitingForLearner => format!("{who} follows, and votes once it has caught up"),
            Reason::Upgrading | Reason::WaitingForSnapshot => {
                format!("members are being moved to {version}, one at a time{}", self.uncompared())
            }
            Reason::Restarting => {
                format!("members are being restarted for a changed spec, one at a time{}", self.uncompared())
            }
            Reason::Stopped => return "the cluster is stopped".to_owned(),
            _ => return self.at_rest(),
        };
        match self.waits(target) {
            Some(why) => format!("{said}: {why}"),
            None => said,
        }
    }

    /// What an operation waits for.
    fn waits(&self, target: Option<Target>) -> Option<String> {
        match (target, self.plan.summary.step) {
            (Some(Target::Member(ordinal)), _) => self.hindrance(ordinal).map(Cow::into_owned),
            (Some(Target::Version(version)), Step::Prepare(Preparation::Backup)) => {
                Some(backups::before_upgrade(self.name, version, self.seen))
            }
            (Some(Target::Version(_)), Step::Prepare(preparation)) => {
                Some(messages::preparation(preparation))
            }
            _ => self.plan.summary.blocked.map(|blocked| messages::blocked(self.name, blocked)),
        }
    }

    /// Nothing is under way; where something is asked for all the same, what it waits for.
    fn at_rest(&self) -> String {
        let summary = &self.plan.summary;
        let blocked = summary.blocked.filter(|_| !summary.is_reached);
        let blocked = blocked.map(|blocked| messages::blocked(self.name, blocked));
        match blocked.or_else(|| self.growing_volumes()) {
            Some(why) => format!("no change is under way: {why}"),
            None => "no change is under way".to_owned(),
        }
    }

    /// All that needs attention.
    fn degraded(&self, reason: Reason) -> String {
        let summary = &self.plan.summary;
        match reason {
            Reason::Stopped => return "the cluster is stopped".to_owned(),
            Reason::Bootstrapping if summary.problems.is_empty() => {
                return "no member serves yet: the first one is being made".to_owned();
            }
            Reason::Unreachable => return "no member answers".to_owned(),
            _ => {}
        }
        let all: Vec<_> = summary.problems.iter().map(|problem| self.problem(*problem)).collect();
        let (ready, members) = (summary.ready_replicas, summary.members.len());
        if !all.is_empty() {
            all.join("; ")
        } else if ready < members {
            format!("{ready} of {members} members serve, the others are being made, and no alarm is armed")
        } else {
            format!("all members serve and no alarm is armed{}", self.uncompared())
        }
    }

    /// Whose data are not compared with the others' for their size, after what else is said.
    fn uncompared(&self) -> &'static str {
        match self.seen.reach() {
            _ if self.plan.summary.members.len() < 2 => "",
            Reach::All => "",
            Reach::Followers => "; with more than 256 MiB in use, the leader's data are not compared",
            Reach::None => "; with more than 2 GiB in use, the members' data are not compared",
        }
    }

    fn problem(&self, Problem { reason, ordinal }: Problem) -> String {
        let who = ordinal.map_or_else(|| "a member".to_owned(), |one| names::member(self.name, one));
        let why =
            ordinal.and_then(|one| self.hindrance(one)).map(|why| format!(": {why}")).unwrap_or_default();
        match reason {
            Reason::NameTaken => format!("{} exists and is not controlled by this object", self.taken()),
            Reason::ClusterIDMismatch => self.strangers(),
            Reason::QuorumLost => format!("{}; {}", self.quorum(reason), self.way_back()),
            Reason::Corrupt => self.corrupt(),
            Reason::ClaimTerminating => messages::terminating(self.name, ordinal, self.plan),
            Reason::DatabaseQuotaExceeded => {
                let raised = self.alarmed(AlarmKind::NoSpace);
                format!("the database of {} has reached its quota, etcd takes no writes", self.names(&raised))
            }
            Reason::Forbidden | Reason::ApplyFailed => {
                let refused = self.seen.refused.as_ref();
                refused.map(|refused| format!("{}: {}", refused.action, refused.why)).unwrap_or_default()
            }
            Reason::UpgradeStalled => {
                // Another version compares the data all the same.
                let differ = PodPhase::Failing(Cause::Inconsistent);
                let heals =
                    !ordinal.is_some_and(|one| self.seen.pod(one).is_known_and(|pod| pod.phase == differ));
                let way = if heals { "; revert the spec to recover" } else { "" };
                format!("{who} fails to start with the new spec{why}{way}")
            }
            Reason::LearnerStuck => format!("{who} follows and does not catch up{why}"),
            Reason::PodNotRunning => format!("{who} has no running pod{why}"),
            _ => self.down(),
        }
    }

    /// Who does not serve, and why; not those whose pod is a problem of its own.
    fn down(&self) -> String {
        let has_own = |ordinal| {
            let own = Problem { reason: Reason::PodNotRunning, ordinal: Some(ordinal) };
            self.plan.summary.problems.contains(&own)
        };
        let members = self.plan.summary.members.iter();
        let members = members.filter(|member| !member.is_healthy && !has_own(member.ordinal));
        let down: Vec<_> = members.map(|member| self.with_hindrance(member.ordinal)).collect();
        let verb = if down.len() == 1 { "does" } else { "do" };
        format!("{} {verb} not serve", messages::listed(&down))
    }

    /// Where those are that raised an alarm.
    fn alarmed(&self, kind: AlarmKind) -> Vec<Ordinal> {
        let alarms = self.seen.alarms.known().into_iter().flatten().filter(|alarm| alarm.kind == kind);
        let ids: Vec<_> = alarms.map(|alarm| alarm.member).collect();
        let members = self.plan.summary.members.iter();
        let raised = members.filter(|member| member.id.is_some_and(|id| ids.contains(&id)));
        raised.map(|member| member.ordinal).collect()
    }

    fn corrupt(&self) -> String {
        let Some(Audit::Different { revision, minority }) = self.seen.audit.known() else {
            let alarmed = self.alarmed(AlarmKind::Corrupt);
            let of = if alarmed.is_empty() { "a member".to_owned() } else { self.names(&alarmed) };
            return format!(
                "etcd suspects the data of {of}: gatehouse compares all members' before it replaces one"
            );
        };
        let at = if *revision == 0 { String::new() } else { format!(" at revision {revision}") };
        let members: Vec<_> = minority.iter().copied().collect();
        if members.is_empty() {
            return format!("the members' data differ{at}, and it is not known whose are wrong");
        }
        format!("the data of {} differ from the others'{at}", self.names(&members))
    }

    /// Who belongs to another cluster.
    fn strangers(&self) -> String {
        let Some(ours) = self.plan.record.cluster_id else {
            return "members belong to different clusters".to_owned();
        };
        let strangers = self.seen.answers().filter(|(_, status)| status.cluster_id != ours);
        let strangers: Vec<_> = strangers.map(|(ordinal, _)| ordinal).collect();
        format!(
            "{} is not of etcd cluster {}: nothing is changed until a person has looked",
            self.names(&strangers),
            names::cluster_id_text(ours)
        )
    }

    fn certificates(&self, reason: Reason) -> String {
        if let Reason::RootPasswordOutdated | Reason::RootPasswordUnset | Reason::Unreachable = reason {
            let secret = self.spec.root_secret.as_deref().unwrap_or_default();
            let is_on = self.seen.auth.is_known_and(|is_on| *is_on);
            return messages::root_password(secret, &self.seen.root_password, is_on);
        }
        let secrets = self.spec.secrets().cloned().unwrap_or_default();
        let all: Vec<_> = secrets.mounts().into_iter().map(|(_, secret, _)| secret.to_owned()).collect();
        let all = messages::listed(&[all, vec![secrets.client]].concat());
        if let Some(words) = self.certificates {
            return words.to_owned();
        }
        match reason {
            Reason::TLSDisabled => "members and clients speak plain HTTP".to_owned(),
            Reason::CertificatesValid => "every certificate is there and valid".to_owned(),
            Reason::CertificatesPending => format!("certificates are being signed, for the Secrets {all}"),
            Reason::CertificateExpiring => {
                format!("a certificate has expired or soon will, in one of the Secrets {all}")
            }
            Reason::CertificateInvalid => {
                format!("one of the Secrets {all} holds what members do not take")
            }
            _ => format!("one of the Secrets {all} is missing or cannot be read"),
        }
    }

    fn spec_valid(&self, reason: Reason) -> String {
        if reason == Reason::Valid {
            return "the rules of the gate hold".to_owned();
        }
        if reason == Reason::VolumeCannotGrow {
            return self.fixed_volumes();
        }
        let wanted = self.spec.version;
        match self.plan.summary.step {
            Step::Refused(refusal) => messages::refusal(wanted, self.plan.summary.version, refusal),
            _ if self.spec.replicas == 0 && self.spec.storage.is_in_memory => {
                "replicas cannot be 0 where data lie in memory: they would be gone".to_owned()
            }
            _ if reason == Reason::WouldLoseData => {
                "a lost quorum cannot be recovered where data lie in memory: they end with the pod of the member that is \
                 kept, which has to be started again"
                    .to_owned()
            }
            _ => messages::refused(&self.spec.refused),
        }
    }
}
