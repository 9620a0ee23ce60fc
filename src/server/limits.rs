//! Every limit of the gate, with its unit and its reason.

use std::time::Duration;

use crate::review::Endpoint;

/// The limits of one [`super::Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at a time; more wait in the kernel.
    pub connections: usize,
    /// Requests worked on at a time; more are answered 503 with `Retry-After`, which the API server honours.
    pub in_flight: usize,
    /// Bytes of a review that is judged where it was read. What is larger is judged on a thread of its own, and holds
    /// up nobody there.
    pub inline: usize,
    /// Reviews of more bytes than `inline` and not large judged at a time; more wait.
    pub medium_in_flight: usize,
    /// Large reviews judged at a time; more wait. Each may need some ten times its size, up to a limit that its
    /// number of fields and list items sets ([`crate::api::bounded`]).
    pub large_in_flight: usize,
    /// A review whose body has more bytes than this is large.
    pub large: usize,
    /// Bytes that the bodies of large reviews may take together while they are read and judged; more wait.
    pub large_bodies: usize,
    /// Bytes of an admission review. The API server takes 3 MiB of an object, and an update holds two.
    pub admission_body: usize,
    /// Bytes of a conversion review.
    pub conversion_body: usize,
    /// From the accept to the end of the TLS handshake. The API server gives up after 10 s too.
    pub handshake: Duration,
    /// From the handshake to the end of the first request's head.
    pub first_header: Duration,
    /// From an answer to the end of the next request's head, and for a client to take its answer. The API server
    /// keeps connections for 90 s and does not repeat a POST on one that was closed under it: stay above.
    pub idle: Duration,
    /// How long a drain goes on accepting: until everybody has heard that this endpoint is gone.
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
            connections: 8192,
            in_flight: 1024,
            inline: 16 * 1024,
            medium_in_flight: cores.clamp(2, 4),
            large_in_flight: 2,
            large: 256 * 1024,
            large_bodies: 96 * 1024 * 1024,
            admission_body: 8 * 1024 * 1024,
            conversion_body: 32 * 1024 * 1024,
            handshake: Duration::from_secs(10),
            first_header: Duration::from_secs(10),
            idle: Duration::from_mins(3),
            drain_delay: Duration::from_secs(12),
            drain_deadline: Duration::from_secs(90),
            close: Duration::from_secs(2),
        }
    }
}

impl Limits {
    /// Bytes that a review of `endpoint` may have.
    #[must_use]
    pub const fn body(&self, endpoint: Endpoint) -> usize {
        match endpoint {
            Endpoint::Mutate | Endpoint::Validate => self.admission_body,
            Endpoint::Convert => self.conversion_body,
        }
    }
}
