//! What runs: tasks, readiness, leadership, shutdown, time, logs and metrics.
//!
//! Guarantees: every task is known by name and joined; who is not ready is listed; a shutdown drains first and
//! stops second. Assumes: a multi-threaded tokio runtime, beside which [`isolated`] makes others. Never: knows what the
//! tasks are for.
//!
//! Only this folder may spawn ([`Tasks`], [`Supervisor`]) and only [`clock`] asks the time.

pub mod call;
pub mod clock;
pub mod fail_point;
pub mod files;
mod isolated;
pub mod leader;
mod lines;
pub mod metrics;
pub mod otlp;
pub mod readiness;
pub mod signals;
pub mod supervisor;
mod tasks;
pub mod telemetry;

pub use isolated::isolated;
pub use metrics::Metrics;
pub use readiness::{Readiness, Ready};
pub use supervisor::{Life, Supervisor};
pub use tasks::{Tasks, blocking};
