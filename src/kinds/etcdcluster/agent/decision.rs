//! Whether etcd may start. Pure.
//!
//! Guarantees:
//! - Who waits has not touched the volume.
//! - A volume that had etcd's log and has lost it never starts again, nor one that was begun and is empty, nor an empty
//!   one where the member must have had data: an etcd without its log, under the identity that it had, forgets how it
//!   voted and what it acknowledged.
//! - A cluster is made of a member's data by a pod that is named for it: a pod that comes after it and reads late that
//!   it is over does not drop the members that have come since.
//! - Data of another member, volume or cluster are never started, nor data without a marker.
//!
//! Assumes: the operator that writes an entry turns it to [`Purpose::Run`] as soon as the member serves, and before it
//! votes.

use std::fmt;

use super::entry::{Entry, Purpose};
use super::marker::{Marker, Stage};

/// What a pod knows of itself.
#[derive(Clone, Copy, Debug)]
pub struct PodIdentity<'a> {
    /// The uid of the pod.
    pub pod: &'a str,
    /// The template that it was made from, as its annotation has it.
    pub template: &'a str,
    /// The uid of its EtcdCluster.
    pub cluster: &'a str,
    /// Whether its data lie in memory, so that its volume has the uid of the pod.
    pub is_in_memory: bool,
}

/// What is on a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its owner, as far as that is known.
    pub marker: Option<Marker>,
    /// What etcd has there.
    pub data: Data,
}

/// What etcd has on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Nothing.
    Empty,
    /// Its folder, without a log in it: it was started, and got no further.
    Folder,
    /// Its log, and so a member's identity and votes.
    Log,
}

/// When the guard checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// In the init container, before etcd's first start in this pod.
    First,
    /// In etcd's own container, at each of its starts. The volume has been marked by then.
    Each,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Wait for another entry.
    Wait(Why),
    /// Write this marker, and start.
    Start(Marker),
    /// Never start on this volume.
    Refuse(Cause, &'static str),
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is no entry.
    NoEntry,
    /// The member is stopped.
    Stopped,
    /// The entry is made for another template.
    OtherTemplate,
    /// The volume is empty, and another pod may begin on one.
    OtherPod,
    /// A cluster is to be made of the data, and not by this pod, or not yet.
    NotNamed,
}

impl Why {
    /// For logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoEntry => "there is no entry for this member",
            Self::Stopped => "the member is stopped",
            Self::OtherTemplate => "the entry is made for another template",
            Self::OtherPod => "the volume is empty, and only another pod may begin on it",
            Self::NotNamed => "only a pod that is named may make a cluster of the data",
        }
    }
}

/// Why etcd does not start on a volume, by the names that the operator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The data of a member that has had some are gone.
    DataLost,
    /// The data belong to another owner.
    DataForeign,
    /// There is no room for the copy of the data that is made before they are changed for good.
    NoRoom,
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::DataLost => "DataLost",
            Self::DataForeign => "DataForeign",
            Self::NoRoom => "NoRoom",
        })
    }
}

/// Whether etcd may start by this entry, in this pod, on this volume.
#[must_use]
pub fn decide(moment: Moment, own: &PodIdentity<'_>, entry: Option<&Entry>, volume: &Volume) -> Decision {
    let Some(entry) = entry else { return Decision::Wait(Why::NoEntry) };
    if entry.purpose.is_stopped() {
        return Decision::Wait(Why::Stopped);
    }
    if entry.template != own.template {
        return Decision::Wait(Why::OtherTemplate);
    }
    if let Some(words) = foreign(own, entry, volume) {
        return Decision::Refuse(Cause::DataForeign, words);
    }
    let is_named = entry.pod.as_deref() == Some(own.pod);
    if volume.data == Data::Log {
        if entry.purpose == Purpose::Force && !is_named {
            return Decision::Wait(Why::NotNamed);
        }
        return Decision::Start(marker(own, entry, volume, Stage::Written));
    }
    if let Some(words) = lost(moment, entry, volume) {
        return Decision::Refuse(Cause::DataLost, words);
    }
    let is_own_volume = !own.is_in_memory || entry.volume == own.pod;
    if is_own_volume && is_named {
        return Decision::Start(marker(own, entry, volume, Stage::Begun));
    }
    Decision::Wait(Why::OtherPod)
}

/// Why the data belong to another owner, where they are.
fn foreign(own: &PodIdentity<'_>, entry: &Entry, volume: &Volume) -> Option<&'static str> {
    let Some(marker) = &volume.marker else {
        return (volume.data != Data::Empty).then_some("there are data that were not begun by a guard");
    };
    let is_other = |told: &Option<String>| entry.member.is_some() && told.is_some() && *told != entry.member;
    if marker.cluster != own.cluster {
        Some("the volume was begun for another cluster")
    } else if marker.volume != entry.volume {
        Some("the volume is not the one that the member was begun on")
    } else if volume.data == Data::Log && is_other(&marker.member) {
        Some("the data are those of another member")
    } else {
        None
    }
}

/// Why data are lost, where there is no log.
fn lost(moment: Moment, entry: &Entry, volume: &Volume) -> Option<&'static str> {
    if matches!(entry.purpose, Purpose::Run | Purpose::Force) {
        return Some("the member has had data, and there are none");
    }
    match (&volume.marker, volume.data) {
        (None, _) => {
            (moment == Moment::Each).then_some("the volume has been emptied since the pod began on it")
        }
        (Some(marker), _) if marker.stage == Stage::Written => Some("the log of the member is gone"),
        (Some(marker), Data::Empty) if marker.stage == Stage::Started => {
            Some("the folder of the member is gone")
        }
        (Some(_), _) => None,
    }
}

/// The marker that goes on the volume. It never says less than the one before.
fn marker(own: &PodIdentity<'_>, entry: &Entry, volume: &Volume, stage: Stage) -> Marker {
    let before = volume.marker.as_ref();
    Marker {
        volume: entry.volume.clone(),
        cluster: own.cluster.to_owned(),
        member: entry.member.clone().or_else(|| before?.member.clone()),
        pod: before.map_or(own.pod, |before| &before.pod).to_owned(),
        stage: before.map_or(stage, |before| before.stage.max(stage)),
        forced: before.and_then(|before| before.forced.clone()),
    }
}

#[cfg(test)]
mod tests;
