//! What was read for a reconciliation, as data. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::words::words;
use crate::controllers::action::RefusedWrite;
use crate::kinds::databasemigration::api::v1::DatabaseMigrationStatus;
use crate::kinds::databasemigration::result::RunResult;

/// All that was read, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// That moment.
    pub now: Timestamp,
    /// The image with this program.
    pub image: String,
    /// The status as it was written last.
    pub status: DatabaseMigrationStatus,
    /// The runs that have a Job.
    pub runs: Vec<Run>,
    /// The ConfigMaps that runs read, by name.
    pub snapshots: BTreeMap<String, Snapshot>,
    /// The texts that ConfigMaps of runs keep, by name and key: those of the plan, or, where the object is being deleted,
    /// all that may have been applied.
    pub kept: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The ConfigMaps that scripts come from, by name. One that is not in here does not exist.
    pub sources: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The other migrations that have to be ready, by name. One that is not in here does not exist.
    pub required: BTreeMap<String, Required>,
    /// The names on the way from this migration, by what each requires, back to it; empty when no way leads back.
    pub ring: Vec<String>,
    /// The other migrations that apply scripts to the same series.
    pub peers: Vec<Peer>,
    /// The write that the API server refused in the last reconciliation.
    pub refused: Option<RefusedWrite>,
}

impl Observed {
    /// The ConfigMaps of runs that were to apply their scripts and whose end the status does not tell: one may have been at
    /// work and be gone, unseen.
    pub fn unseen_snapshots<'a>(
        &'a self,
        status: &DatabaseMigrationStatus,
    ) -> impl Iterator<Item = &'a String> + use<'a> {
        let told = status.last_run.as_ref().map(|run| run.number).unwrap_or_default();
        let is_unseen = move |one: &Snapshot| one.purpose == Some(Purpose::Apply) && one.number > told;
        self.snapshots.iter().filter(move |(_, one)| is_unseen(one)).map(|(name, _)| name)
    }

    /// The names of runs whose ConfigMap is there, and of whose Job nothing was observed.
    #[must_use]
    pub fn unseen_runs(&self) -> Vec<String> {
        let told = self.status.last_run.as_ref().map(|run| run.number).unwrap_or_default();
        let is_observed = |name: &String| self.runs.iter().any(|run| run.job == *name);
        let unseen = self.snapshots.iter().filter(|(name, one)| one.number > told && !is_observed(name));
        unseen.map(|(name, _)| name.clone()).collect()
    }

    /// Of the ConfigMaps that are there, those of runs that may have applied their scripts: the one that has, as far as is
    /// known, that of a last run that ended without a report, and those whose runs no reconcile has seen.
    pub fn maybe_applied<'a>(
        &'a self,
        status: &DatabaseMigrationStatus,
    ) -> impl Iterator<Item = &'a String> + use<'a> {
        let last = status.last_run.iter().filter(|last| last.unknown_changes == Some(true));
        let named = last.map(|last| &last.job).chain(&status.applied_snapshot);
        let there = named.filter_map(|name| Some(self.snapshots.get_key_value(name)?.0)).collect::<Vec<_>>();
        there.into_iter().chain(self.unseen_snapshots(status))
    }

    /// The ConfigMaps of runs whose texts are wanted, of those that are there.
    #[must_use]
    pub fn wanted_snapshots(&self, is_deleting: bool) -> BTreeSet<String> {
        let status = &self.status;
        if is_deleting {
            return self.maybe_applied(status).cloned().collect();
        }
        let planned = status.plan.iter().filter_map(|plan| plan.snapshot.as_ref());
        planned.filter(|name| self.snapshots.contains_key(*name)).cloned().collect()
    }

    /// Whether a run is under way that may change the database: what else there is, is not read until it ends.
    #[must_use]
    pub fn is_occupied(&self) -> bool {
        let changes = |run: &Run| matches!(run.state, RunState::Active(_)) && run.purpose != Purpose::Verify;
        self.runs.iter().any(changes)
    }
}

/// The ConfigMap that a run reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its uid.
    pub uid: String,
    /// The number of the run.
    pub number: i64,
    /// What the run is for.
    pub purpose: Option<Purpose>,
    /// The hash of all that it was made with.
    pub stamp: Option<String>,
}

words! {
    /// What a run is for.
    Purpose:
    /// It reads the history and lists what is pending.
    Plan,
    /// It runs what is pending, and rolls it back.
    Rehearse,
    /// It runs what is pending.
    Apply,
    /// It takes back what the object applied.
    Revert,
    /// It reads the history again, to see that what was applied still is.
    Verify,
}

impl Purpose {
    /// Whether its runs change nothing, so that a deletion need not wait for them.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Plan | Self::Verify)
    }
}

/// A run that has a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The name of its Job, and of the ConfigMap that it reads.
    pub job: String,
    /// Hash of all that it is to do.
    pub key: String,
    /// Its number among the runs of the object.
    pub number: i64,
    /// Which attempt it is, from 1.
    pub attempt: i32,
    /// What it is for.
    pub purpose: Purpose,
    /// The resolution that it was given.
    pub resolved: Option<String>,
    /// When its Job was created.
    pub created: Option<Timestamp>,
    /// How it is.
    pub state: RunState,
}

/// How a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It is under way; when no container of it runs, why.
    Active(Option<String>),
    /// It has ended.
    Ended(Ending),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It reported its result.
    Said(Box<RunResult>),
    /// It took longer than it may; its report when it was ended.
    Late(Option<Box<RunResult>>),
    /// It ended without a word: why, as far as that is known.
    Silent(String),
}

/// Another migration that applies scripts to the same series; older ones are less.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// When it was created.
    pub since: Option<Timestamp>,
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
}

/// Another migration that has to be ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Required {
    /// Whether it is ready, as its latest generation.
    pub is_ready: bool,
    /// Whether it applies its scripts, and does not only plan or rehearse them.
    pub applies: bool,
    /// Whether it waits for what it requires itself.
    pub is_waiting: bool,
    /// The ids of its scripts.
    pub ids: Vec<String>,
}
