//! The gate over real sockets: what a client meets, whatever the rules say.
//!
//! Answers are scripted by the tests; the rules have their own tests. The clients are reqwest, hyper's HTTP/2 and,
//! for what no proper client does, bare TLS.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts its own tasks"
)]

mod clients;
mod drain;
mod hostile;
mod limits;
mod log;
mod process;
mod program;
mod reviews;
mod support;
mod tls;
mod traces;
