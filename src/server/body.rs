//! Reads a request's body up to a limit.
//!
//! Guarantees: never holds more than the limit and one frame; what is over the limit is still taken from the
//! connection, as much again as the limit, since a client that is cut off while it writes may never read the answer.

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it was read.
    Whole,
    /// It is larger than the limit; its beginning was read.
    TooLarge,
}

/// The client went away, or its framing is broken.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the body")]
pub struct Broken(#[source] axum::Error);

/// What was read so far: a body of one frame, as small ones are, is never copied.
#[derive(Debug, Default)]
pub struct Kept {
    only: Bytes,
    joined: Vec<u8>,
}

impl Kept {
    fn len(&self) -> usize {
        self.only.len() + self.joined.len()
    }

    fn push(&mut self, data: Bytes, expected: usize) {
        if self.len() == 0 {
            self.only = data;
            return;
        }
        if self.joined.is_empty() {
            self.joined.reserve(expected);
            self.joined.extend_from_slice(&std::mem::take(&mut self.only));
        }
        self.joined.extend_from_slice(&data);
    }

    /// The bytes in one piece.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() { self.only } else { self.joined.into() }
    }
}

/// Reads `body` into `kept`, at most `limit` bytes. Dropped half-way, it leaves in `kept` what came so far.
///
/// # Errors
/// [`Broken`], when it does not come to its end.
pub async fn read(mut body: Body, limit: usize, kept: &mut Kept) -> Result<End, Broken> {
    let announced = body.size_hint().lower();
    let expected = usize::try_from(announced).map_or(limit, |announced| announced.min(limit));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Broken)?.into_data() else {
            continue;
        };
        let room = limit - kept.len();
        if data.len() > room {
            kept.push(data.slice(..room), expected);
            discard(body, limit).await;
            return Ok(End::TooLarge);
        }
        kept.push(data, expected);
    }
    Ok(End::Whole)
}

async fn discard(mut body: Body, mut limit: usize) {
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match limit.checked_sub(length) {
            Some(left) => limit = left,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn frames(frames: &[&'static str]) -> Body {
        let frames: Vec<Result<Bytes, std::io::Error>> =
            frames.iter().map(|frame| Ok(Bytes::from_static(frame.as_bytes()))).collect();
        Body::from_stream(stream::iter(frames))
    }

    async fn read_six(body: Body) -> (Result<End, Broken>, Bytes) {
        let mut kept = Kept::default();
        let end = read(body, 6, &mut kept).await;
        (end, kept.into_bytes())
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_is_whole() {
        for cut in [&["abcdef"][..], &["abc", "def"], &["a", "", "bcde", "f"], &["", "abcdef"]] {
            let (end, kept) = read_six(frames(cut)).await;
            assert_eq!((end.unwrap(), kept), (End::Whole, "abcdef".into()), "{cut:?}");
        }
    }

    #[tokio::test]
    async fn of_a_larger_body_the_beginning_is_kept() {
        for cut in [&["abcdefg"][..], &["abc", "defg"], &["abcdef", "g"], &["abcdef", "g", "hijklmnopqrst"]] {
            let (end, kept) = read_six(frames(cut)).await;
            assert_eq!((end.unwrap(), kept), (End::TooLarge, "abcdef".into()), "{cut:?}");
        }
    }

    #[tokio::test]
    async fn of_a_body_that_breaks_off_the_beginning_is_kept() {
        let broken = vec![
            Ok(Bytes::from_static(b"abc")),
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
        ];
        let (end, kept) = read_six(Body::from_stream(stream::iter(broken))).await;
        assert!(end.is_err());
        assert_eq!(kept, "abc");
    }
}
