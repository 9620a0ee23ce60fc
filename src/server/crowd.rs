//! Those whose next step is a client's: who has kept the gate waiting for longest gives way when room runs out.
//!
//! Guarantees: a client that goes on is never refused for the sake of one that has stopped; at most so many wait at a
//! time; the bytes that members hold stay within the ration, whether they wait for their client or are worked on.
//! Never: cuts one whose next step is the gate's own.
//!
//! ```text
//!   join ─▶ waiting ──grow──▶ waiting, last in line ──settle──▶ held ──wait_again──▶ waiting ──drop──▶ gone
//!              └── no room for another ──▶ gave way
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

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
    /// By turn: the first has kept the gate waiting for longest.
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    bytes: usize,
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
        while state.waiting.len() >= self.most.max(1) && state.cut_first(0).is_some() {}
        let turn = state.enter(0, &cut);
        drop(state);
        Member { crowd: Arc::clone(self), cut, bytes: 0, turn: Some(turn) }
    }

    /// Has the one that has kept the gate waiting for longest give way; false when nobody waits.
    pub(super) fn make_room(&self) -> bool {
        let cut = self.lock().cut_first(0);
        self.freed.notify_waiters();
        cut.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, bytes: usize, cut: &Arc<Notify>) -> u64 {
        self.turn += 1;
        self.idle += bytes;
        self.waiting.insert(self.turn, Waiting { bytes, cut: Arc::clone(cut) });
        self.turn
    }

    fn leave(&mut self, turn: u64) -> Option<Waiting> {
        let one = self.waiting.remove(&turn)?;
        self.idle -= one.bytes;
        Some(one)
    }

    /// Cuts the first that holds at least so many bytes.
    fn cut_first(&mut self, least: usize) -> Option<()> {
        let turn = self.waiting.iter().find(|(_, one)| one.bytes >= least).map(|(turn, _)| *turn)?;
        let Waiting { bytes, cut } = self.leave(turn)?;
        self.held -= bytes;
        cut.notify_one();
        Some(())
    }

    /// Cuts until so many more bytes fit; nobody where that would not do.
    fn fit(&mut self, more: usize, limit: usize) -> bool {
        let fits = self.held - self.idle + more <= limit;
        while fits && self.held + more > limit && self.cut_first(1).is_some() {}
        fits
    }
}

impl Member {
    /// Resolves when it has to give way.
    pub(super) async fn gave_way(&self) {
        self.cut.notified().await;
    }

    /// Its client has sent so many bytes more. What holds no more than `spare` bytes also finds room where all of the
    /// ration is being worked on, up to a quarter more than that: small reviews do not wait for large ones.
    ///
    /// # Errors
    /// [`GaveWay`].
    pub(super) async fn grow(&mut self, more: usize, spare: usize) -> Result<(), GaveWay> {
        let crowd = Arc::clone(&self.crowd);
        loop {
            let mut freed = std::pin::pin!(crowd.freed.notified());
            // What is freed from here on is not missed.
            freed.as_mut().enable();
            if self.try_grow(more, spare)? {
                return Ok(());
            }
            tokio::select! {
                () = freed => {}
                () = self.gave_way() => return Err(GaveWay),
            }
        }
    }

    fn try_grow(&mut self, more: usize, spare: usize) -> Result<bool, GaveWay> {
        let mut state = self.crowd.lock();
        // Out of the line meanwhile: nobody gives way to himself.
        if self.turn.take().is_some_and(|turn| state.leave(turn).is_none()) {
            self.bytes = 0;
            return Err(GaveWay);
        }
        let is_small = self.bytes + more <= spare;
        let limit =
            if is_small { self.crowd.bytes.saturating_add(self.crowd.bytes / 4) } else { self.crowd.bytes };
        let fits = state.fit(more, limit);
        if fits {
            state.held += more;
            self.bytes += more;
        }
        self.turn = Some(state.enter(self.bytes, &self.cut));
        Ok(fits)
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
        state.held -= self.bytes;
        // They are there already: who has no more to give leaves them so.
        let _fits = state.fit(bytes, self.crowd.bytes);
        state.held += bytes;
        self.cut = cut;
        self.bytes = bytes;
        self.turn = Some(state.enter(bytes, &self.cut));
        drop(state);
        self.crowd.freed.notify_waiters();
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

    #[tokio::test]
    async fn over_the_bytes_who_holds_none_stays() {
        let crowd = Crowd::new(9, 100);
        let (empty, mut first, mut second) = (join(&crowd), join(&crowd), join(&crowd));
        first.grow(60, 0).await.unwrap();
        second.grow(60, 0).await.unwrap();
        assert_eq!([&empty, &first, &second].map(has_given_way), [false, true, false]);
        assert_eq!(first.grow(1, 0).await, Err(GaveWay));
        assert_eq!(crowd.lock().held, 60);
    }

    #[tokio::test]
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

    #[tokio::test]
    async fn an_answer_that_nobody_takes_gives_way_and_nothing_is_left_behind() {
        let crowd = Crowd::new(9, 100);
        let mut answer = join(&crowd);
        answer.grow(10, 0).await.unwrap();
        answer.settle().unwrap();
        answer.wait_again(90, Arc::default());
        let mut next = join(&crowd);
        next.grow(50, 0).await.unwrap();
        assert!(has_given_way(&answer));
        drop((answer, next));
        let state = crowd.lock();
        assert_eq!((state.held, state.waiting.len()), (0, 0));
    }
}
