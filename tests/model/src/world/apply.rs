//! Carrying effects out, under the guards that they carry: what `apply` asks again right before, and what the API
//! server and etcd refuse.

use gatehouse::kinds::etcdcluster::actions::{MembershipGuard, Precondition};
use gatehouse::kinds::etcdcluster::observation::{Backup, Fact, Membership, OperationKind};

use super::*;
use crate::faults::Hand;
use kit::membership::quorum;

impl World {
    /// Does the next thing of an operator's pass. Whether it was done; nothing where there is none.
    pub fn step(&mut self, before: &Self, operator: usize, hand: Hand) -> Option<bool> {
        let rest = &mut self.operators[operator].rest;
        if rest.is_empty() {
            return None;
        }
        let effect = rest.remove(0);
        let is_refused = self.surroundings.is_refused(&effect);
        self.surroundings.remember(&effect, is_refused);
        let is_done = !is_refused
            && !self.is_taken(&effect)
            && !self.ends_another_claim(&effect, operator)
            && hand.apply(self, &effect).unwrap_or_else(|| self.apply(&effect, hand));
        if is_done {
            self.judge_effect(before, &effect);
        }
        Some(is_done)
    }

    /// Whether pods are to end whose claims have begun to be deleted since that was planned: that is read right before.
    fn ends_another_claim(&self, effect: &Effect, operator: usize) -> bool {
        let going = &self.operators[operator].going;
        self.held_claims().into_iter().any(|ordinal| !going.contains(&ordinal) && ends_pod(effect, ordinal))
    }

    /// Whether it was done; false: refused.
    pub fn apply(&mut self, effect: &Effect, hand: Hand) -> bool {
        match effect {
            Effect::WriteRecord { before, record } => {
                // Conditional on the object's version, which each edit changes too; that is left out.
                let is_same = *before == self.objects.record;
                if is_same {
                    self.objects.record = record.clone();
                }
                is_same
            }
            Effect::WriteAuthority { .. } | Effect::WriteCertificate { .. } => {
                self.objects.keyring.as_mut().is_some_and(|keyring| keyring.apply(effect))
            }
            Effect::ApplyServices => {
                self.objects.has_services = true;
                true
            }
            Effect::AddFinalizer => {
                self.objects.has_finalizer = true;
                true
            }
            Effect::RemoveFinalizer => {
                self.objects.has_finalizer = false;
                true
            }
            Effect::ApplyStatefulSet { found, replicas, template, .. } => {
                let set = self.applied_set(*replicas, *template, hand);
                let live = self.objects.set.as_ref().map(|set| seen(&set.handle, set));
                (*found == live).then(|| self.objects.set = Some(set)).is_some()
            }
            Effect::ApplyBudget { found, min_available } => {
                let live = self.objects.budget.map(|budget| seen(&identity("budget"), &budget));
                (*found == live).then(|| self.objects.budget = Some(*min_available)).is_some()
            }
            Effect::WriteConfig { found, entries, .. } => {
                let live = self.objects.config.as_ref().map(|config| seen(&identity("config"), config));
                let is_same = *found == live;
                if is_same {
                    self.objects.config.get_or_insert_default().extend(entries.clone());
                }
                is_same
            }
            Effect::WithdrawConfig { found, ordinal } => {
                let live = self.objects.config.as_ref().map(|config| seen(&identity("config"), config));
                let is_same = Some(found) == live.as_ref();
                if let Some(config) = self.objects.config.as_mut().filter(|_| is_same) {
                    config.remove(ordinal);
                }
                is_same
            }
            other => self.apply_to_pods(other, hand),
        }
    }

    fn applied_set(&self, replicas: u32, template: Template, hand: Hand) -> StatefulSet {
        let labels_voters = self.objects.record.cluster_id.is_some() && self.admits()
            || hand.keeps_no_record() && self.leads()
            || self.objects.set.as_ref().is_some_and(|set| set.labels_voters);
        StatefulSet {
            handle: identity("set"),
            owner: Owner::Ours,
            replicas,
            template,
            has_our_guard: true,
            labels_voters,
            is_altered: false,
        }
    }

    fn apply_to_pods(&mut self, effect: &Effect, hand: Hand) -> bool {
        match effect {
            Effect::LabelPod { pod, ordinal, role } => {
                let live = self.objects.pods.get_mut(ordinal);
                let live = live.filter(|place| place.pod.handle.uid == pod.uid);
                live.is_some_and(|place| {
                    place.pod.role = *role;
                    true
                })
            }
            Effect::DeletePod { pod, ordinal, precondition } => {
                if !precondition.is_none_or(|precondition| self.is_so(precondition, hand)) {
                    return false;
                }
                let Some(place) = self.objects.pods.get_mut(ordinal) else { return true };
                let is_same = is_same(pod, &place.pod);
                if is_same {
                    place.pod.is_deleting = true;
                }
                is_same
            }
            Effect::SetAsideVolume { volume, ordinal, is_set_aside } => {
                self.volume(volume, *ordinal).is_some_and(|found| {
                    std::mem::replace(&mut found.is_set_aside, *is_set_aside) != *is_set_aside
                })
            }
            Effect::RetainVolume { volume, ordinal } => self.volume(volume, *ordinal).is_some_and(|found| {
                std::mem::replace(&mut found.is_retained, Fact::Known(true)) != Fact::Unknown
            }),
            Effect::ResizeVolume { volume, ordinal, size } => {
                self.volume(volume, *ordinal).is_some_and(|found| {
                    found.capacity.get_or_insert(found.size);
                    std::mem::replace(&mut found.size, *size) > 0
                })
            }
            Effect::DeleteVolume { volume, ordinal, membership, keeps_data } => {
                let agrees = match membership {
                    Some(guard) => self.agrees(guard, hand),
                    None => self.objects.record.cluster_id.is_none() || self.desired.is_deleting,
                };
                let may_go = |found: &Volume| !keeps_data || found.is_retained != Fact::Known(false);
                match self.volume(volume, *ordinal).filter(|found| agrees && may_go(found)) {
                    Some(found) => {
                        found.is_deleting = true;
                        true
                    }
                    None => !self.objects.volumes.contains_key(ordinal),
                }
            }
            other => self.ask_etcd(other, hand),
        }
    }

    fn ask_etcd(&mut self, effect: &Effect, hand: Hand) -> bool {
        match effect {
            Effect::MemberAdd { membership, ordinal, pod, volume } => {
                let waits = self.objects.pods.get(ordinal).is_some_and(|place| {
                    place.pod.handle.uid == *pod
                        && !place.pod.is_deleting
                        && place.pod.phase == PodPhase::Waiting
                });
                let is_claimed = self
                    .objects
                    .volumes
                    .get(ordinal)
                    .is_some_and(|disk| disk.volume.handle.uid == *volume && !disk.volume.is_deleting);
                let is_free = self.etcd.members.iter().all(|member| member.ordinal != Some(*ordinal));
                waits && is_claimed && is_free && self.agrees(membership, hand) && self.add(*ordinal, true)
            }
            Effect::MemberPromote { membership, member, .. } => {
                // It answers, and by its name: etcd itself promotes one that is down, once it had caught up.
                let answers = self.member(*member).is_some_and(|found| found.is_started && self.runs(found));
                answers && self.agrees(membership, hand) && self.promote(*member)
            }
            Effect::MemberRemove { membership, member, ordinal } => {
                let found = self.member(*member).filter(|found| found.ordinal == Some(*ordinal));
                let may_go = found.is_some_and(|found| {
                    found.is_learner || self.serve_without(*member, self.voters().count() - 1, hand)
                });
                let is_done = may_go && self.agrees(membership, hand) && self.remove(*member);
                let operation = self.objects.record.operation;
                if is_done && operation.is_none_or(|operation| operation.kind != OperationKind::ScaleIn) {
                    self.fresh.replacement = true;
                }
                is_done
            }
            Effect::MoveLeader { membership, from, to } => {
                let is_done = self.agrees(membership, hand) && self.move_leader(*from, *to);
                if !is_done {
                    self.kept_leading = Some(*from);
                }
                is_done
            }
            Effect::AlarmDisarm { alarm, .. } => self.disarm(*alarm),
            Effect::Compact { revision, .. } => self.compact(*revision),
            Effect::Defragment { member, .. } => self.defragment(*member),
            Effect::DowngradeEnable { membership, target } => {
                self.agrees(membership, hand) && self.allow_downgrade(*target)
            }
            Effect::DowngradeCancel { .. } => {
                let leads = self.leads();
                self.etcd.downgrade = self.etcd.downgrade.filter(|_| !leads);
                leads
            }
            Effect::AuthEnable { secret, .. } => self.enable_auth(secret.as_ref()),
            Effect::SetRootPassword { secret, .. } => self.set_password(secret),
            Effect::StartBackup { .. } => {
                self.surroundings.backup = Some(Backup::Running);
                true
            }
            Effect::AppendEntries { .. } => self.append(),
            // Of what is cared for beside: it is done, and changes nothing that is modelled.
            _ => true,
        }
    }

    /// Whether etcd's list, asked once more, is the one that a change was decided on.
    fn agrees(&self, guard: &MembershipGuard, hand: Hand) -> bool {
        let live = Membership { cluster_id: self.cluster(), members: self.etcd.members.clone() };
        self.leads() && (hand.ignores_guards() || *guard == MembershipGuard::of(&live))
    }

    fn is_so(&self, precondition: Precondition, hand: Hand) -> bool {
        match precondition {
            _ if hand.looks_once() => true,
            Precondition::OthersServe { membership, member } => {
                self.agrees(&membership, hand) && self.serve_without(member, self.voters().count(), hand)
            }
            Precondition::QuorumLost => !self.is_heard(),
        }
    }

    /// Whether those of the other voters that answer, follow a leader and have caught up are a majority of so many.
    fn serve_without(&self, member: MemberId, voters: usize, hand: Hand) -> bool {
        let stays = |ordinal| self.stays(ordinal) && !self.is_silent(ordinal);
        let others = self.voters().filter(|voter| voter.id != member && self.runs(voter));
        let others = others.filter(|voter| voter.ordinal.is_some_and(stays));
        let current = others.filter(|voter| hand.overlooks_lag() || self.is_current(voter));
        self.leads() && current.count() >= quorum(voters)
    }

    /// The volume, where it is as it was seen.
    fn volume(&mut self, found: &Handle, ordinal: Ordinal) -> Option<&mut Volume> {
        let volume = &mut self.objects.volumes.get_mut(&ordinal)?.volume;
        (*found == seen(&volume.handle, volume)).then_some(volume)
    }
}

fn is_same(found: &Handle, pod: &Pod) -> bool {
    *found == seen_pod(pod)
}

/// Whether the pod at an ordinal ends by an effect.
pub fn ends_pod(effect: &Effect, ordinal: Ordinal) -> bool {
    match effect {
        Effect::DeletePod { ordinal: ended, .. } => *ended == ordinal,
        Effect::ApplyStatefulSet { from, replicas, .. } => (*replicas..*from).contains(&ordinal.0),
        _ => false,
    }
}
