//! The migration of our own definitions, by the leader: at the beginning of its term, and whenever a definition changes.
//!
//! Guarantees: the migration of a leader that dies is taken up by the next one; what could not be written is tried again,
//! later and later, and the condition of the definition, an event and a metric say so meanwhile.
//! Assumes: it may list the objects of all namespaces.
//! Never: writes about a definition none of whose objects may be stored in an older version, and all of whose versions
//! are served.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::StreamExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::events::{Event as News, EventType, Recorder};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::migrate::{Error, Event, Migration, Options, Outcome, Silent, Watch};
use super::numbers::Numbers;
use super::observation::Definition;
use super::plan::tally::Tally;
use super::plan::{self, Goal, Kept};
use super::requests::Requests;
use crate::runtime::call::{call, watching};
use crate::runtime::supervisor::chain;

/// The reporter of what happened.
const REPORTER: &str = "gatehouse-storage";

/// The first pause before a migration that did not come to its end is made again, and the longest.
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_hours(1);

/// The definitions of ours, and how they are migrated.
pub struct Keeper {
    /// The way to the API server.
    pub requests: Requests,
    /// For what is watched and told.
    pub client: Client,
    /// The names of the definitions.
    pub definitions: Vec<String>,
    /// What is shown.
    pub numbers: Numbers,
}

/// What makes a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    /// The object.
    uid: String,
    /// Its spec.
    generation: i64,
    /// The versions that its objects may be in.
    stored: Vec<String>,
    /// Whether it says that they are migrated.
    says_migrated: bool,
    /// Whether a pass has to verify that.
    is_unverified: bool,
}

impl State {
    fn of(definition: &Definition) -> Self {
        Self {
            uid: definition.uid.clone(),
            generation: definition.generation,
            stored: definition.stored.clone(),
            says_migrated: definition.says_migrated(),
            is_unverified: definition.is_unverified(),
        }
    }
}

/// A definition as it was left.
#[derive(Clone, Debug)]
struct Seen {
    state: State,
    version: Option<u128>,
}

impl Seen {
    fn of(definition: &Definition) -> Self {
        Self { state: State::of(definition), version: version(definition) }
    }

    /// Whether the definition has been changed since, in what makes a difference. A watch tells late, and of each state:
    /// also of those that it had on the way to this one.
    fn is_outdated_by(&self, definition: &Definition) -> bool {
        let versions = version(definition).zip(self.version);
        versions.is_none_or(|(theirs, seen)| theirs > seen) && self.state != State::of(definition)
    }
}

/// Its resource version. Those of one resource may be compared as numbers (KEP-5504).
fn version(definition: &Definition) -> Option<u128> {
    definition.resource_version.parse().ok()
}

impl Keeper {
    /// Runs until it is stopped. What is under way then is answered first.
    pub async fn run(&self, stop: &CancellationToken) {
        let _shown = Shown(&self.numbers);
        join_all(self.definitions.iter().map(|name| self.keep(name, stop))).await;
    }

    async fn keep(&self, name: &str, stop: &CancellationToken) {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        let config = watching().fields(&format!("metadata.name={name}"));
        let mut changes = pin!(watcher(api, config).default_backoff().applied_objects());
        let mut pause = FIRST;
        let mut failed = None;
        while !stop.is_cancelled() {
            let (done, seen) = self.look(name, stop, &mut failed).await;
            let again = if done { None } else { Some(pause) };
            pause = if done { FIRST } else { (pause * 2).min(LONGEST) };
            tokio::select! {
                () = until_other_than(seen.as_ref(), &mut changes) => pause = FIRST,
                () = after(again) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Migrates a definition if that is needed; whether it is as it should be, and in which state it was left. What could
    /// not be written before is tried before all others are written again.
    async fn look(
        &self,
        name: &str,
        stop: &CancellationToken,
        failed: &mut Option<(State, Outcome)>,
    ) -> (bool, Option<Seen>) {
        let meter = Meter::new(name, &self.numbers);
        let migration = Migration {
            requests: &self.requests,
            goal: Goal::default(),
            options: Options::default(),
            stop: stop.clone(),
            watch: &meter,
        };
        // The numbers stay those of all objects.
        let quiet = Migration { watch: &Silent, goal: Goal::default(), stop: stop.clone(), ..migration };
        let before = match migration.definition(name).await {
            Ok(before) => before,
            Err(error) => {
                warn!(definition = name, error = chain(&error), "failed to read the definition");
                return (false, None);
            }
        };
        self.numbers.has_older(name, before.maybe_stored().len());
        let mut seen = Seen::of(&before);
        // It may have been made a moment ago. What a migration has left that did not come to its end is verified.
        if plan::is_stored_as_wanted(&before) && !before.says_migrated() {
            if let Err(error) = migration.say_settled(name).await {
                warn!(definition = name, error = chain(&error), "failed to say that it is migrated");
                return (false, Some(seen));
            }
            seen.state.says_migrated = true;
        }
        if plan::is_settled(&before) {
            return (true, Some(seen));
        }
        let outcome = match failed.take().filter(|(then, _)| *then == State::of(&before)) {
            Some((_, outcome)) if quiet.still_fails(&before, outcome.failures()).await => Ok(outcome),
            _ => migration.run(name).await,
        };
        if stop.is_cancelled() {
            return (false, Some(seen));
        }
        if let Err(error @ Error::Held(_)) = &outcome {
            migration.say_failed(&before, error).await;
        }
        let again = outcome.as_ref().ok().filter(|outcome| !outcome.failures().is_empty()).cloned();
        let is_done = self.tell(&before, outcome).await;
        match migration.definition(name).await {
            Ok(after) => {
                *failed = again.map(|outcome| (State::of(&after), outcome));
                self.numbers.has_older(name, after.maybe_stored().len());
                // A change that came meanwhile is part of this state already, so that the watch wakes no one for it.
                (is_done && plan::is_left_as_wanted(&before, &after), Some(Seen::of(&after)))
            }
            Err(_) => (false, None),
        }
    }

    /// Reports the outcome; whether the definition is as it should be.
    async fn tell(&self, definition: &Definition, outcome: Result<Outcome, Error>) -> bool {
        let name = definition.name.as_str();
        let to = definition.storage_version();
        match outcome {
            Ok(Outcome::Migrated { dropped, last }) => {
                info!(definition = name, tally = %last, "migrated");
                let older =
                    if dropped.is_empty() { "another version".to_owned() } else { dropped.join(", ") };
                let note = format!("all objects are stored as {to}, and none as {older} any more");
                self.publish(definition, EventType::Normal, "StorageMigrated", note).await;
                last.uncleaned == 0
            }
            Ok(Outcome::Cleaned(tally) | Outcome::Tried(tally)) if tally.failed == 0 => tally.uncleaned == 0,
            Ok(Outcome::Cleaned(tally) | Outcome::Tried(tally)) => {
                let (failed, named) = (tally.failed, tally.named());
                let note = format!("managed fields of other versions stay in {failed} objects{named}");
                warn!(definition = name, %note, "not all managed fields are taken away");
                self.publish(definition, EventType::Warning, "StorageMigrationFailed", note).await;
                false
            }
            Ok(Outcome::Interrupted(_)) => false,
            Ok(Outcome::Kept { why: why @ (Kept::Changed | Kept::Deleted), .. }) => {
                info!(definition = name, why = %why, "not migrated");
                false
            }
            Ok(Outcome::Kept { why, last }) => {
                let note = format!("objects are not all stored as {to}: {}", why.told(&last));
                warn!(definition = name, %note, "not migrated");
                self.publish(definition, EventType::Warning, "StorageMigrationFailed", note).await;
                false
            }
            Err(error) => {
                let note = chain(&error);
                warn!(definition = name, error = note, "not migrated");
                self.publish(definition, EventType::Warning, "StorageMigrationFailed", note).await;
                false
            }
        }
    }

    async fn publish(&self, definition: &Definition, type_: EventType, reason: &str, mut note: String) {
        note.truncate(note.floor_char_boundary(1024));
        let regarding = ObjectReference {
            api_version: Some("apiextensions.k8s.io/v1".to_owned()),
            kind: Some("CustomResourceDefinition".to_owned()),
            name: Some(definition.name.clone()),
            uid: Some(definition.uid.clone()),
            ..ObjectReference::default()
        };
        let (reason, action) = (reason.to_owned(), "MigrateStorage".to_owned());
        let news = News { type_, reason, note: Some(note), action, secondary: None };
        let recorder = Recorder::new(self.client.clone(), REPORTER.into());
        if let Err(error) = call(recorder.publish(&news, &regarding)).await {
            warn!(definition = definition.name, %error, "failed to publish an event");
        }
    }
}

/// Resolves when the definition is changed after it was seen so, in what makes a difference.
async fn until_other_than<Changes>(seen: Option<&Seen>, changes: &mut std::pin::Pin<&mut Changes>)
where
    Changes: futures::Stream<Item = Result<CustomResourceDefinition, watcher::Error>>,
{
    loop {
        let Some(change) = changes.next().await else { std::future::pending().await };
        let Ok(object) = change.map_err(drop).and_then(|object| serde_json::to_value(object).map_err(drop))
        else {
            continue;
        };
        let Ok(definition) = Definition::read(object) else { continue };
        if seen.is_some_and(|seen| seen.is_outdated_by(&definition)) {
            return;
        }
    }
}

/// Resolves after a time; never without one.
async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Who does not lead any more shows nothing of what it knew, in whichever way its term ended.
struct Shown<'a>(&'a Numbers);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// Counts what a migration does.
struct Meter<'a> {
    name: &'a str,
    numbers: &'a Numbers,
    before: Mutex<Tally>,
    /// Whether an unreachable API server is reported.
    is_unreached: AtomicBool,
}

impl<'a> Meter<'a> {
    fn new(name: &'a str, numbers: &'a Numbers) -> Self {
        let (before, is_unreached) = (Mutex::default(), AtomicBool::default());
        Self { name, numbers, before, is_unreached }
    }
}

impl Watch for Meter<'_> {
    fn see(&self, event: Event<'_>) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Begins { place } => {
                info!(definition = self.name, pass = place.pass, "migrates");
                before.clone_from(&place.tally);
            }
            Event::Moves { tally, remaining, .. } => {
                self.is_unreached.store(false, Ordering::Relaxed);
                self.numbers.moved(self.name, &before, tally, remaining);
                before.clone_from(tally);
            }
            Event::Ends { pass, tally } => {
                self.numbers.moved(self.name, &before, tally, 0);
                info!(definition = self.name, pass, %tally, "looked at all objects");
            }
            Event::Waits(time) => info!(definition = self.name, ?time, "waits before it migrates"),
            Event::Unreached(why) => {
                if !self.is_unreached.swap(true, Ordering::Relaxed) {
                    warn!(definition = self.name, why, "waits for the API server");
                }
            }
            Event::Forgets(why) => {
                warn!(definition = self.name, why, "failed to keep the place of a migration");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::stream;
    use serde_json::json;

    use super::*;

    /// The definition in that state, and what it says then.
    fn definition(resource_version: &str, status: &str, stored: &[&str]) -> CustomResourceDefinition {
        let condition = json!({"type": "StorageMigrated", "status": status, "reason": "A", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.a.dev", "uid": "u", "generation": 1, "resourceVersion": resource_version},
            "spec": {"group": "a.dev", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [{"name": "v1", "served": true, "storage": true},
                    {"name": "v1alpha1", "served": true, "storage": false}]},
            "status": {"storedVersions": stored, "conditions": [condition]}});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_was_written_before_it_was_seen_is_no_change() {
        let seen = definition("9", "False", &["v1alpha1", "v1"]);
        let seen = Seen::of(&Definition::read(serde_json::to_value(seen).unwrap()).unwrap());
        let is_change = |changes: Vec<CustomResourceDefinition>| {
            let changes = stream::iter(changes.into_iter().map(Ok)).chain(stream::pending());
            until_other_than(Some(&seen), &mut pin!(changes)).now_or_never().is_some()
        };
        let own = || vec![definition("7", "True", &["v1"]), definition("8", "False", &["v1"])];
        assert!(!is_change(own()), "the watch tells of them late");
        let same = definition("10", "False", &["v1alpha1", "v1"]);
        assert!(!is_change([own(), vec![same]].concat()), "it is newer, and says the same");
        assert!(is_change([own(), vec![definition("10", "False", &["v1"])]].concat()));
        assert!(is_change(vec![definition("none", "False", &["v1"])]), "its age is unknown");
    }

    #[test]
    fn a_migration_of_kubernetes_that_ends_later_is_a_change() {
        let before = definition("9", "True", &["v1"]);
        let seen = Seen::of(&Definition::read(serde_json::to_value(&before).unwrap()).unwrap());
        let mut after = serde_json::to_value(definition("10", "True", &["v1"])).unwrap();
        let theirs = json!({"type": "StorageMigrating", "status": "False", "reason": "MigrationSucceeded",
            "message": "", "lastTransitionTime": "2026-01-02T00:00:00Z"});
        after["status"]["conditions"].as_array_mut().unwrap().push(theirs);
        let changes = stream::iter([Ok(serde_json::from_value(after).unwrap())]).chain(stream::pending());
        assert!(until_other_than(Some(&seen), &mut pin!(changes)).now_or_never().is_some());
    }
}
