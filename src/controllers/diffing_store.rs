//! Objects of any type, as a watch last told of them: trimmed, and with a word on each that differs from before.
//!
//! Guarantees: looking costs no call; a change of what was trimmed away is no change; an object that went while
//! nobody watched is missed when the list is read again.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{BoxStream, StreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tracing::warn;

/// What is on it, by namespace and name.
type Objects<Object> = HashMap<String, HashMap<String, Arc<Object>>>;

/// The objects. Clones share them.
pub struct DiffingStore<Object> {
    state: Arc<Mutex<State<Object>>>,
    filled: Arc<watch::Sender<bool>>,
}

struct State<Object> {
    objects: Objects<Object>,
    /// The objects of the list that is being read.
    listed: HashSet<(String, String)>,
}

impl<Object> Clone for DiffingStore<Object> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), filled: Arc::clone(&self.filled) }
    }
}

impl<Object> DiffingStore<Object>
where
    Object: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// A shelf of the objects of `api`, and each of them that comes, goes or changes, as it was and as it is; it is
    /// kept while that stream is polled. `trim` takes out what nobody looks at, and `same` says whether what is left
    /// is as before.
    pub fn watch(
        api: Api<Object>,
        trim: fn(&mut Object),
        same: fn(&Object, &Object) -> bool,
    ) -> (Self, BoxStream<'static, Arc<Object>>) {
        let state = Arc::new(Mutex::new(State { objects: HashMap::new(), listed: HashSet::new() }));
        let shelf = Self { state, filled: Arc::new(watch::Sender::new(false)) };
        let kept = shelf.clone();
        let resource = api.resource_url().to_owned();
        let events = watcher(api, watcher::Config::default()).default_backoff().modify(trim);
        let changes = events.flat_map(move |event| {
            let changed = event.map_or_else(
                |error| {
                    warn!(resource, %error, "failed to watch");
                    Vec::new()
                },
                |event| kept.heed(event, same),
            );
            futures::stream::iter(changed)
        });
        (shelf, changes.boxed())
    }

    fn heed(&self, event: Event<Object>, same: fn(&Object, &Object) -> bool) -> Vec<Arc<Object>> {
        let mut state = self.lock();
        match event {
            Event::Init => {
                state.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                state.listed.insert(key(&object));
                state.put(object, same)
            }
            Event::InitDone => {
                let gone = state.sweep();
                drop(state);
                self.filled.send_replace(true);
                gone
            }
            Event::Apply(object) => state.put(object, same),
            Event::Delete(object) => {
                let (namespace, name) = key(&object);
                state
                    .objects
                    .get_mut(&namespace)
                    .and_then(|objects| objects.remove(&name))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// Whether it has been filled once. It is not where the right to watch is missing.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        *self.filled.borrow()
    }

    /// Waits until it has been filled. False when the process is going down.
    pub async fn filled(&self) -> bool {
        self.filled.subscribe().wait_for(|filled| *filled).await.is_ok()
    }

    /// The object, if it is there.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.lock().objects.get(namespace)?.get(name).cloned()
    }

    /// All objects of a namespace that `pick` takes, by name.
    pub fn all(&self, namespace: &str, pick: impl Fn(&Object) -> bool) -> Vec<Arc<Object>> {
        let state = self.lock();
        let objects = state.objects.get(namespace).into_iter().flat_map(HashMap::values);
        let mut picked: Vec<_> = objects.filter(|object| pick(object)).cloned().collect();
        drop(state);
        picked.sort_by_key(|object| object.name_any());
        picked
    }

    fn lock(&self) -> MutexGuard<'_, State<Object>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Object: Resource> State<Object> {
    fn put(&mut self, object: Object, same: fn(&Object, &Object) -> bool) -> Vec<Arc<Object>> {
        let (namespace, name) = key(&object);
        let object = Arc::new(object);
        let before = self.objects.entry(namespace).or_default().insert(name, Arc::clone(&object));
        match before {
            Some(before) if same(&before, &object) => Vec::new(),
            before => before.into_iter().chain([object]).collect(),
        }
    }

    /// Takes away what is not in the list.
    fn sweep(&mut self) -> Vec<Arc<Object>> {
        let listed = std::mem::take(&mut self.listed);
        let mut gone = Vec::new();
        for objects in self.objects.values_mut() {
            objects.retain(|_, object| {
                let stays = listed.contains(&key(&**object));
                if !stays {
                    gone.push(Arc::clone(object));
                }
                stays
            });
        }
        self.objects.retain(|_, objects| !objects.is_empty());
        gone
    }
}

fn key<Object: Resource>(object: &Object) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

impl<Object> fmt::Debug for DiffingStore<Object> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DiffingStore")
    }
}
