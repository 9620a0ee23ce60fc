//! ConfigMaps with dates, read once for all TDSets that take dates from them.
//!
//! Guarantees: one that has not changed is not read again; of the TDSets that need one that is not watched, or that is
//! missing, all that wait while it is read share the next read; it is kept once, and for as long as a TDSet asks for
//! it. Where it cannot be read any more its dates are those that were read last, and it is read once in a while for all.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tokio::time::Instant;

use super::observation::Blocker;
use crate::api::condition::State;
use crate::controllers::manifest::Place;
use crate::controllers::outcome::Error;
use crate::controllers::state_store::StateStore;
use crate::controllers::watched::version_number;
use crate::kinds::tdset::api::schedule::DateList;
use crate::kinds::tdset::api::status::Reason;
use crate::runtime::call::call;
use crate::runtime::clock;

/// So many ConfigMaps are not worth a sweep.
const FEW: usize = 64;

/// How long reads of one have to fail for it to be unreadable.
const TOLERATED: Duration = Duration::from_secs(10);

/// How long one is unreadable until it is read again. TDSets that need it ask again after half a minute.
const PAUSE: Duration = Duration::from_secs(20);

/// Failures further apart have nothing to do with each other, until it is unreadable.
const FAR_APART: Duration = Duration::from_mins(1);

/// Reads them.
pub struct Calendars {
    client: Client,
    /// Those that are asked for.
    pub asked: Asked,
}

/// ConfigMaps that objects ask for.
#[derive(Default)]
pub struct Asked {
    /// All of them.
    all: Mutex<All>,
    /// Those of each object.
    of: StateStore<Vec<Arc<Calendar>>>,
}

/// ConfigMaps by namespace and name, including those that no TDSet asks for any more, until they are swept out.
#[derive(Default)]
struct All {
    calendars: HashMap<(String, String), Weak<Calendar>>,
    /// How many there are when they are swept the next time: twice as many as were left by the last sweep, so that each
    /// of them is looked at a few times on the whole, however many come.
    sweep_at: usize,
}

/// A ConfigMap.
#[derive(Debug)]
pub struct Calendar {
    namespace: String,
    name: String,
    /// How many reads of it were begun.
    begun: AtomicU64,
    reads: tokio::sync::Mutex<Reads>,
}

/// How it was read so far.
#[derive(Debug, Default)]
struct Reads {
    /// Which of all reads told of it last, from 1 on.
    nth: u64,
    /// What there is; where that cannot be read, what there was.
    found: Option<Found>,
    /// Why it is not there, or could not be read.
    blocker: Option<Blocker>,
    /// The first of the reads that fail by now, and when the last one had failed.
    failing: Option<(Instant, Instant)>,
}

/// What a key of a ConfigMap holds.
#[derive(Debug)]
pub struct Dates {
    /// The dates; where they cannot be read, those that were read last.
    pub list: Option<Arc<DateList>>,
    /// Why they could not be read.
    pub unread: Option<Blocker>,
}

impl Reads {
    /// Whether what is known does for one who asked when so many reads were begun, of a ConfigMap that is at that version
    /// at least: it was read after that, has that version, or was unreadable just now.
    fn does(&self, begun: u64, version: Option<&str>) -> bool {
        let has_version = |found: &Found| {
            version.is_some() && version_number(found.version.as_deref()) >= version_number(version)
        };
        let is_recent = |last: &Instant| clock::instant().duration_since(*last) < PAUSE;
        let was_unreadable = self.is_unreadable() && self.failing.is_some_and(|(_, last)| is_recent(&last));
        let is_of_now = self.blocker.is_none() && self.found.as_ref().is_some_and(has_version);
        self.nth > begun || is_of_now || was_unreadable
    }

    fn is_unreadable(&self) -> bool {
        self.blocker.as_ref().is_some_and(|blocker| blocker.reason == Reason::DatesNotReadable)
    }

    /// Read number `nth` has told that. A right that is missing says nothing of the dates.
    fn told(&mut self, nth: u64, found: Result<Found, Blocker>) {
        (self.nth, self.failing) = (nth, None);
        match found {
            Ok(found) => (self.found, self.blocker) = (Some(found), None),
            Err(blocker) => {
                self.found = self.found.take().filter(|_| blocker.state == State::Unknown);
                self.blocker = Some(blocker);
            }
        }
    }

    /// Read number `nth` has failed, which is an error while that may pass, and where it was never read: then nothing is
    /// known of its days.
    fn failed(&mut self, nth: u64, error: Error) -> Result<(), Error> {
        let now = clock::instant();
        let is_near = |last: Instant| self.is_unreadable() || now.duration_since(last) < FAR_APART;
        let since = self.failing.filter(|(_, last)| is_near(*last)).map_or(now, |(since, _)| since);
        self.failing = Some((since, now));
        if self.found.is_none() || now.duration_since(since) < TOLERATED {
            return Err(error);
        }
        self.nth = nth;
        self.blocker = Some(Blocker::dates(State::Unknown, Reason::DatesNotReadable, error.said()));
        Ok(())
    }

    fn dates(&mut self, name: &str, key: &str) -> Dates {
        let list = self.found.as_mut().and_then(|found| found.list(key));
        let no_key = || {
            let message = format!("ConfigMap {name} has no key {key}");
            Blocker::dates(State::False, Reason::DatesNotFound, message)
        };
        let unread = self.blocker.clone().or_else(|| list.is_none().then(no_key));
        Dates { list, unread }
    }
}

#[derive(Debug)]
struct Found {
    version: Option<String>,
    texts: BTreeMap<String, String>,
    /// The dates of the keys that were asked for.
    lists: BTreeMap<String, Arc<DateList>>,
}

impl Found {
    fn list(&mut self, key: &str) -> Option<Arc<DateList>> {
        if let Some(list) = self.lists.get(key) {
            return Some(Arc::clone(list));
        }
        let list = Arc::new(DateList::read(self.texts.get(key)?));
        self.lists.insert(key.to_owned(), Arc::clone(&list));
        Some(list)
    }
}

impl Calendars {
    /// Reads through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, asked: Asked::default() }
    }

    /// What a key of a ConfigMap holds, which is at that version at least; none: unknown.
    ///
    /// # Errors
    /// When the API server does not say, and that may pass, or has never said.
    pub async fn dates(&self, calendar: &Calendar, key: &str, version: Option<&str>) -> Result<Dates, Error> {
        calendar.dates(key, version, self.read(&calendar.namespace, &calendar.name)).await
    }

    async fn read(&self, namespace: &str, name: &str) -> Result<Result<Found, Blocker>, Error> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
        match call(api.get(name)).await {
            Ok(found) => Ok(Ok(Found {
                version: found.metadata.resource_version,
                texts: found.data.unwrap_or_default(),
                lists: BTreeMap::new(),
            })),
            Err(error) if error.is_not_found() => {
                let message = format!("ConfigMap {name} does not exist");
                Ok(Err(Blocker::dates(State::False, Reason::DatesNotFound, message)))
            }
            Err(error) if error.is_forbidden() => {
                let Blocker { reason, message, .. } = Blocker::forbidden("get", "configmaps", "");
                Ok(Err(Blocker::dates(State::Unknown, reason, message)))
            }
            Err(error) => Err(Error::of("read", &Place::named::<ConfigMap>(namespace, name))(error)),
        }
    }
}

impl Calendar {
    /// What its key holds, which is at that version at least; `read` is awaited where what is known does not do.
    async fn dates(
        &self,
        key: &str,
        version: Option<&str>,
        read: impl Future<Output = Result<Result<Found, Blocker>, Error>>,
    ) -> Result<Dates, Error> {
        // Many may wait for the same read: without that count, each of them would read after the other.
        let begun = self.begun.load(Ordering::SeqCst);
        let mut reads = self.reads.lock().await;
        if !reads.does(begun, version) {
            let nth = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            match read.await {
                Ok(found) => reads.told(nth, found),
                Err(error) => reads.failed(nth, error)?,
            }
        }
        Ok(reads.dates(&self.name, key))
    }
}

impl Asked {
    /// The object of that uid is there: what it asks for is kept until it is forgotten.
    pub fn admit(&self, uid: &str) {
        self.of.admit(uid);
    }

    /// The ConfigMaps of these names, in that order. The object of that uid asks for them from now on, and for no others,
    /// unless it has gone meanwhile.
    pub fn ask<'a>(
        &self,
        uid: &str,
        namespace: &str,
        names: impl ExactSizeIterator<Item = &'a str>,
    ) -> Vec<Arc<Calendar>> {
        if names.len() == 0 {
            self.of.put(uid, Vec::new());
            return Vec::new();
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let calendars: Vec<_> = names.map(|name| all.one(namespace, name)).collect();
        drop(all);
        self.of.put(uid, calendars.clone());
        calendars
    }

    /// The object of that uid asks for none any more.
    pub fn forget(&self, uid: &str) {
        self.of.forget(uid);
    }
}

impl All {
    /// The ConfigMap of that name.
    fn one(&mut self, namespace: &str, name: &str) -> Arc<Calendar> {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(known) = self.calendars.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        if self.calendars.len() >= self.sweep_at {
            self.calendars.retain(|_, calendar| calendar.strong_count() > 0);
            self.sweep_at = self.calendars.len().saturating_mul(2).max(FEW);
        }
        let (namespace, name) = key.clone();
        let (begun, reads) = (AtomicU64::default(), tokio::sync::Mutex::default());
        let calendar = Arc::new(Calendar { namespace, name, begun, reads });
        self.calendars.insert(key, Arc::downgrade(&calendar));
        calendar
    }
}

impl fmt::Debug for Calendars {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Calendars")
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;
    use crate::runtime::call::Error as Failed;

    #[test]
    fn many_objects_share_a_config_map_for_as_long_as_one_asks_for_it() {
        let calendars = Asked::default();
        let days = |uid: &str| {
            calendars.admit(uid);
            calendars.ask(uid, "a", ["days"].into_iter()).remove(0)
        };
        let first = Arc::downgrade(&days("1"));
        for number in 0..1_000 {
            assert!(Arc::ptr_eq(&days(&number.to_string()), &first.upgrade().unwrap()));
        }
        assert_eq!(first.strong_count(), 1_000);
        let others = calendars.ask("1", "a", ["more", "days"].into_iter());
        assert!(Arc::ptr_eq(&others[1], &first.upgrade().unwrap()) && others[0].name == "more");
        assert!(calendars.ask("1", "a", [].into_iter()).is_empty());
        assert_eq!(first.strong_count(), 1_000, "those that are held here among them");
        drop(others);
        for number in (0..1_000).filter(|number| *number != 3) {
            calendars.forget(&number.to_string());
        }
        assert_eq!(first.strong_count(), 1);
        calendars.forget("3");
        assert!(first.upgrade().is_none());
        drop(calendars.ask("3", "a", ["days"].into_iter()));
        let left = calendars.of.of("3");
        assert!(left.is_empty(), "a pass over an object that has gone leaves nothing: {left:?}");
    }

    #[test]
    fn those_that_are_no_longer_needed_leave_and_the_others_are_not_looked_at_each_time() {
        let calendars = Asked::default();
        let ask = |uid: &str, name: String| {
            calendars.admit(uid);
            calendars.ask(uid, "a", [name.as_str()].into_iter())
        };
        let kept = || calendars.all.lock().unwrap().calendars.len();
        for number in 0..10_000 {
            drop(ask("1", number.to_string()));
            assert!(kept() <= FEW, "{number}");
        }
        for number in 0..1_000 {
            let uid = number.to_string();
            drop(ask(&uid, uid.clone()));
        }
        assert!((1_000..=1_000 + FEW).contains(&kept()), "{}", kept());
        let next = calendars.all.lock().unwrap().sweep_at;
        assert!(next > 1_000, "a sweep is due at {next}");
    }

    #[tokio::test]
    async fn all_who_wait_while_it_is_read_share_the_next_read() {
        let reads = AtomicU64::default();
        let calendar = Asked::default().ask("1", "a", ["days"].into_iter()).remove(0);
        let read = async || {
            reads.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok(missing(State::False, Reason::DatesNotFound))
        };
        let ask = || calendar.dates("all", None, read());
        for answer in join_all((0..16).map(|_| ask())).await {
            assert_eq!(answer.unwrap().unread.unwrap().reason, Reason::DatesNotFound);
        }
        assert_eq!(reads.load(Ordering::SeqCst), 2, "the first one was begun before the others asked");
        assert!(ask().await.unwrap().unread.is_some());
        assert_eq!(reads.load(Ordering::SeqCst), 3, "it may have been made meanwhile");
    }

    fn found(version: &str) -> Found {
        let texts = BTreeMap::from([("all".to_owned(), "2026-12-25".to_owned())]);
        Found { version: Some(version.to_owned()), texts, lists: BTreeMap::new() }
    }

    fn missing(state: State, reason: Reason) -> Result<Found, Blocker> {
        Err(Blocker::dates(state, reason, String::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_be_read_any_more_is_as_it_was_until_it_can_be_read() {
        let calendar = Asked::default().ask("1", "a", ["days"].into_iter()).remove(0);
        let place = Place::named::<ConfigMap>("a", "days");
        let reads = AtomicU64::default();
        let fails = async || {
            let failed = async {
                reads.fetch_add(1, Ordering::SeqCst);
                Err(Error::of("read", &place)(Failed::Timeout))
            };
            calendar.dates("all", None, failed).await
        };
        let tells = async |found| calendar.dates("all", None, async { Ok(found) }).await.unwrap();
        for _ in 0..2 {
            assert!(fails().await.is_err(), "nothing is known of its days");
            tokio::time::advance(TOLERATED).await;
        }
        for _ in 0..2 {
            assert!(tells(Ok(found("7"))).await.unread.is_none());
            // An answer that is lost now and then is no outage.
            for _ in 0..2 {
                assert!(fails().await.is_err(), "that may pass");
                tokio::time::advance(FAR_APART).await;
            }
            assert!(fails().await.is_err());
            tokio::time::advance(TOLERATED).await;
            let before = reads.load(Ordering::SeqCst);
            for round in 1..4 {
                for _ in 0..100 {
                    let Dates { list, unread } = fails().await.unwrap();
                    let unread = unread.unwrap();
                    assert_eq!((unread.state, unread.reason), (State::Unknown, Reason::DatesNotReadable));
                    let said = "failed to read configmaps a/days: ";
                    assert!(list.is_some() && unread.message.starts_with(said), "{}", unread.message);
                }
                assert_eq!(reads.load(Ordering::SeqCst), before + round, "once for all");
                tokio::time::advance(FAR_APART * 2).await;
            }
        }
        let forbidden = tells(missing(State::Unknown, Reason::Forbidden)).await;
        assert!(
            forbidden.list.is_some() && forbidden.unread.is_some(),
            "a missing right says nothing of the dates"
        );
        let gone = tells(missing(State::False, Reason::DatesNotFound)).await;
        assert!(gone.list.is_none() && gone.unread.is_some(), "it is known to be gone");
    }

    #[test]
    fn a_read_does_for_who_asked_before_it_and_for_who_knows_of_no_later_version() {
        let mut reads = Reads::default();
        reads.told(2, Ok(found("7")));
        let does = |begun| [None, Some("6"), Some("7"), Some("8")].map(|version| reads.does(begun, version));
        assert_eq!(does(1), [true; 4]);
        assert_eq!(does(2), [false, true, true, false]);
        reads.told(2, missing(State::False, Reason::DatesNotFound));
        assert!(reads.does(1, None) && !reads.does(2, None) && !reads.does(2, Some("7")));
    }

    #[test]
    fn a_key_is_read_once() {
        let mut found = found("7");
        let list = found.list("all").unwrap();
        assert_eq!(list.dates.len(), 1);
        assert!(Arc::ptr_eq(&list, &found.list("all").unwrap()));
        assert_eq!(found.list("none"), None);
    }
}
