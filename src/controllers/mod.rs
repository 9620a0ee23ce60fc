//! The operator: the controllers that reconcile the objects which the gate accepts.
//!
//! ```text
//!  watch of the kind ──▶ store ─┐                      ┌▶ apply, delete ──▶ API server
//!  watches of what is made ─────┼▶ queue ─▶ a reconciliation ──┤                        │
//!  a reconciliation's own wake ───────────┘   observe, plan    └▶ report: status, events │
//!            ▲                                                                 │
//!            └─────────────────── what changed ◀───────────────────────────────┘
//! ```
//!
//! Guarantees: one reconciliation at a time for an object; those of different objects run side by side, up to a limit;
//! an object that no release can read holds up no other; a reconciliation that fails is tried again, later and later.
//! Assumes: no other process reconciles these objects; the election of [`crate::runtime::leader`] guarantees that.
//! Never: writes where nothing has changed; finds its work by polling; keeps anything that matters from one term to
//! the next.
//!
//! What a reconciliation does is in [`reconcile`], once for all kinds. One folder a kind has what is its own: `spec`
//! (pure), `observe` (all reads), `plan` (pure), `status` (pure), `resources` (pure builders), and in `mod` how it is
//! reconciled.

pub mod action;
pub mod api_write;
pub mod cache;
mod context;
pub mod deviation;
pub mod difference;
pub mod diffing_store;
pub mod execution;
pub mod fail_points;
pub mod failures;
pub mod finalizer;
pub mod manifest;
pub mod metrics;
pub mod object_events;
pub mod object_metrics;
pub mod outcome;
pub mod paced;
pub mod plan;
pub mod problems;
pub mod rbac;
pub mod reconcile;
pub mod reconciler;
pub mod scope;
#[cfg(test)]
pub mod situations;
pub mod state_store;
pub mod status;
pub mod triggers;
pub mod unworked;
pub mod watched;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{self, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{Event, watcher};
use kube::runtime::{PredicateConfig, WatchStreamExt as _};
use kube::{Client, Resource, ResourceExt as _};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::runtime::call::watching;
use crate::runtime::clock;
use crate::runtime::leader::Stop;
use api_write::ApiWriter;
use failures::Failures;
use metrics::{KindMetrics as _, Reconciliations};
use outcome::{Error, Outcome};
use reconciler::{Context, ObjectChange, Reconciler, Started, State};
use scope::{Scope, WatchScope};
use state_store::StateStore;
pub use watched::Watched;

/// Reconciliations that run at the same time. One mostly waits for the API server, which at this many calls in flight
/// is busy and not yet queueing for long.
const CONCURRENCY: u16 = 32;

/// How the names of the annotations begin by which users ask for something, and the names of finalizers of gatehouse.
const PREFIX: &str = "gatehouse.dev/";

/// What is set for the process, beside what the cluster says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image with gatehouse's own program, which pods that are made run.
    pub image: String,
}

/// Runs the reconciliations of a kind in one realm.
struct Runner<Kind: Reconciler> {
    kind: Kind,
    context: Context<Kind>,
    /// In boxes: a map has room for more than it holds.
    states: StateStore<Option<Box<State<Kind>>>>,
    failures: StateStore<Failures>,
    /// The objects as they were watched last.
    store: Store<Watched<Kind::Object>>,
    /// Whether reconciliations can run.
    ready: watch::Sender<bool>,
    /// The objects of the list that the watch is reading.
    listed: Mutex<HashSet<String>>,
}

impl<Kind: Reconciler> Runner<Kind> {
    /// Forgets objects that are gone: those that were deleted, and those that are not in a list that was read again,
    /// as their deletion was not seen.
    fn on_event(&self, event: &Event<Watched<Kind::Object>>) {
        let listed = || self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = |object: &Watched<Kind::Object>| object.meta().uid.clone();
        match event {
            Event::Delete(object) => {
                self.forget(uid(object).as_deref().unwrap_or_default());
            }
            Event::Init => listed().clear(),
            Event::InitApply(object) => {
                listed().extend(uid(object));
                self.admit(object);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut *listed());
                for uid in self.states.forget_all_but(&listed) {
                    self.forget(&uid);
                }
            }
            Event::Apply(object) => self.admit(object),
        }
    }

    /// The object is gone. First of all its state goes, by which [`Self::forget_if_gone`] knows it.
    fn forget(&self, uid: &str) {
        self.states.forget(uid);
        self.kind.notice(ObjectChange::Gone(uid));
        self.context.objects.forget(uid);
        self.context.problems.forget(uid);
        self.failures.forget(uid);
    }

    /// A reconciliation has ended: what it has put down of an object that went meanwhile is forgotten as well.
    fn forget_if_gone(&self, object: &Watched<Kind::Object>) {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        if !self.states.knows(uid) {
            self.forget(uid);
        }
    }

    fn admit(&self, object: &Watched<Kind::Object>) {
        if let Some(uid) = &object.meta().uid {
            self.states.admit(uid);
        }
        self.context.objects.admit(object.meta());
        self.context.problems.admit(object.meta());
        self.kind.notice(ObjectChange::Seen(object));
    }

    /// The object is in the store as it is now. Not before: a reconciliation finds there what its state forgets.
    fn stored(&self, object: &Watched<Kind::Object>) {
        let ObjectMeta { uid, resource_version, .. } = object.meta();
        self.states.update_known(uid.as_deref().unwrap_or_default(), |state| {
            if let Some(state) = state {
                state.written.newer_than(resource_version.as_deref());
            }
        });
    }

    /// The object as it is in the store, if it is there.
    fn latest(&self, object: &Watched<Kind::Object>) -> Option<Arc<Watched<Kind::Object>>> {
        let latest = self.store.get(&ObjectRef::from_obj(object))?;
        Some(latest).filter(|latest| latest.meta().uid == object.meta().uid)
    }

    /// One reconciliation, counted and logged.
    async fn reconcile(self: Arc<Self>, object: Arc<Watched<Kind::Object>>) -> Result<Action, Error> {
        // The sender is in `self`.
        let mut ready = self.ready.subscribe();
        let _never = ready.wait_for(|ready| *ready).await.map(|_| ());
        let begun = clock::instant();
        let uid = object.meta().uid.clone().unwrap_or_default();
        let mut state = self.states.take(&uid).unwrap_or_default();
        let object = self.latest(&object).unwrap_or(object);
        state.is_lasting = self.failures.of(&uid).is_lasting();
        let ended = reconcile::reconcile(&self.kind, &self.context, Arc::clone(&object), &mut state).await;
        match state.problems() {
            problems if problems.reasons.is_empty() => self.context.problems.hide(object.meta()),
            problems => self.context.problems.show(object.meta(), problems),
        }
        // What it has written may have come by the watch before the answer did.
        if let Some(latest) = self.latest(&object) {
            state.written.newer_than(latest.meta().resource_version.as_deref());
        }
        let is_lasting = state.is_lasting;
        self.states.put(&uid, Some(state));
        let result = ended.as_ref().map_or_else(|error| error.class().as_str(), |outcome| outcome.as_str());
        self.context.reconciliations.ended(Kind::IDENTITY.name, result, begun.elapsed());
        debug!(controller = Kind::IDENTITY.name, object = %named(&*object), result, "reconciled");
        let again = match ended? {
            Outcome::Refused(latest) => {
                Some(latest.min(self.failures.update(&uid, |failures| failures.refuse(is_lasting))))
            }
            outcome => {
                self.failures.forget(&uid);
                outcome.again()
            }
        };
        self.forget_if_gone(&object);
        Ok(again.map_or_else(Action::await_change, Action::requeue))
    }

    /// How soon a reconciliation that failed is tried again.
    fn failed(&self, object: &Watched<Kind::Object>, error: &Error) -> Action {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        let pause = self.failures.update(uid, |failures| failures.fail(error.class()));
        self.forget_if_gone(object);
        let error = error.said();
        warn!(controller = Kind::IDENTITY.name, object = %named(object), error, again_in = ?pause, "reconciliation failed");
        Action::requeue(pause)
    }
}

/// What users ask for by an object, as a number: its spec, its deletion, and the annotations of gatehouse, such as an
/// answer to a doubt; and the finalizers of gatehouse, which a write of the whole object removes. Its status and whatever
/// else others write into it begin no reconciliation.
#[expect(clippy::unnecessary_wraps, reason = "a predicate of kube's watcher gives an option")]
fn asked_for<K: Resource>(object: &K) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    object.meta().generation.hash(&mut hasher);
    let ours = object.annotations().iter().filter(|(name, _)| name.starts_with(PREFIX));
    for annotation in ours {
        annotation.hash(&mut hasher);
    }
    let finalizers = object.finalizers().iter().filter(|name| name.starts_with(PREFIX));
    for finalizer in finalizers {
        finalizer.hash(&mut hasher);
    }
    Some(hasher.finish())
}

/// `namespace/name` of an object.
pub fn named<K: Resource>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// Reconciles all objects of a kind within `scope` until it is stopped, and then until the running reconciliations have
/// ended. These are tasks of the work: they run on all threads, and what is watched is decoded beside them. `ready` is
/// called when reconciliations can run everywhere. Dropping the future cancels the reconciliations.
pub async fn run<Kind: Reconciler>(
    client: Client,
    scope: &Scope,
    (reconciliations, metrics): (Reconciliations, Kind::Metrics),
    settings: &Settings,
    ready: impl Fn() + Send + Sync,
    stop: &Stop,
) {
    let realms = scope.realms();
    let left = AtomicUsize::new(realms.len());
    let ready = || {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            ready();
        }
    };
    let runs = realms.iter().map(|realm| {
        let metrics = (reconciliations.clone(), metrics.clone());
        run_in::<Kind>(client.clone(), (scope, realm), metrics, settings, ready, stop)
    });
    // A wake of one polls none of the others.
    runs.collect::<FuturesUnordered<_>>().collect::<()>().await;
}

/// What all reconciliations in one realm of a scope share.
fn context<Kind: Reconciler>(
    client: Client,
    (scope, realm): (&Scope, &WatchScope),
    (reconciliations, metrics): (Reconciliations, Kind::Metrics),
    settings: &Settings,
) -> Context<Kind> {
    Context {
        writer: ApiWriter::new(client.clone(), Kind::IDENTITY.manager),
        client,
        realm: realm.clone(),
        image: settings.image.clone(),
        objects: metrics.objects().add(),
        metrics,
        problems: reconciliations.problems.add(),
        scope: scope.clone(),
        reconciliations,
    }
}

/// The same in one realm of it.
async fn run_in<Kind: Reconciler>(
    client: Client,
    (scope, realm): (&Scope, &WatchScope),
    (reconciliations, metrics): (Reconciliations, Kind::Metrics),
    settings: &Settings,
    ready: impl FnOnce() + Send,
    stop: &Stop,
) {
    let context = context::<Kind>(client.clone(), (scope, realm), (reconciliations, metrics), settings);
    let Started { kind, triggers, ready: started } = Kind::start(&context);
    let (store, writer) = reflector::store();
    let runner = Arc::new(Runner {
        kind,
        context,
        states: StateStore::default(),
        failures: StateStore::default(),
        store: store.clone(),
        ready: watch::Sender::new(false),
        listed: Mutex::default(),
    });
    let (admitting, stored) = (Arc::clone(&runner), Arc::clone(&runner));
    let objects = watcher(realm.api::<Watched<Kind::Object>>(client), watching())
        .default_backoff()
        .inspect(move |event| {
            if let Ok(event) = event {
                admitting.on_event(event);
            }
        })
        .reflect(writer)
        .inspect(move |event| {
            if let Ok(Event::Apply(object)) = event {
                stored.stored(object);
            }
        })
        .applied_objects()
        .predicate_filter(asked_for, PredicateConfig::default())
        .filter_map(|object| {
            // The watch begins again by itself; the queue would stop meanwhile, other triggers and all.
            let found = object
                .inspect_err(|error| warn!(controller = Kind::IDENTITY.name, %error, "failed to watch"));
            future::ready(found.ok().map(Ok))
        });
    let tasks = stop.tasks().clone();
    let reconciles = Controller::for_stream(objects, store.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(triggers)
        .reconcile_all_on(clock::jumps())
        .graceful_shutdown_on(stop.stopped())
        .run(
            move |object, runner: Arc<Runner<Kind>>| tasks.run(runner.reconcile(object)),
            |object, error, runner| runner.failed(&object, error),
            Arc::clone(&runner),
        )
        .for_each(|_| future::ready(()));
    let once_ready = async {
        if store.wait_until_ready().await.is_ok() && started.await {
            runner.ready.send_replace(true);
            ready();
        }
    };
    // Readiness never comes where the watches fail for good; the reconciliations end when they are asked to.
    let mut reconciles = std::pin::pin!(reconciles.fuse());
    tokio::select! {
        () = &mut reconciles => return,
        () = once_ready => {}
    }
    reconciles.await;
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reconciliation_begins_by_what_users_ask_for() {
        let asked = |metadata: serde_json::Value| {
            let object: ConfigMap = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            asked_for(&object)
        };
        let before = asked(json!({"generation": 1}));
        assert_ne!(asked(json!({"generation": 2})), before);
        assert_ne!(asked(json!({"generation": 1, "annotations": {"gatehouse.dev/retry": "now"}})), before);
        assert_ne!(asked(json!({"generation": 1, "finalizers": ["gatehouse.dev/tdset"]})), before);
        for others in [
            json!({"generation": 1, "resourceVersion": "2"}),
            json!({"generation": 1, "finalizers": ["a"], "labels": {"gatehouse.dev/a": "b"}}),
            json!({"generation": 1, "annotations": {"example.com/seen": "now"}}),
        ] {
            assert_eq!(asked(others.clone()), before, "{others}");
        }
    }
}
