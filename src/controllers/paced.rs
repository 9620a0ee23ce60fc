//! Changes that begin reconciliations, at a pace: those of numbers alone, such as of pods that are ready, wait for one another.
//!
//! Guarantees: no change is lost: each is followed by a call of its object, at once or within the pause; what differs in
//! more than numbers never waits.
//! Assumes: a reconciliation reads what is there by then, so that one call is enough for all changes before it.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use tokio::time::Instant;

use super::difference::Difference;
use crate::runtime::clock;

/// Least time between two calls for numbers. A status that differs in numbers is written every two seconds at most, and a
/// reconciliation that comes sooner only puts it off.
pub const PAUSE: Duration = Duration::from_millis(2_500);

/// Calls the objects that have changed.
pub fn paced<Key>(
    changes: impl Stream<Item = (Key, Difference)> + Send + 'static,
    pause: Duration,
) -> BoxStream<'static, Key>
where
    Key: Clone + Eq + Hash + Send + Sync + 'static,
{
    let begins = (changes.boxed(), Pace { pause, calls: HashMap::new(), order: VecDeque::new() });
    let calls = stream::unfold(begins, async |(mut changes, mut pace)| {
        loop {
            if let Some(key) = pace.due(clock::instant()) {
                return Some((key, (changes, pace)));
            }
            let next = pace.next();
            let rest = async {
                match next {
                    Some(time) => tokio::time::sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            let change = tokio::select! {
                biased;
                change = changes.next() => change?,
                () = rest => continue,
            };
            if let Some(key) = pace.take(change, clock::instant()) {
                return Some((key, (changes, pace)));
            }
        }
    });
    calls.boxed()
}

/// The objects that were called within the pause.
struct Pace<Key> {
    pause: Duration,
    calls: HashMap<Key, Call>,
    /// When the pauses end, the first one first. Those of objects that were called again are of an earlier call.
    order: VecDeque<(Instant, Key)>,
}

/// The last call of an object.
struct Call {
    /// When its pause ends.
    until: Instant,
    /// Whether its numbers have changed since.
    is_outdated: bool,
}

impl<Key: Clone + Eq + Hash> Pace<Key> {
    /// An object has changed: whether it is called at once.
    fn take(&mut self, (key, difference): (Key, Difference), now: Instant) -> Option<Key> {
        match (difference, self.calls.get_mut(&key)) {
            (Difference::Nothing, _) => None,
            (Difference::Numbers, Some(call)) => {
                call.is_outdated = true;
                None
            }
            (Difference::Numbers, None) | (Difference::More, _) => Some(self.call(key, now)),
        }
    }

    fn call(&mut self, key: Key, now: Instant) -> Key {
        let until = now.checked_add(self.pause).unwrap_or(now);
        self.calls.insert(key.clone(), Call { until, is_outdated: false });
        self.order.push_back((until, key.clone()));
        key
    }

    /// When the next pause ends.
    fn next(&self) -> Option<Instant> {
        self.order.front().map(|(until, _)| *until)
    }

    /// The next object whose pause is over and whose numbers have changed meanwhile.
    fn due(&mut self, now: Instant) -> Option<Key> {
        while self.next().is_some_and(|until| until <= now) {
            let (until, key) = self.order.pop_front()?;
            match self.calls.get(&key) {
                Some(call) if call.until != until => {}
                Some(Call { is_outdated: true, .. }) => return Some(self.call(key, now)),
                Some(_) => drop(self.calls.remove(&key)),
                None => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::FutureExt as _;
    use futures::channel::mpsc;

    use super::*;

    /// Sends changes, and says who is called, at which millisecond since the beginning.
    struct Line {
        changes: mpsc::UnboundedSender<(&'static str, Difference)>,
        calls: RefCell<BoxStream<'static, &'static str>>,
    }

    impl Line {
        fn new() -> Self {
            let (changes, taken) = mpsc::unbounded();
            Self { changes, calls: RefCell::new(paced(taken, Duration::from_secs(2))) }
        }

        fn of(&self, changes: &[(&'static str, Difference)]) -> Vec<&'static str> {
            for change in changes {
                self.changes.unbounded_send(*change).unwrap();
            }
            std::iter::from_fn(|| self.calls.borrow_mut().next().now_or_never().flatten()).collect()
        }

        async fn after(&self, milliseconds: u64) -> Vec<&'static str> {
            tokio::time::advance(Duration::from_millis(milliseconds)).await;
            self.of(&[])
        }
    }

    #[tokio::test(start_paused = true)]
    async fn numbers_are_called_for_once_a_pause_and_all_else_at_once() {
        use Difference::{More, Nothing, Numbers};
        let line = Line::new();
        assert_eq!(line.of(&[("a", Nothing)]), [""; 0]);
        assert_eq!(line.of(&[("a", Numbers), ("a", Numbers), ("b", Numbers)]), ["a", "b"]);
        assert_eq!(line.after(1_999).await, [""; 0]);
        assert_eq!(line.after(1).await, ["a"], "it has changed once more, and b has not");
        assert_eq!(line.of(&[("a", More), ("a", More), ("b", Numbers), ("a", Nothing)]), ["a", "a", "b"]);
        assert_eq!(line.after(1_000).await, [""; 0]);
        assert_eq!(line.of(&[("a", Numbers), ("a", More)]), ["a"], "which sees the numbers, too");
        assert_eq!(line.of(&[("a", Numbers), ("b", Numbers)]), [""; 0]);
        assert_eq!(line.after(1_000).await, ["b"]);
        assert_eq!(line.after(1_000).await, ["a"], "two seconds after it was called last");
        assert_eq!(line.after(60_000).await, [""; 0]);
        assert_eq!(line.of(&[("a", Numbers)]), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_waits_is_called_for_although_others_never_end() {
        let line = Line::new();
        assert_eq!(line.of(&[("a", Difference::More), ("a", Difference::Numbers)]), ["a"]);
        let mut called = Vec::new();
        for _ in 0..20 {
            tokio::time::advance(Duration::from_millis(100)).await;
            called.extend(line.of(&[("b", Difference::More); 10]));
        }
        assert_eq!(called.iter().filter(|name| **name == "a").count(), 1);
        assert_eq!(called.len(), 201);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_objects_that_rest_and_the_end_of_changes_is_the_end_of_calls() {
        let now = clock::instant();
        let mut pace = Pace { pause: Duration::from_secs(2), calls: HashMap::new(), order: VecDeque::new() };
        for number in 0..1_000 {
            assert_eq!(pace.take((number, Difference::More), now), Some(number));
            assert_eq!(pace.take((number, Difference::More), now), Some(number));
        }
        assert_eq!(pace.due(now + Duration::from_secs(2)), None);
        assert_eq!((pace.calls.len(), pace.order.len()), (0, 0));
        let changes = stream::iter([("a", Difference::More), ("a", Difference::Numbers)]);
        assert_eq!(paced(changes, Duration::from_secs(2)).collect::<Vec<_>>().await, ["a"]);
    }
}
