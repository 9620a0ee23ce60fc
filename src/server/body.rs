//! Reads a request's body up to a limit.
//!
//! Guarantees: never holds more than the limit and one frame, and of one that announces more than the limit no more
//! than its beginning; what is held is within the ration of the [`Crowd`]. A large body has room for all of it before
//! more than its first frame is read, so that one that was begun need not give way to the next; one that stands still
//! does. What is over the limit is answered at once, and then still taken from the connection for a while, since a
//! client that is cut off while it writes may never read the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures::FutureExt as _;
use http_body_util::BodyExt;
use hyper::body::Frame;
use tokio::time::timeout;

use super::activity::{Activity, Awaited};
use super::crowd::{Crowd, GaveWay, Member};

/// How long the beginning of a body is waited for that is too large by its own account: its uid is there.
const BEGINNING: Duration = Duration::from_secs(1);

/// How long, and how many times the limit, is taken from a client that goes on writing after its answer.
const LINGER: (Duration, usize) = (Duration::from_secs(10), 4);

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it was read.
    Whole,
    /// It is larger than the limit; its beginning was read.
    TooLarge,
}

/// Why a body did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The client went away, or its framing is broken.
    #[error("failed to read the body")]
    Broken(#[source] axum::Error),
    /// It stood still while others came, and there was no room for all.
    #[error("the body gave way to others")]
    GaveWay,
}

impl From<GaveWay> for Fault {
    fn from(_: GaveWay) -> Self {
        Self::GaveWay
    }
}

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

/// A body that is being read, and its state so far.
pub struct Reading<'a> {
    crowd: &'a Arc<Crowd>,
    limit: usize,
    /// Bytes of a body that is small: it need not join unless it is waited for.
    small: usize,
    /// Bytes of a body that is not large: it has room for what came of it, also beside the ration where that is being
    /// worked on.
    medium: usize,
    /// Bytes that it has at least and at most, by its own account.
    announced: (usize, usize),
    /// It has room for all of it.
    has_room: bool,
    /// Of its connection.
    activity: Option<Arc<Activity>>,
    /// That it is waited for, since it first was.
    awaited: Option<Awaited>,
    /// What came.
    pub(super) kept: Kept,
    /// Its part of the ration, once it has one.
    pub(super) member: Option<Member>,
}

impl<'a> Reading<'a> {
    /// Nothing yet.
    pub(super) fn new(
        crowd: &'a Arc<Crowd>,
        limit: usize,
        (small, medium): (usize, usize),
        activity: Option<Arc<Activity>>,
    ) -> Self {
        Self {
            crowd,
            limit,
            small,
            medium,
            announced: (0, limit),
            has_room: false,
            activity,
            awaited: None,
            kept: Kept::default(),
            member: None,
        }
    }

    /// Reads at most the limit. Dropped half-way, what came so far is kept.
    ///
    /// # Errors
    /// [`Fault`], when it does not come to its end.
    pub async fn read(&mut self, body: &mut Body) -> Result<End, Fault> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > self.limit {
            // Whatever becomes of it: the answer is the same.
            if let Ok(Ok(Some(data))) = timeout(BEGINNING, self.next(body)).await {
                self.kept.push(data.slice(..data.len().min(self.limit)), 0);
            }
            return Ok(End::TooLarge);
        }
        let most = body.size_hint().upper().and_then(|most| usize::try_from(most).ok());
        self.announced = (announced, most.unwrap_or(self.limit).min(self.limit));
        while let Some(data) = self.next(body).await? {
            let room = self.limit - self.kept.len();
            let is_over = data.len() > room;
            let data = if is_over { data.slice(..room) } else { data };
            self.grow(data.len()).await?;
            self.kept.push(data, announced);
            if is_over {
                return Ok(End::TooLarge);
            }
        }
        if let Some(member) = &mut self.member {
            member.shrink(self.kept.len());
        }
        Ok(End::Whole)
    }

    /// The next data. A body that is not there yet joins those that are waited for.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, Fault> {
        loop {
            let at_once = body.frame().now_or_never();
            let frame = if let Some(frame) = at_once { frame } else { self.awaited(body).await? };
            match frame.transpose().map_err(Fault::Broken)?.map(Frame::into_data) {
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers say nothing here.
                Some(Err(_trailers)) => {}
                None => return Ok(None),
            }
        }
    }

    async fn awaited(&mut self, body: &mut Body) -> Result<Option<Result<Frame<Bytes>, axum::Error>>, Fault> {
        if self.awaited.is_none() {
            self.awaited = self.activity.as_ref().map(Activity::awaits_a_body);
        }
        if self.member.is_none() {
            self.grow_by(self.kept.len()).await?;
        }
        let gives_way = async {
            match &self.member {
                Some(member) => member.gave_way().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            frame = body.frame() => Ok(frame),
            () = gives_way => Err(Fault::GaveWay),
        }
    }

    async fn grow(&mut self, more: usize) -> Result<(), Fault> {
        let (least, most) = self.announced;
        let whole = self.kept.len() + more;
        match &mut self.member {
            Some(member) if self.has_room => Ok(member.go_on()?),
            member if whole.max(least) > self.medium => {
                let held = if member.is_some() { self.kept.len() } else { 0 };
                self.has_room = true;
                self.grow_by(most - held).await
            }
            Some(_) => self.grow_by(more).await,
            None if whole > self.small => self.grow_by(whole).await,
            None => Ok(()),
        }
    }

    async fn grow_by(&mut self, more: usize) -> Result<(), Fault> {
        let (crowd, spare) = (self.crowd, self.medium);
        let member = self.member.get_or_insert_with(|| crowd.join(Arc::default()));
        Ok(member.grow(more, spare).await?)
    }
}

/// Takes the rest of a body of a review that was answered already, for a while.
pub async fn discard(mut body: Body, limit: usize) {
    let (time, times) = LINGER;
    let mut left = limit.saturating_mul(times);
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    // A client that sends more is cut off.
    let _late = timeout(time, rest).await;
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

    async fn read_six(mut body: Body) -> (Result<End, Fault>, Bytes) {
        let crowd = Crowd::new(9, 1000);
        let mut reading = Reading::new(&crowd, 6, (3, 3), None);
        let end = reading.read(&mut body).await;
        (end, reading.kept.into_bytes())
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
