//! What only some slices look at: passwords, backups, what the API server refuses, names that another owner has taken.

use gatehouse::kinds::etcdcluster::observation::{
    Backup, Fact, Refusals, RefusedWrite, RootPassword, Unreadable,
};

use super::*;

/// All of it stays as it is at first elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Surroundings {
    pub access: Access,
    /// The backup that an upgrade waits for.
    pub backup: Option<Backup>,
    /// What the API server refuses.
    pub policy: Option<Policy>,
    /// What it has refused in the last reconciliation.
    pub refused: Option<&'static str>,
    /// What it has refused of what is tried again after everything else.
    pub refusals: Refusals,
    /// The name that another owner has taken.
    pub taken: Option<Object>,
    /// The members that have saved a snapshot which a newer minor can begin with; none: all have.
    pub snapshots: Option<BTreeSet<MemberId>>,
    /// Whether the data of members were compared too long ago.
    pub comparison_is_old: bool,
    /// The revision up to which older ones have to go before there is room in a full database.
    pub room_at: u64,
}

/// Whether authentication is on, and which password root has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    pub is_on: bool,
    /// The password that root has.
    pub has: Option<u8>,
    pub secret: Secret,
}

/// What the Secret with root's password has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Secret {
    /// None is asked for.
    #[default]
    Unnamed,
    /// It is not there, or has none.
    Unreadable,
    Password(u8),
}

/// What the API server refuses, whichever client asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// That pods are made from that.
    Template(Template),
    /// That a claim grows.
    Volume(Ordinal),
    /// Writes of those names.
    Writes(&'static [&'static str]),
}

impl Policy {
    fn refuses(self, effect: &Effect) -> bool {
        match (self, effect) {
            (Self::Template(refused), Effect::ApplyStatefulSet { template, .. }) => *template == refused,
            (Self::Volume(refused), Effect::ResizeVolume { ordinal, .. }) => *ordinal == refused,
            (Self::Writes(names), effect) => names.contains(&effect.name()),
            _ => false,
        }
    }
}

impl Secret {
    fn handle(self) -> Handle {
        seen(&identity("root"), &self)
    }
}

impl Surroundings {
    /// Whether a deadline lies ahead.
    pub fn has_deadlines(&self) -> bool {
        self.backup == Some(Backup::Failed)
    }

    /// All deadlines pass.
    pub fn tick(&mut self) {
        self.backup = self.backup.filter(|backup| *backup != Backup::Failed);
    }

    pub fn is_refused(&self, effect: &Effect) -> bool {
        self.policy.is_some_and(|policy| policy.refuses(effect))
    }

    /// What an operator remembers of an effect that was refused, or was not.
    pub fn remember(&mut self, effect: &Effect, is_refused: bool) {
        if is_refused {
            self.refused.get_or_insert_with(|| effect.name());
        }
        effect.remember(&mut self.refusals, is_refused);
    }

    /// What it remembers by itself is gone with its process.
    pub fn forget_refusals(&mut self) {
        self.refused = None;
        self.refusals = Refusals::default();
    }

    pub fn refused_write(&self) -> Option<RefusedWrite> {
        self.refused.map(|action| RefusedWrite { action: action.to_owned(), why: "a policy".to_owned() })
    }
}

/// As many writes are tried again in turn.
const IN_TURN: usize = 5;

impl World {
    /// Whether nothing comes of what is planned but that the API server refuses the same once more: one write, or several
    /// in turn.
    pub fn is_refused_again(&self, unread: Option<Unread>, hand: Hand) -> bool {
        let mut after = self.clone();
        for _ in 0..IN_TURN {
            let (_, plan) = after.planned(unread, hand);
            let Some(first) = plan.actions.first().filter(|first| self.surroundings.is_refused(first)) else {
                return false;
            };
            after.surroundings.refused = None;
            after.surroundings.remember(first, true);
            if after.surroundings == self.surroundings {
                return true;
            }
        }
        false
    }

    /// Whether authentication is on, as far as that can be read.
    pub fn auth(&self, is_heard: bool) -> Fact<bool> {
        let access = self.surroundings.access;
        if is_heard || access == Access::default() { Fact::Known(access.is_on) } else { Fact::Unknown }
    }

    /// How root's password compares with the one that the Secret has.
    pub fn root_password(&self, is_heard: bool) -> Fact<RootPassword> {
        let Access { is_on, has, secret } = self.surroundings.access;
        match secret {
            _ if !self.desired.authenticates => Fact::Absent,
            Secret::Unnamed => Fact::Absent,
            Secret::Unreadable => Fact::Known(RootPassword::Unreadable(Unreadable::Missing)),
            Secret::Password(_) if !is_heard => Fact::Unknown,
            Secret::Password(password) if is_on && has == Some(password) => {
                Fact::Known(RootPassword::Current)
            }
            Secret::Password(_) => Fact::Known(RootPassword::Outdated { secret: secret.handle() }),
        }
    }

    /// Whether clients may come in, as far as etcd is to ask who they are.
    pub fn admits(&self) -> bool {
        !self.desired.authenticates || self.surroundings.access.is_on
    }

    /// Whether authentication is on where it has to be, and root has the password that the Secret has.
    pub fn is_guarded(&self) -> bool {
        let Access { is_on, has, secret } = self.surroundings.access;
        let has_password = match secret {
            Secret::Unnamed => true,
            Secret::Unreadable => false,
            Secret::Password(password) => has == Some(password),
        };
        !self.desired.authenticates || is_on && has_password
    }

    /// Whether the Service leads to any pod, or will to those that come up.
    pub fn lets_in(&self) -> bool {
        let is_voters = |place: &Place| place.pod.role == Some(Role::Voter);
        self.objects.pods.values().any(is_voters)
            || self.objects.set.as_ref().is_some_and(|set| set.labels_voters)
    }

    /// Switches authentication on.
    pub fn enable_auth(&mut self, secret: Option<&Handle>) -> bool {
        let is_done = self.leads() && secret.is_none_or(|secret| self.set_password(secret));
        self.surroundings.access.is_on |= is_done;
        is_done
    }

    /// Gives root the password that the Secret has, as it was seen.
    pub fn set_password(&mut self, secret: &Handle) -> bool {
        let is_done = self.leads() && *secret == self.surroundings.access.secret.handle();
        let access = &mut self.surroundings.access;
        if let Secret::Password(password) = access.secret
            && is_done
        {
            access.has = Some(password);
        }
        is_done
    }

    /// Whether there is an object of that name of ours.
    pub fn has(&self, object: Object) -> bool {
        match object {
            Object::StatefulSet => self.objects.set.is_some(),
            Object::Services => self.objects.has_services,
            Object::Budget => self.objects.budget.is_some(),
            Object::Config => self.objects.config.is_some(),
        }
    }

    /// Whether the name that an effect writes to is another owner's.
    pub fn is_taken(&self, effect: &Effect) -> bool {
        let object = match effect {
            Effect::ApplyStatefulSet { .. } => Object::StatefulSet,
            Effect::ApplyServices => Object::Services,
            Effect::ApplyBudget { .. } => Object::Budget,
            Effect::WriteConfig { .. } | Effect::WithdrawConfig { .. } => Object::Config,
            _ => return false,
        };
        self.surroundings.taken == Some(object)
    }

    /// Whether the member at an ordinal answers, and hears no other one.
    pub fn is_cut_off(&self, ordinal: Ordinal) -> bool {
        self.objects.pods.get(&ordinal).is_some_and(|place| place.is_cut_off)
    }

    /// The ordinal of a pod that has a claim of another owner.
    pub fn taken_volume(&self) -> Option<Ordinal> {
        let mut volumes = self.objects.volumes.iter();
        let found = volumes.find(|(ordinal, disk)| {
            disk.volume.owner == Owner::Foreign && self.objects.pods.contains_key(ordinal)
        });
        found.map(|(ordinal, _)| *ordinal)
    }

    /// Has each member have saved a snapshot, and counts from now on which of them 3.7 can begin with.
    pub fn with_snapshots(mut self) -> Self {
        self.surroundings.snapshots = Some(self.etcd.members.iter().map(|member| member.id).collect());
        self
    }

    /// A member of 3.5 runs: it may log what 3.7 cannot read, and every member does the same.
    pub fn log_for_old_members(&mut self) {
        if let Some(saved) = &mut self.surroundings.snapshots {
            saved.clear();
        }
    }

    /// Has members start with nothing that a newer minor could begin with.
    pub fn without_snapshots(mut self) -> Self {
        self.surroundings.snapshots = Some(BTreeSet::new());
        self
    }

    /// Appends entries until each member that runs saves a snapshot. Surroundings a member of 3.5 it is of no use.
    pub fn append(&mut self) -> bool {
        let running = self.up();
        let leads = self.leads();
        let has_old = self.runs_before_3_6();
        if let Some(saved) = self.surroundings.snapshots.as_mut().filter(|_| leads && !has_old) {
            saved.extend(running);
        }
        leads
    }

    fn runs_before_3_6(&self) -> bool {
        let mut running = self.objects.pods.values().filter(|place| place.pod.phase == PodPhase::Up);
        running.any(|place| place.pod.template.version.minor < 6)
    }

    pub fn has_saved_snapshot(&self, member: MemberId) -> bool {
        self.surroundings.snapshots.as_ref().is_none_or(|saved| saved.contains(&member))
    }
}
