//! Lines on their way to an output that may stand still, such as a log's pipe that is not read.
//!
//! ```text
//!   log messages ──▶ lines that wait, up to a limit ──▶ one thread ──▶ output
//!                        └▶ counted, where there is no room
//! ```
//!
//! Guarantees: writing a line never waits for the output; lines come out whole and in their order; what was
//! dropped is counted, and reported in a line of its own once the output has taken what waited; nothing is lost where
//! [`Flush`] is dropped and the output moves, and one that stands still holds up the end for [`PATIENCE`] at most.
//! Assumes: one call writes one line.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Bytes that may wait.
const MOST: usize = 1 << 20;

/// Bytes of lines that are written together, with the last of them: each write costs as much as some lines.
const TOGETHER: usize = 1 << 14;

/// How long an end waits for an output that stands still.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where lines are written. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Lines(Arc<Shared>);

/// Writes what waits when it is dropped: `main` holds it.
#[derive(Debug)]
pub(super) struct Flush(Lines);

/// Lines that were dropped. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Dropped(Counter);

impl Dropped {
    /// Puts the count on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.sub_registry_with_prefix("gatehouse").register(
            "log_lines_dropped",
            "Log lines that were dropped since standard error did not take them in time",
            self.0.clone(),
        );
    }
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// There is more to write.
    more: Condvar,
    /// The thread has written everything.
    written: Condvar,
    dropped: Dropped,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    /// Of these lines, and of those that are being written.
    bytes: usize,
    /// Dropped lines that no line has reported.
    untold: u64,
}

impl Lines {
    /// Starts the thread that writes to `output`.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(super) fn to(output: impl Write + Send + 'static) -> io::Result<(Self, Flush)> {
        let lines = Self(Arc::new(Shared {
            waiting: Mutex::default(),
            more: Condvar::new(),
            written: Condvar::new(),
            dropped: Dropped::default(),
        }));
        let writing = lines.clone();
        // It ends with the process: nothing else can end a write that stands still.
        thread::Builder::new().name("log".to_owned()).spawn(move || writing.write_to(output))?;
        Ok((lines.clone(), Flush(lines)))
    }

    pub(super) fn dropped(&self) -> Dropped {
        self.0.dropped.clone()
    }

    fn write_to(&self, mut output: impl Write) {
        loop {
            let text = self.next();
            // A reader that has gone reads nothing more.
            let _gone = output.write_all(&text);
            let mut waiting = self.locked();
            waiting.bytes -= text.len();
            let is_all = waiting.bytes == 0;
            drop(waiting);
            if is_all {
                self.0.written.notify_all();
            }
        }
    }

    /// Those lines that have waited longest. Where none waits, the count of dropped lines comes first.
    fn next(&self) -> Vec<u8> {
        loop {
            let mut waiting = self.locked();
            let mut text = Vec::new();
            while text.len() < TOGETHER
                && let Some(line) = waiting.lines.pop_front()
            {
                text.extend_from_slice(&line);
            }
            if !text.is_empty() {
                return text;
            }
            let untold = std::mem::take(&mut waiting.untold);
            if untold == 0 {
                drop(self.0.more.wait(waiting).unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            drop(waiting);
            // This is a line like others, and comes back here.
            tracing::warn!(lines = untold, "log lines were dropped, since standard error did not take them");
        }
    }

    fn locked(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.locked();
        if waiting.bytes + line.len() > MOST {
            waiting.untold += 1;
            drop(waiting);
            self.0.dropped.0.inc();
        } else {
            waiting.bytes += line.len();
            waiting.lines.push_back(line.into());
            let is_first = waiting.lines.len() == 1;
            drop(waiting);
            // The thread waits for nothing while there are others.
            if is_first {
                self.0.more.notify_one();
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Flush {
    /// Waits until everything is written, or the output stands still; whether it took everything.
    pub(super) fn flush(&self) -> bool {
        let lines = &self.0;
        let mut waiting = lines.locked();
        while waiting.bytes > 0 {
            let before = waiting.bytes;
            let (next, waited) =
                lines.0.written.wait_timeout(waiting, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            waiting = next;
            if waited.timed_out() && waiting.bytes >= before {
                return false;
            }
        }
        true
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

    use super::*;

    /// Hands over what is written for each word that it may.
    struct Held {
        may: Receiver<()>,
        written: Sender<String>,
    }

    impl Write for Held {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            // When the test has ended nothing holds it up.
            let _ended = self.may.recv();
            let _ended = self.written.send(String::from_utf8_lossy(line).into_owned());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn held() -> (Lines, Flush, SyncSender<()>, Receiver<String>) {
        let ((may, allowed), (written, lines)) = (sync_channel(0), channel());
        let (to, flush) = Lines::to(Held { may: allowed, written }).unwrap();
        (to, flush, may, lines)
    }

    #[test]
    fn lines_come_out_whole_and_in_order_and_none_is_lost_at_the_end() {
        let (written, lines) = channel();
        let (may, allowed) = sync_channel(1000);
        (0..1000).for_each(|_| may.send(()).unwrap());
        let (mut to, flush) = Lines::to(Held { may: allowed, written }).unwrap();
        for number in 0..1000 {
            to.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        assert!(flush.flush());
        let expected: Vec<_> = (0..1000).map(|number| format!("{number}\n")).collect();
        let written: Vec<_> = lines.try_iter().collect();
        assert_eq!(written.concat(), expected.concat());
        assert!(written.iter().all(|together| together.ends_with('\n')), "{written:?}");
    }

    #[test]
    fn an_output_that_stands_still_holds_nothing_up_and_what_had_no_room_is_counted() {
        let (mut to, _flush, may, lines) = held();
        let line = vec![b'x'; MOST / 4];
        for _ in 0..10 {
            to.write_all(&line).unwrap();
        }
        assert_eq!((to.locked().untold, to.dropped().0.get()), (6, 6));
        let written: Vec<_> = (0..4)
            .map(|_| {
                may.send(()).unwrap();
                lines.recv().unwrap().len()
            })
            .collect();
        assert_eq!(written, [MOST / 4; 4]);
        // There is room again.
        to.write_all(b"later\n").unwrap();
        may.send(()).unwrap();
        assert_eq!(lines.recv().unwrap(), "later\n");
    }

    #[test]
    fn an_end_does_not_wait_for_an_output_that_stands_still() {
        let (mut to, flush, _may, _lines) = held();
        to.write_all(b"never\n").unwrap();
        assert!(!flush.flush());
    }
}
