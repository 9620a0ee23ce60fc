//! A store of objects of any type from a watch: it trims them, and reports each one that has changed, and how much.
//!
//! Guarantees: looking costs no call; a change of what was trimmed away is no change; an object that was deleted while
//! there was no watch is missed when the list is read again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{BoxStream, Stream, StreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::difference::Difference;
use crate::runtime::clock;

/// What is on it, by namespace and name.
type Objects<Object> = HashMap<String, HashMap<String, Arc<Object>>>;

/// An object that has come, gone or changed, as it was or as it is.
pub type Changed<Object> = (Arc<Object>, Difference);

/// How the first object differs from the second one, which it is from now on.
type Compare<Object> = fn(&Object, &Object) -> Difference;

/// The objects. Clones share them.
pub struct DiffingStore<Object> {
    state: Arc<Mutex<State<Object>>>,
    filled: Arc<watch::Sender<bool>>,
}

struct State<Object> {
    objects: Objects<Object>,
    /// The same by namespace and what they are grouped by.
    groups: HashMap<(String, String), BTreeMap<String, Arc<Object>>>,
    group: fn(&Object) -> Option<&str>,
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
    /// A store of the objects of `api` that `config` selects, and each of them that comes, goes or changes, as it was and as it is; it is
    /// kept while that stream is polled. `trim` takes out what no controller reads, `compare` says how what is left differs
    /// from what was before, and `group` by what objects are looked for together.
    pub fn watch(
        api: Api<Object>,
        config: watcher::Config,
        trim: fn(&mut Object),
        compare: Compare<Object>,
        group: fn(&Object) -> Option<&str>,
    ) -> (Self, BoxStream<'static, Changed<Object>>) {
        let resource = api.resource_url().to_owned();
        let events = watcher(api, config).default_backoff().modify(trim);
        Self::of_events(resource, events, compare, group)
    }

    /// The same of the events of a watch of `resource`.
    pub(crate) fn of_events(
        resource: String,
        events: impl Stream<Item = Result<Event<Object>, watcher::Error>> + Send + 'static,
        compare: Compare<Object>,
        group: fn(&Object) -> Option<&str>,
    ) -> (Self, BoxStream<'static, Changed<Object>>) {
        let state = Arc::new(Mutex::new(State::new(group)));
        let store = Self { state, filled: Arc::new(watch::Sender::new(false)) };
        let kept = store.clone();
        let mut outage = Outage::default();
        let changes = events.flat_map(move |event| {
            let changed = match event {
                Ok(event) => {
                    // A watch that goes on from its last event delivers all that it missed; a list is complete at its end.
                    let goes_on = matches!(event, Event::Apply(_) | Event::Delete(_));
                    if outage.ends() && goes_on {
                        kept.filled.send_replace(true);
                    }
                    kept.on_event(event, compare)
                }
                Err(error) => {
                    let now = clock::instant();
                    if outage.is_news(now) {
                        warn!(resource, %error, "failed to watch");
                    } else {
                        debug!(resource, %error, "still failed to watch");
                    }
                    if outage.lasts(now) {
                        kept.filled.send_replace(false);
                    }
                    Vec::new()
                }
            };
            futures::stream::iter(changed)
        });
        (store, changes.boxed())
    }

    fn on_event(&self, event: Event<Object>, compare: Compare<Object>) -> Vec<Changed<Object>> {
        let mut state = self.lock();
        match event {
            Event::Init => {
                state.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                state.listed.insert(key(&object));
                state.put(object, compare)
            }
            Event::InitDone => {
                let gone = state.sweep();
                drop(state);
                self.filled.send_replace(true);
                gone.into_iter().map(|object| (object, Difference::More)).collect()
            }
            Event::Apply(object) => state.put(object, compare),
            Event::Delete(object) => {
                let (namespace, name) = key(&object);
                let gone = state.take(&namespace, &name).into_iter();
                gone.map(|object| (object, Difference::More)).collect()
            }
        }
    }

    /// Whether it has been filled, and the watch goes on. It is not where the right to watch is missing, or was taken
    /// away: what is on it then is of an earlier time.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        *self.filled.borrow()
    }

    /// Waits until it has been filled. False when the process is going down.
    pub fn filled(&self) -> impl Future<Output = bool> + Send + use<Object> {
        let mut filled = self.filled.subscribe();
        async move { filled.wait_for(|filled| *filled).await.is_ok() }
    }

    /// The object, if it is there.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.lock().objects.get(namespace)?.get(name).cloned()
    }

    /// All objects of a group in a namespace that `pick` takes, by name. The others are not looked at.
    pub fn all_of(&self, namespace: &str, group: &str, pick: impl Fn(&Object) -> bool) -> Vec<Arc<Object>> {
        let state = self.lock();
        let objects = state.groups.get(&(namespace.to_owned(), group.to_owned())).into_iter();
        objects.flat_map(BTreeMap::values).filter(|object| pick(object)).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State<Object>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a watch may fail until its last state is no longer trusted.
const TOLERATED: Duration = Duration::from_mins(1);

/// A watch that fails. A watch that begins again sends nothing while nothing changes, so failures far apart are not one
/// outage; it is tried again after half a minute at most.
#[derive(Debug, Default)]
struct Outage {
    /// The first failure of it and the last one.
    span: Option<(Instant, Instant)>,
    is_lasting: bool,
}

impl Outage {
    /// Whether a failure at `now` is the first one of an outage. One line of the log is enough for each: without the
    /// right to watch a kind, an outage has no end.
    fn is_news(&self, now: Instant) -> bool {
        self.span.is_none_or(|(_, last)| now.duration_since(last) >= TOLERATED)
    }

    /// It failed at `now`: whether that lasts.
    fn lasts(&mut self, now: Instant) -> bool {
        let since = if self.is_news(now) { now } else { self.span.map_or(now, |(since, _)| since) };
        self.span = Some((since, now));
        self.is_lasting |= now.duration_since(since) > TOLERATED;
        self.is_lasting
    }

    /// The watch has sent something: whether that ends a lasting outage.
    fn ends(&mut self) -> bool {
        std::mem::take(self).is_lasting
    }
}

impl<Object: Resource> State<Object> {
    fn new(group: fn(&Object) -> Option<&str>) -> Self {
        Self { objects: HashMap::new(), groups: HashMap::new(), group, listed: HashSet::new() }
    }

    /// Takes an object away.
    fn take(&mut self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let objects = self.objects.get_mut(namespace)?;
        let object = objects.remove(name)?;
        if objects.is_empty() {
            self.objects.remove(namespace);
        }
        if let Some(group) = (self.group)(&object) {
            let group = (namespace.to_owned(), group.to_owned());
            if let Some(objects) = self.groups.get_mut(&group) {
                objects.remove(name);
                if objects.is_empty() {
                    self.groups.remove(&group);
                }
            }
        }
        Some(object)
    }

    fn put(&mut self, object: Object, compare: Compare<Object>) -> Vec<Changed<Object>> {
        let (namespace, name) = key(&object);
        let before = self.take(&namespace, &name);
        let object = Arc::new(object);
        if let Some(group) = (self.group)(&object) {
            let group = self.groups.entry((namespace.clone(), group.to_owned())).or_default();
            group.insert(name.clone(), Arc::clone(&object));
        }
        self.objects.entry(namespace).or_default().insert(name, Arc::clone(&object));
        let difference = before.as_ref().map_or(Difference::More, |before| compare(before, &object));
        let changed: Vec<_> = match difference {
            Difference::Nothing => Vec::new(),
            Difference::Numbers => vec![object],
            Difference::More => before.into_iter().chain([object]).collect(),
        };
        changed.into_iter().map(|object| (object, difference)).collect()
    }

    /// Takes away what is not in the list.
    fn sweep(&mut self) -> Vec<Arc<Object>> {
        let listed = std::mem::take(&mut self.listed);
        let all = self.objects.values().flat_map(HashMap::values).map(|object| key(&**object));
        let gone: Vec<_> = all.filter(|key| !listed.contains(key)).collect();
        gone.iter().filter_map(|(namespace, name)| self.take(namespace, name)).collect()
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::FutureExt as _;
    use futures::channel::mpsc;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn compared(one: &ConfigMap, other: &ConfigMap) -> Difference {
        Difference::unless(one == other)
    }

    #[test]
    fn a_watch_that_fails_for_more_than_a_minute_is_out_until_it_tells_something() {
        let start = clock::instant();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut outage = Outage::default();
        for (second, lasts) in [(0, false), (30, false), (60, false), (61, true), (90, true)] {
            assert_eq!(outage.is_news(after(second)), second == 0, "{second}");
            assert_eq!(outage.lasts(after(second)), lasts, "{second}");
        }
        assert!(outage.ends() && !outage.ends());
        assert!(!outage.lasts(after(91)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_of_an_earlier_time_where_the_watch_has_failed_for_more_than_a_minute() {
        let (sender, events) = mpsc::unbounded();
        let (store, mut changes) =
            DiffingStore::of_events("configmaps".to_owned(), events, compared, |_| None);
        let named = |name: &str| ConfigMap {
            metadata: serde_json::from_value(json!({"name": name, "namespace": "a"})).unwrap(),
            ..ConfigMap::default()
        };
        let mut changes_of = |event| {
            sender.unbounded_send(event).unwrap();
            std::iter::from_fn(|| changes.next().now_or_never().flatten()).count()
        };
        let fails = || Err(watcher::Error::NoResourceVersion);
        let listed = [Event::Init, Event::InitApply(named("one")), Event::InitDone];
        assert_eq!(listed.map(|event| changes_of(Ok(event))), [0, 1, 0]);
        assert!(store.is_filled());
        for (seconds, is_filled) in [(0, true), (30, true), (30, true), (30, false), (30, false)] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            assert_eq!((changes_of(fails()), store.is_filled()), (0, is_filled));
        }
        assert!(store.get("a", "one").is_some(), "it may be so still");
        // The watch goes on from its last event.
        assert_eq!((changes_of(Ok(Event::Apply(named("two")))), store.is_filled()), (1, true));
        for _ in 0..4 {
            tokio::time::advance(Duration::from_secs(30)).await;
            changes_of(fails());
        }
        assert!(!store.is_filled());
        // Or it begins again: a list is complete at its end, and no sooner.
        let listed = [Event::Init, Event::InitApply(named("two")), Event::InitDone];
        let looks = listed.map(|event| (changes_of(Ok(event)), store.is_filled()));
        assert_eq!(looks, [(0, false), (0, false), (1, true)]);
        assert!(store.get("a", "one").is_none(), "it went meanwhile");
    }

    #[test]
    fn of_a_group_no_other_object_is_looked_at() {
        let store = DiffingStore::<ConfigMap> {
            state: Arc::new(Mutex::new(State::new(|object| {
                object.data.as_ref()?.keys().next().map(String::as_str)
            }))),
            filled: Arc::new(watch::Sender::new(false)),
        };
        let object = |name: &str, group: &str| {
            let metadata = json!({"name": name, "namespace": "a"});
            let object = json!({"metadata": metadata, "data": {group: ""}});
            serde_json::from_value::<ConfigMap>(object).unwrap()
        };
        let on_event = |event: Event<ConfigMap>| store.on_event(event, compared).len();
        for number in 0..1_000 {
            on_event(Event::Apply(object(&format!("one-{number}"), &format!("group-{number}"))));
        }
        let looked = Cell::new(0);
        let names = |group: &str| {
            let found = store.all_of("a", group, |_| {
                looked.set(looked.get() + 1);
                true
            });
            found.iter().map(|object| object.name_any()).collect::<Vec<_>>()
        };
        assert_eq!((names("group-7"), looked.get()), (vec!["one-7".to_owned()], 1));
        // It goes with the object to another group, and away with it.
        assert_eq!(on_event(Event::Apply(object("one-7", "group-8"))), 2);
        assert_eq!(
            (names("group-7").len(), names("group-8")),
            (0, vec!["one-7".to_owned(), "one-8".to_owned()])
        );
        on_event(Event::Delete(object("one-8", "group-8")));
        assert_eq!(names("group-8"), ["one-7"]);
        on_event(Event::Init);
        on_event(Event::InitApply(object("one-9", "group-9")));
        assert_eq!(on_event(Event::InitDone), 998);
        assert_eq!((names("group-8").len(), names("group-9").len()), (0, 1));
        assert_eq!(store.lock().groups.len(), 1, "nothing is left of groups without an object");
    }

    #[test]
    fn failures_far_apart_are_not_one_outage() {
        let start = clock::instant();
        let mut outage = Outage::default();
        for hour in 0..9 {
            assert!(!outage.lasts(start + Duration::from_hours(hour)), "{hour}");
        }
        assert!(!outage.ends());
    }
}
