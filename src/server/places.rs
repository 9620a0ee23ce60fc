//! The slots of connections, and which connection gives up its own when all are taken.
//!
//! Guarantees: one more connection gets the place of one that has not asked for a review yet, or else of one that is
//! idle: of the client that holds most, the one that has been idle for longest. Connections that an API server may be
//! about to use keep theirs, unless one client holds most of all places. One that owes the rest of a body is idle, and
//! an API server is about to send it, but for [`LATE`] at most: clients that trickle bodies do not shut others out.
//! Never: cuts a connection while the gate works on one of its requests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::activity::{Activity, Idle};
use crate::runtime::clock;

/// For how long API servers keep connections that they do not use, as Go's `http.Transport` does by default.
const KEPT: Duration = Duration::from_secs(90);

/// For how long the rest of a body may be owed while others need the place. API servers send one at once.
const LATE: Duration = Duration::from_secs(2);

/// How often it looks for one that may give way by now.
const AGAIN: Duration = Duration::from_secs(1);

/// All places.
pub(super) struct Places {
    most: usize,
    free: Arc<Semaphore>,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Of the connection that came last.
    turn: u64,
    by: BTreeMap<u64, Arc<Activity>>,
}

/// The place of one connection. Dropped, it is free.
pub(super) struct Place {
    places: Arc<Places>,
    turn: u64,
    /// Absent for what is accepted while the server ends.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// So many.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, free: Arc::new(Semaphore::new(most)), taken: Mutex::default() })
    }

    /// The next one, for which another connection may have to give way.
    pub(super) async fn next(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                return Some(permit);
            }
            self.make_room();
            if let Ok(permit) = timeout(AGAIN, Arc::clone(&self.free).acquire_owned()).await {
                // Closed never.
                return permit.ok();
            }
        }
    }

    /// The connection takes the place.
    pub(super) fn take(
        self: &Arc<Self>,
        permit: Option<OwnedSemaphorePermit>,
        activity: &Arc<Activity>,
    ) -> Place {
        let mut taken = self.lock();
        taken.turn += 1;
        let turn = taken.turn;
        taken.by.insert(turn, Arc::clone(activity));
        drop(taken);
        Place { places: Arc::clone(self), turn, _permit: permit }
    }

    /// Has a connection give way, where there is one that may.
    fn make_room(&self) {
        let (now, taken) = (clock::instant(), self.lock());
        let mut held: HashMap<IpAddr, usize> = HashMap::new();
        for activity in taken.by.values() {
            *held.entry(activity.peer()).or_default() += 1;
        }
        let may_go = |activity: &Activity, idle: Idle| {
            let Idle { is_newcomer, owes_a_body, is_known, since } = idle;
            let holds = held.get(&activity.peer()).copied().unwrap_or_default();
            let kept = if owes_a_body { LATE } else { KEPT };
            let is_left = now.saturating_duration_since(since) >= kept;
            let is_one_of_most = !owes_a_body && !is_known && 2 * holds > self.most;
            let may_go = is_newcomer || is_left || is_one_of_most;
            may_go.then_some((!is_known, is_newcomer, holds, Reverse(since)))
        };
        let idle = taken.by.values().filter_map(|activity| {
            let idle = activity.idle()?;
            Some((may_go(activity, idle)?, activity))
        });
        let first = idle.reduce(|first, next| if next.0 > first.0 { next } else { first });
        if let Some((_, activity)) = first {
            activity.give_way();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().by.remove(&self.turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEIGHBOUR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    /// A connection that has asked for a review, and been answered.
    fn asked(places: &Arc<Places>, peer: IpAddr) -> (Arc<Activity>, Place) {
        let (activity, place) = newcomer(places, peer);
        let busy = activity.begin();
        activity.asks_for_a_review();
        drop(busy);
        (activity, place)
    }

    fn newcomer(places: &Arc<Places>, peer: IpAddr) -> (Arc<Activity>, Place) {
        let activity = Activity::new(peer);
        let place = places.take(Arc::clone(&places.free).try_acquire_owned().ok(), &activity);
        (activity, place)
    }

    /// Which of them give way, one after the other, until none does.
    fn go(places: &Places, all: &[&(Arc<Activity>, Place)]) -> Vec<usize> {
        let mut gone = Vec::new();
        for _ in all {
            places.make_room();
            let is_new = |at: &usize| !gone.contains(at) && all[*at].0.gave_way();
            let Some(next) = (0..all.len()).find(is_new) else { break };
            gone.push(next);
        }
        gone
    }

    #[tokio::test(start_paused = true)]
    async fn who_asked_for_no_review_gives_way_first_and_the_oldest_of_the_client_that_holds_most() {
        let places = Places::new(9);
        let server = asked(&places, SERVER);
        let old = newcomer(&places, SERVER);
        tokio::time::advance(AGAIN).await;
        let (first, second) = (newcomer(&places, NEIGHBOUR), newcomer(&places, NEIGHBOUR));
        // Another path than one of reviews is no claim to a place.
        drop(first.0.begin());
        tokio::time::advance(AGAIN).await;
        let third = newcomer(&places, NEIGHBOUR);
        let all = [&server, &old, &first, &second, &third];
        assert_eq!(go(&places, &all), [2, 3, 4, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_keeps_its_place_while_an_api_server_may_use_it() {
        let places = Places::new(4);
        let (server, neighbour) = (asked(&places, SERVER), asked(&places, NEIGHBOUR));
        let busy = neighbour.0.begin();
        tokio::time::advance(KEPT / 2).await;
        let late = asked(&places, NEIGHBOUR);
        assert!(go(&places, &[&server, &neighbour, &late]).is_empty());
        tokio::time::advance(KEPT / 2).await;
        assert_eq!(go(&places, &[&server, &neighbour, &late]), [0]);
        drop(busy);
        tokio::time::advance(KEPT / 2).await;
        assert_eq!(go(&places, &[&neighbour, &late]), [1], "the other has just been answered");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_holds_most_places_gives_way_at_once_unless_it_is_known() {
        let places = Places::new(4);
        let (server, known) = (asked(&places, SERVER), asked(&places, NEIGHBOUR));
        known.0.recognise();
        let (first, second) = (asked(&places, NEIGHBOUR), asked(&places, NEIGHBOUR));
        assert_eq!(go(&places, &[&server, &known, &first, &second]), [2, 3]);
        drop((first, second));
        assert!(go(&places, &[&server, &known]).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_goes_on_owing_a_body_gives_way_and_one_that_is_worked_on_does_not() {
        let places = Places::new(3);
        let all = [asked(&places, SERVER), asked(&places, NEIGHBOUR), asked(&places, NEIGHBOUR)];
        let [worked_on, both, owing] = &all;
        let _busy = [worked_on, both, both, owing].map(|(activity, _)| activity.begin());
        let _owed = [both, owing].map(|(activity, _)| activity.awaits_a_body());
        assert!(go(&places, &[worked_on, both, owing]).is_empty(), "its body may come at once");
        tokio::time::advance(LATE).await;
        assert_eq!(go(&places, &[worked_on, both, owing]), [2]);
    }
}
