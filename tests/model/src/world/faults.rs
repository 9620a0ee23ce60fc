//! What may go wrong, and how often.

use super::{Action, Unread, World};

/// How often each thing may go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// An operator forgets what it was about to do.
    pub crashes: u8,
    /// What was done is not heard of.
    pub lost_answers: u8,
    /// A pass cannot read something.
    pub blind: u8,
    /// An etcd process dies, and comes back with its data.
    pub kills: u8,
    /// A pod goes, and the StatefulSet makes another one.
    pub evictions: u8,
    /// A volume goes with all that is on it.
    pub losses: u8,
    /// Leadership moves by itself.
    pub elections: u8,
    /// A client's write is acknowledged.
    pub writes: u8,
    /// The Secret of the authority is deleted.
    pub authorities: u8,
    /// A claim is deleted while its pod uses it.
    pub claims: u8,
    /// The ConfigMap is deleted.
    pub configs: u8,
    /// A member goes on voting and does not answer operators and kubelets.
    pub silences: u8,
    /// An object that the operator has made is deleted.
    pub objects: u8,
    /// A pod loses the label that clients find it by.
    pub labels: u8,
    /// The data of a member come to differ.
    pub corruptions: u8,
    /// Etcd says so of a member, right or wrong.
    pub suspicions: u8,
    /// Databases come to be full.
    pub fills: u8,
    /// Much of each database comes to be free.
    pub loosenings: u8,
    /// A member hears no other one.
    pub cuts: u8,
    /// Another owner makes an object of one of our names.
    pub names: u8,
    /// A member of another cluster answers in the place of one of ours.
    pub strangers: u8,
    /// A backup fails.
    pub failed_backups: u8,
}

impl Faults {
    /// How often that may go wrong yet; nothing where it is nothing that goes wrong. An election is one only where a
    /// member leads.
    pub fn of(&mut self, action: &Action, world: &World) -> Option<&mut u8> {
        match action {
            Action::Blind(_, Unread::Stranger(_)) => Some(&mut self.strangers),
            Action::Blind(..) => Some(&mut self.blind),
            Action::Unheard(_) => Some(&mut self.lost_answers),
            Action::Crash(_) => Some(&mut self.crashes),
            Action::Elect(_) => world.leads().then_some(&mut self.elections),
            Action::Kill(_) => Some(&mut self.kills),
            Action::Evict(_) => Some(&mut self.evictions),
            Action::Lose(_) => Some(&mut self.losses),
            Action::DeleteClaim(_) => Some(&mut self.claims),
            Action::LoseConfig => Some(&mut self.configs),
            Action::Silence(_) => Some(&mut self.silences),
            Action::LoseObject(_) => Some(&mut self.objects),
            Action::LoseLabel(_) => Some(&mut self.labels),
            Action::LoseAuthority => Some(&mut self.authorities),
            Action::Corrupt(_) => Some(&mut self.corruptions),
            Action::Suspect(_) => Some(&mut self.suspicions),
            Action::Fill => Some(&mut self.fills),
            Action::Loosen => Some(&mut self.loosenings),
            Action::CutOff(_) => Some(&mut self.cuts),
            Action::Take(_) => Some(&mut self.names),
            Action::BackUp(false) => Some(&mut self.failed_backups),
            Action::Write(_) => Some(&mut self.writes),
            Action::Pass(_)
            | Action::Step(_)
            | Action::Node(..)
            | Action::CatchUp(_)
            | Action::Answer(_)
            | Action::Mend(_)
            | Action::Free
            | Action::BackUp(true)
            | Action::Compare
            | Action::Agree
            | Action::Edit
            | Action::Tick => None,
        }
    }
}
