//! What comes of what happens.

use gatehouse::kinds::etcdcluster::observation::Backup;

use super::*;
use crate::faults::Hand;

impl World {
    /// Whether there is something for an action to act on, as far as that is seen at once.
    pub fn may(&self, action: &Action) -> bool {
        let is_up = |ordinal| {
            self.objects.pods.get(ordinal).is_some_and(|place: &Place| place.pod.phase == PodPhase::Up)
        };
        let is_idle = |operator: &usize| self.operators[*operator].rest.is_empty();
        let is_there = match action {
            Action::Pass(operator) | Action::Blind(operator, _) => is_idle(operator),
            Action::Step(operator) | Action::Unheard(operator) | Action::Crash(operator) => {
                !is_idle(operator)
            }
            Action::Node(ordinal, does) => self.is_due(*ordinal, *does),
            Action::CatchUp(member) => self.is_behind(*member),
            Action::Kill(ordinal) => is_up(ordinal),
            Action::Silence(ordinal) => is_up(ordinal) && !self.is_silent(*ordinal),
            Action::Answer(ordinal) => self.is_silent(*ordinal),
            Action::CutOff(ordinal) => is_up(ordinal) && !self.is_cut_off(*ordinal),
            Action::Mend(ordinal) => self.is_cut_off(*ordinal),
            Action::Take(object) => self.surroundings.taken.is_none() && !self.has(*object),
            Action::Free => self.surroundings.taken.is_some(),
            Action::BackUp(_) => self.surroundings.backup == Some(Backup::Running),
            Action::Tick => self.has_deadlines(),
            Action::LoseConfig => self.objects.config.is_some(),
            Action::LoseObject(object) => self.has(*object),
            Action::LoseLabel(ordinal) => {
                self.objects.pods.get(ordinal).is_some_and(|place| place.pod.role.is_some())
            }
            Action::LoseAuthority => self.objects.keyring.as_ref().is_some_and(|one| one.authority.is_some()),
            Action::Compare => self.counts_data,
            Action::Agree => self.desired.allows_downgrade,
            Action::Elect(_)
            | Action::Evict(_)
            | Action::Corrupt(_)
            | Action::Suspect(_)
            | Action::Fill
            | Action::Loosen
            | Action::Lose(_)
            | Action::DeleteClaim(_)
            | Action::Write(_)
            | Action::Edit => true,
        };
        is_there && !self.is_spent(action)
    }

    pub fn act(&mut self, before: &Self, action: &Action, hand: Hand) -> Option<()> {
        if let Some(left) = self.faults.of(action, before) {
            *left -= 1;
        }
        match action {
            Action::Pass(operator) => self.pass(*operator, None, hand),
            Action::Blind(operator, unread) => self.pass(*operator, Some(*unread), hand),
            Action::Step(operator) => {
                if !self.step(before, *operator, hand)? {
                    self.operators[*operator].rest.clear();
                }
                Some(())
            }
            Action::Unheard(operator) => {
                self.step(before, *operator, hand)?.then_some(())?;
                self.operators[*operator].rest.clear();
                Some(())
            }
            Action::Crash(operator) => {
                self.operators[*operator].rest.clear();
                self.surroundings.forget_refusals();
                Some(())
            }
            Action::Node(ordinal, kubelet) => self.kubelet(*ordinal, *kubelet),
            Action::CatchUp(member) => self.catch_up(*member),
            Action::Elect(member) => self.elect(*member),
            Action::Kill(ordinal) => self.kill(*ordinal),
            Action::Evict(ordinal) => self.evict(*ordinal),
            Action::Lose(ordinal) => self.lose(*ordinal),
            Action::DeleteClaim(ordinal) => self.delete_claim(*ordinal),
            Action::LoseConfig => self.lose_config(),
            Action::LoseObject(object) => self.lose_object(*object),
            Action::LoseLabel(ordinal) => self.lose_label(*ordinal),
            Action::Silence(ordinal) | Action::Answer(ordinal) => self.turn_silent(*ordinal),
            Action::CutOff(_) | Action::Mend(_) | Action::Take(_) | Action::Free | Action::BackUp(_) => {
                self.act_in_surroundings(action)
            }
            Action::LoseAuthority => self.objects.keyring.as_mut()?.authority.take().map(drop),
            Action::Corrupt(_)
            | Action::Suspect(_)
            | Action::Compare
            | Action::Fill
            | Action::Loosen
            | Action::Agree => self.care(action),
            Action::Write(majority) => self.write(*majority),
            Action::Edit => {
                let edit = (!self.edits.is_empty()).then(|| self.edits.remove(0))?;
                self.ask_for(edit);
                Some(())
            }
            Action::Tick => {
                self.tick();
                Some(())
            }
        }
    }

    /// What only some slices look at.
    fn act_in_surroundings(&mut self, action: &Action) -> Option<()> {
        match action {
            Action::CutOff(ordinal) | Action::Mend(ordinal) => {
                let place = self.objects.pods.get_mut(ordinal)?;
                place.is_cut_off = !place.is_cut_off;
                Some(())
            }
            Action::Take(object) => {
                self.surroundings.taken = Some(*object);
                Some(())
            }
            Action::Free => self.surroundings.taken.take().map(drop),
            Action::BackUp(is_done) => {
                self.surroundings.backup = Some(if *is_done { Backup::Recent } else { Backup::Failed });
                Some(())
            }
            _ => None,
        }
    }

    fn write(&mut self, majority: usize) -> Option<()> {
        let majority = self.majorities().into_iter().nth(majority)?;
        self.commit(&majority);
        self.etcd.acknowledged = self.etcd.index;
        Some(())
    }

    fn lose_label(&mut self, ordinal: Ordinal) -> Option<()> {
        self.objects.pods.get_mut(&ordinal)?.pod.role = None;
        Some(())
    }

    fn turn_silent(&mut self, ordinal: Ordinal) -> Option<()> {
        let place = self.objects.pods.get_mut(&ordinal)?;
        place.is_silent = !place.is_silent;
        Some(())
    }

    fn ask_for(&mut self, edit: Edit) {
        match edit {
            Edit::Replicas(replicas) => {
                self.desired.replicas = replicas;
                self.most_asked = self.most_asked.max(replicas);
            }
            Edit::Version(version) => {
                self.desired.template.version = version;
                // A backup is one for a version.
                self.surroundings.backup = None;
            }
            Edit::Revision => self.desired.template.revision += 1,
            Edit::Pause(is_paused) => self.desired.is_paused = is_paused,
            Edit::Delete { volumes } => {
                self.desired.is_deleting = true;
                self.desired.deletes_volumes = volumes;
            }
            Edit::Recover(request) => self.desired.recovery = request,
            Edit::Size(size) => self.desired.volume_size = size,
            Edit::Password(secret) => self.surroundings.access.secret = secret,
            Edit::AuthOff => self.surroundings.access.is_on = false,
            Edit::Protect(is_protected) => self.desired.is_protected = is_protected,
            Edit::Valid(is_valid) => self.desired.is_valid = is_valid,
            Edit::AllowDowngrade(is_allowed) => self.desired.allows_downgrade = is_allowed,
            Edit::Policy(policy) => self.surroundings.policy = policy,
        }
    }
}
