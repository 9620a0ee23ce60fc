//! Bodies and answers that wait for their client: the one that has waited for longest gives way when room runs out.
//!
//! Guarantees: a client that goes on is never refused for the sake of one that has stopped; at most so many wait at a
//! time; the bytes that members hold stay within the ration, whether they wait for their client or are being processed.
//! Who needs room waits for it for a while, so that a burst is taken one after the other: until then only those give
//! way that have stood still. After it the one that has kept the gate waiting for longest does, whatever it does:
//! clients that hold room and send little do not shut others out.
//! Never: cuts one whose next step is the gate's own.
//!
//! ```text
//!   join ─▶ waiting ──grow──▶ waiting, last in line ──settle──▶ held ──wait_again──▶ waiting ──drop──▶ gone
//!              └── no room for another ──▶ gave way
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::runtime::clock;

/// How long a client sends nothing until it has stood still.
const STILL: Duration = Duration::from_millis(500);

/// How long room is waited for before others are made to go that have not stood still. A fraction of what API servers
/// wait.
const POLITE: Duration = Duration::from_secs(2);

/// A crowd with its limits.
pub(super) struct Crowd {
    most: usize,
    bytes: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Default)]
struct State {
    /// Of the one that joined or went on last.
    turn: u64,
    /// Bytes of all members, waiting or not.
    held: usize,
    /// Bytes of those who wait.
    idle: usize,
    /// Those who wait and hold nothing, by turn: the first has kept the gate waiting for longest.
    empty: BTreeMap<u64, Waiting>,
    /// Those who wait and hold something, likewise.
    holding: BTreeMap<u64, Waiting>,
}

struct Waiting {
    bytes: usize,
    since: Instant,
    cut: Arc<Notify>,
}

/// One of a crowd. Dropped, it leaves.
pub(super) struct Member {
    crowd: Arc<Crowd>,
    cut: Arc<Notify>,
    bytes: usize,
    /// Absent while the next step is the gate's own.
    turn: Option<u64>,
}

/// There was no room for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GaveWay;

impl Crowd {
    /// At most `most` wait at a time, and all hold `bytes` together.
    pub(super) fn new(most: usize, bytes: usize) -> Arc<Self> {
        Arc::new(Self { most, bytes, state: Mutex::default(), freed: Notify::new() })
    }

    /// One more that waits for its client, and holds nothing yet. `cut` is notified when it has to give way.
    pub(super) fn join(self: &Arc<Self>, cut: Arc<Notify>) -> Member {
        let mut state = self.lock();
        while state.waiting() >= self.most.max(1) && state.cut_first() {}
        let turn = state.enter(0, &cut);
        drop(state);
        Member { crowd: Arc::clone(self), cut, bytes: 0, turn: Some(turn) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is room.
enum Room {
    Found,
    /// Not yet; when the first of those who wait will have stood still, or has, where one waits.
    Later(Option<Instant>),
}

impl State {
    fn waiting(&self) -> usize {
        self.empty.len() + self.holding.len()
    }

    fn enter(&mut self, bytes: usize, cut: &Arc<Notify>) -> u64 {
        self.turn += 1;
        self.idle += bytes;
        let line = if bytes == 0 { &mut self.empty } else { &mut self.holding };
        line.insert(self.turn, Waiting { bytes, since: clock::instant(), cut: Arc::clone(cut) });
        self.turn
    }

    fn leave(&mut self, turn: u64) -> Option<Waiting> {
        let one = self.holding.remove(&turn).or_else(|| self.empty.remove(&turn))?;
        self.idle -= one.bytes;
        Some(one)
    }

    /// Cuts the first of all; false when none waits.
    fn cut_first(&mut self) -> bool {
        let firsts = [&self.empty, &self.holding].map(|line| line.keys().next().copied());
        let Some(turn) = firsts.into_iter().flatten().min() else { return false };
        self.cut(turn);
        true
    }

    fn cut(&mut self, turn: u64) {
        if let Some(Waiting { bytes, cut, .. }) = self.leave(turn) {
            self.held -= bytes;
            cut.notify_one();
        }
    }

    /// Whether so many more bytes fit, at once or once those are cut who have waited since that moment or before;
    /// none is cut where even all that wait would not suffice.
    fn fit(&mut self, more: usize, limit: usize, since: Instant) -> bool {
        if self.held - self.idle + more > limit {
            return false;
        }
        while self.held + more > limit {
            match self.holding.first_key_value() {
                Some((&turn, first)) if first.since <= since => self.cut(turn),
                _ => return false,
            }
        }
        true
    }

    /// When the one that has kept the gate waiting for longest will have stood still.
    fn next_still(&self) -> Option<Instant> {
        self.holding.values().next().map(|first| first.since + STILL)
    }
}

impl Member {
    /// Resolves when it has to give way.
    pub(super) async fn gave_way(&self) {
        self.cut.notified().await;
    }

    /// Has room for so many bytes more, which its client has sent or is about to send. What holds no more than `spare`
    /// bytes also finds room where all of the ration is in use, up to a quarter more than that: small reviews do not
    /// wait for large ones.
    ///
    /// # Errors
    /// [`GaveWay`].
    pub(super) async fn grow(&mut self, more: usize, spare: usize) -> Result<(), GaveWay> {
        let crowd = Arc::clone(&self.crowd);
        let polite = clock::instant() + POLITE;
        loop {
            let mut freed = std::pin::pin!(crowd.freed.notified());
            // What is freed from here on is not missed.
            freed.as_mut().enable();
            let now = clock::instant();
            let since = if now < polite { now.checked_sub(STILL) } else { Some(now) };
            let Room::Later(still) = self.try_grow(more, spare, since)? else { return Ok(()) };
            // One that stands still already did not help.
            let still = still.filter(|still| *still > now);
            let again = (now < polite).then(|| still.map_or(polite, |still| still.min(polite)));
            tokio::select! {
                () = freed => {}
                () = at(again) => {}
                () = self.gave_way() => return Err(GaveWay),
            }
        }
    }

    /// Grows where there is room, or where there will be without those who have waited since that moment or before.
    fn try_grow(&mut self, more: usize, spare: usize, since: Option<Instant>) -> Result<Room, GaveWay> {
        let mut state = self.crowd.lock();
        // Out of the line meanwhile: a member does not give way to itself.
        if self.turn.take().is_some_and(|turn| state.leave(turn).is_none()) {
            self.bytes = 0;
            return Err(GaveWay);
        }
        let is_small = self.bytes + more <= spare;
        let limit =
            if is_small { self.crowd.bytes.saturating_add(self.crowd.bytes / 4) } else { self.crowd.bytes };
        let fits = state.held + more <= limit || since.is_some_and(|since| state.fit(more, limit, since));
        let room = if fits { Room::Found } else { Room::Later(state.next_still()) };
        if fits {
            state.held += more;
            self.bytes += more;
        }
        self.turn = Some(state.enter(self.bytes, &self.cut));
        Ok(room)
    }

    /// Its client has sent something of what there is room for.
    ///
    /// # Errors
    /// [`GaveWay`], when it had to before.
    pub(super) fn go_on(&mut self) -> Result<(), GaveWay> {
        self.settle()?;
        self.turn = Some(self.crowd.lock().enter(self.bytes, &self.cut));
        Ok(())
    }

    /// It needs room for no more bytes than these.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let mut state = self.crowd.lock();
        // One that gave way has been counted out, and hears of it when it settles.
        let is_in = bytes < self.bytes && self.turn.is_some_and(|turn| state.leave(turn).is_some());
        if is_in {
            state.held -= self.bytes - bytes;
            self.bytes = bytes;
            self.turn = Some(state.enter(bytes, &self.cut));
            drop(state);
            self.crowd.freed.notify_waiters();
        }
    }

    /// The next step is the gate's own: from here on it does not give way.
    ///
    /// # Errors
    /// [`GaveWay`], when it had to before.
    pub(super) fn settle(&mut self) -> Result<(), GaveWay> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        let waiting = self.crowd.lock().leave(turn);
        if waiting.is_none() {
            self.bytes = 0;
            return Err(GaveWay);
        }
        Ok(())
    }

    /// The next step is the client's again, who is to take so many bytes instead of those that it has sent.
    pub(super) fn wait_again(&mut self, bytes: usize, cut: Arc<Notify>) {
        let mut state = self.crowd.lock();
        // One that has just joined waits already. One that gave way meanwhile has been counted out.
        let is_in = self.turn.take().is_none_or(|turn| state.leave(turn).is_some());
        if is_in {
            state.held -= self.bytes;
        }
        // They are there already: who has no more to give leaves them so.
        let _fits = state.fit(bytes, self.crowd.bytes, clock::instant());
        state.held += bytes;
        self.cut = cut;
        self.bytes = bytes;
        self.turn = Some(state.enter(bytes, &self.cut));
        drop(state);
        self.crowd.freed.notify_waiters();
    }
}

/// Resolves at that moment, where there is one.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.crowd.lock();
        // One that gave way has been counted out.
        let is_in = self.turn.is_none_or(|turn| state.leave(turn).is_some());
        if is_in {
            state.held -= self.bytes;
        }
        drop(state);
        if self.bytes > 0 {
            self.crowd.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake};

    use futures::FutureExt as _;

    use super::*;

    fn join(crowd: &Arc<Crowd>) -> Member {
        crowd.join(Arc::default())
    }

    fn has_given_way(member: &Member) -> bool {
        member.gave_way().now_or_never().is_some()
    }

    #[tokio::test]
    async fn over_the_number_the_one_that_went_on_longest_ago_gives_way() {
        let crowd = Crowd::new(2, 100);
        let (mut first, second) = (join(&crowd), join(&crowd));
        first.grow(1, 0).await.unwrap();
        let third = join(&crowd);
        assert_eq!([&first, &second, &third].map(has_given_way), [false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn over_the_bytes_who_holds_none_stays() {
        let crowd = Crowd::new(9, 100);
        let (empty, mut first, mut second) = (join(&crowd), join(&crowd), join(&crowd));
        first.grow(60, 0).await.unwrap();
        second.grow(60, 0).await.unwrap();
        assert_eq!([&empty, &first, &second].map(has_given_way), [false, true, false]);
        assert_eq!(first.grow(1, 0).await, Err(GaveWay));
        assert_eq!(crowd.lock().held, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_on_does_not_give_way_for_a_while() {
        let crowd = Crowd::new(9, 100);
        let (mut still, mut goes_on, mut next) = (join(&crowd), join(&crowd), join(&crowd));
        still.grow(50, 0).await.unwrap();
        goes_on.grow(50, 0).await.unwrap();
        tokio::time::advance(STILL / 2).await;
        goes_on.go_on().unwrap();
        assert_eq!(next.grow(50, 0).await, Ok(()));
        assert_eq!([&still, &goes_on, &next].map(has_given_way), [true, false, false]);
        // No member has stood still, so the next one waits for the one that ends.
        let mut last = join(&crowd);
        let mut grows = std::pin::pin!(last.grow(50, 0));
        assert!(grows.as_mut().now_or_never().is_none());
        next.settle().unwrap();
        drop(next);
        assert_eq!(grows.await, Ok(()));
        assert!(!has_given_way(&goes_on));
    }

    #[tokio::test(start_paused = true)]
    async fn who_holds_room_and_sends_little_gives_way_in_the_end() {
        let crowd = Crowd::new(9, 100);
        let (mut trickles, mut next) = (join(&crowd), join(&crowd));
        trickles.grow(100, 0).await.unwrap();
        let begun = clock::instant();
        let trickle = async {
            while trickles.go_on().is_ok() {
                tokio::time::sleep(STILL / 5).await;
            }
        };
        let (grown, ()) = futures::join!(next.grow(1, 0), trickle);
        assert_eq!((grown, begun.elapsed() >= POLITE), (Ok(()), true));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_worked_on_never_gives_way_and_others_wait_for_it() {
        let crowd = Crowd::new(9, 100);
        let mut works = join(&crowd);
        works.grow(100, 0).await.unwrap();
        works.settle().unwrap();
        let (mut large, mut small) = (join(&crowd), join(&crowd));
        assert_eq!(small.grow(20, 20).await, Ok(()), "there is a little more for small ones");
        assert!(large.grow(50, 20).now_or_never().is_none());
        assert!(!has_given_way(&small), "it would not do");
        let mut grows = std::pin::pin!(large.grow(50, 20));
        assert!(grows.as_mut().now_or_never().is_none());
        drop(works);
        assert_eq!(grows.await, Ok(()));
        assert!(!has_given_way(&small), "there is room for both");
    }

    /// Whether it was woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_what_is_worked_on_does_not_ask_again_and_again() {
        let crowd = Crowd::new(9, 100);
        let (mut works, mut still, mut next) = (join(&crowd), join(&crowd), join(&crowd));
        works.grow(80, 0).await.unwrap();
        works.settle().unwrap();
        still.grow(10, 0).await.unwrap();
        tokio::time::advance(STILL * 2).await;
        let mut grows = Box::pin(next.grow(50, 0));
        let woken = Arc::<Woken>::default();
        let waker = Arc::clone(&woken).into();
        assert!(grows.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!woken.0.load(Ordering::Relaxed), "nothing has happened");
        drop(works);
        assert_eq!(grows.await, Ok(()));
        assert!(!has_given_way(&still), "there is room for both");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unread_answer_gives_way_and_nothing_is_left_behind() {
        let crowd = Crowd::new(9, 100);
        let mut answer = join(&crowd);
        answer.grow(10, 0).await.unwrap();
        answer.settle().unwrap();
        answer.wait_again(90, Arc::default());
        let mut next = join(&crowd);
        next.grow(50, 0).await.unwrap();
        assert!(has_given_way(&answer));
        let mut of_none = join(&crowd);
        of_none.wait_again(10, Arc::default());
        drop((answer, next, of_none));
        let state = crowd.lock();
        assert_eq!((state.held, state.waiting()), (0, 0));
    }
}
