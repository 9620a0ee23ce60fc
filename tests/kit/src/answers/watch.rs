//! A watch that does not tell everything: of two events of an object that follow each other, the first is not told.
//!
//! Guarantees: the last event of each object is passed on, and none before another of the same object that came first.
//! An API server that a client has fallen behind of may do as much, from one list to the next.

use std::collections::VecDeque;
use std::io;

use futures::stream::{self, Stream, StreamExt as _};
use hyper::body::Bytes;
use serde_json::Value;

struct Lines<S> {
    frames: S,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    /// Lines to tell.
    ready: VecDeque<Bytes>,
    /// A change that waits for the next one of the same object, and the uid of that.
    held: Option<(String, Bytes)>,
    has_skipped: bool,
}

/// The same lines without one of those, where `skips` says so.
pub fn skipping<S>(frames: S, skips: impl Fn() -> bool) -> impl Stream<Item = io::Result<Bytes>>
where
    S: Stream<Item = io::Result<Bytes>> + Unpin,
{
    let lines = Lines { frames, begun: Vec::new(), ready: VecDeque::new(), held: None, has_skipped: false };
    stream::unfold((lines, skips), async |(mut lines, skips)| {
        let next = lines.next(&skips).await?;
        Some((next, (lines, skips)))
    })
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Lines<S> {
    async fn next(&mut self, skips: &impl Fn() -> bool) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            match self.frames.next().await {
                Some(Ok(frame)) => self.begun.extend_from_slice(&frame),
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    let rest = std::mem::take(&mut self.begun);
                    self.ready.extend(self.held.take().map(|(_, held)| held));
                    self.ready.extend((!rest.is_empty()).then(|| rest.into()));
                    return self.ready.pop_front().map(Ok);
                }
            }
            while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.begun.drain(..=end).collect();
                self.line(line.into(), skips);
            }
        }
    }

    fn line(&mut self, line: Bytes, skips: &impl Fn() -> bool) {
        let event: Value = serde_json::from_slice(&line).unwrap_or_default();
        let uid = event["object"]["metadata"]["uid"].as_str().unwrap_or_default();
        if let Some((_, held)) = self.held.take_if(|(of, _)| of == uid) {
            self.has_skipped = true;
            self.ready.extend((!skips()).then_some(held));
        }
        let is_held = !self.has_skipped && self.held.is_none() && event["type"] == "MODIFIED";
        if is_held {
            self.held = Some((uid.to_owned(), line));
        } else {
            self.ready.push_back(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is passed on of these events, which come in pieces.
    async fn told(events: &[(&str, &str)], skips: bool) -> Vec<String> {
        let lines = events.iter().enumerate().map(|(number, (what, uid))| {
            let event =
                json!({"type": what, "object": {"metadata": {"uid": uid, "resourceVersion": number}}});
            format!("{event}\n")
        });
        let all = lines.collect::<String>().into_bytes();
        let frames = stream::iter(all.chunks(7).map(|piece| Ok(Bytes::copy_from_slice(piece))));
        let told: Vec<_> = skipping(frames, || skips).collect().await;
        let read = |line: io::Result<Bytes>| {
            let event: Value = serde_json::from_slice(&line.unwrap()).unwrap();
            let metadata = &event["object"]["metadata"];
            format!("{}{}", metadata["uid"].as_str().unwrap(), metadata["resourceVersion"])
        };
        told.into_iter().map(read).collect()
    }

    #[tokio::test]
    async fn a_change_that_another_follows_is_not_sent() {
        let events = [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "a"),
            ("MODIFIED", "b"),
            ("MODIFIED", "a"),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
        ];
        assert_eq!(told(&events, true).await, ["a0", "b1", "b3", "a4", "a5", "b6"]);
        let mut all = told(&events, false).await;
        all.sort();
        assert_eq!(all, ["a0", "a2", "a4", "a5", "b1", "b3", "b6"]);
    }

    #[tokio::test]
    async fn the_last_change_of_an_object_is_sent() {
        assert_eq!(told(&[("MODIFIED", "a"), ("ADDED", "b")], true).await, ["b1", "a0"]);
        assert_eq!(told(&[("MODIFIED", "a"), ("DELETED", "a")], true).await, ["a1"]);
    }
}
