//! Every limit of the gate, with its unit and its reason.

use std::time::Duration;

use crate::review::Endpoint;

/// The limits of one [`super::Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at a time. One more takes the place of another that can be spared, or else waits. Each is a
    /// file, so the process may not have more of them than it may open files. Each may have some 100 KiB in memory that
    /// nothing else counts: TLS, a head, and what was sent over HTTP/2 and is not read yet.
    pub connections: usize,
    /// Bytes of a review that is validated where it was read. What is larger is validated on a thread of its own, and
    /// holds up no other review there.
    pub inline: usize,
    /// Reviews of more bytes than `inline` that have arrived and are validated, or wait for it, at a time; more are
    /// answered 503 with `Retry-After`, which the API server honours. Smaller ones wait for nothing and need no place.
    pub in_flight: usize,
    /// Reviews of more bytes than `inline` and not large that are validated at a time; more wait.
    pub medium_in_flight: usize,
    /// Large reviews that are validated at a time; more wait. Each may need some ten times its size, up to a limit that
    /// its number of fields and list items sets ([`crate::api::bounded`]).
    pub large_in_flight: usize,
    /// A review whose body has more bytes than this is large. Others find room beside what large ones take.
    pub large: usize,
    /// Bodies and answers whose client is waited for at a time: the one that has stood still for longest gives way.
    pub unread_bodies: usize,
    /// Bytes that bodies take together while they are read and validated, and large answers until they are taken: some
    /// fifteen of the largest reviews of an update. Small answers over HTTP/2 have a quarter of that besides. A large
    /// body has room for all of it before it is read; those for which there is none wait, and one whose client stands
    /// still gives way to them.
    pub bodies: usize,
    /// Bytes of an admission review. The API server takes 3 MiB of an object, and an update holds two.
    pub admission_body: usize,
    /// Bytes of a conversion review.
    pub conversion_body: usize,
    /// From the accept to the end of the TLS handshake. The API server gives up after 10 s too.
    pub handshake: Duration,
    /// From the handshake to the end of the first request's head.
    pub first_header: Duration,
    /// From an answer to the end of the next request's head. The API server keeps connections for 90 s and does not
    /// repeat a POST on one that was closed under it: stay above.
    pub idle: Duration,
    /// For a client to take an answer that is large, or over HTTP/2.
    pub answer: Duration,
    /// How long a drain goes on accepting: until all clients know that this endpoint is gone.
    pub drain_delay: Duration,
    /// From the end of the delay: how long idle connections may stay until their client closes them.
    pub drain_deadline: Duration,
    /// What is left to a connection that is being closed.
    pub close: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            connections: 1024,
            inline: 16 * 1024,
            in_flight: 1024,
            medium_in_flight: cores.clamp(2, 4),
            large_in_flight: 2,
            large: 256 * 1024,
            unread_bodies: 4096,
            bodies: 96 * 1024 * 1024,
            admission_body: 8 * 1024 * 1024,
            conversion_body: 32 * 1024 * 1024,
            handshake: Duration::from_secs(10),
            first_header: Duration::from_secs(10),
            idle: Duration::from_mins(3),
            answer: Duration::from_secs(30),
            drain_delay: Duration::from_secs(12),
            drain_deadline: Duration::from_secs(90),
            close: Duration::from_secs(2),
        }
    }
}

/// Files for all that is no connection of the gate: the health port, the Kubernetes API, certificates, the log.
const OTHER_FILES: usize = 256;

impl Limits {
    /// The same with no more connections than fit beside all else into so many files.
    #[must_use]
    pub fn within(self, files: usize) -> Self {
        let left = files.saturating_sub(OTHER_FILES).max(files / 4).max(1);
        Self { connections: self.connections.min(left), ..self }
    }

    /// Bytes that a review of `endpoint` may have.
    #[must_use]
    pub const fn body(&self, endpoint: Endpoint) -> usize {
        match endpoint {
            Endpoint::Mutate | Endpoint::Validate => self.admission_body,
            Endpoint::Convert => self.conversion_body,
        }
    }
}
