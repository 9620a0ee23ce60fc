//! gatehouse: an admission and conversion webhook server for Kubernetes, and an operator, in one binary.
//!
//! At the gate, an HTTPS server defaults, validates and converts custom resources; inside, an operator makes them
//! real. The parts, pure ones first:
//!
//! - [`api`]: what all kinds share at the gate: versions, conversion, defaults and rules. Pure.
//! - [`kinds`]: one folder a kind, with its API, what is decided for it and what carries that out; and their table.
//! - [`review`]: the API server's review protocol, bytes in and bytes out. Pure.
//! - [`server`]: the HTTPS server at the gate.
//! - [`certs`]: the certificate that is served, and what others have to trust.
//! - [`install`]: what the cluster has to know about this gate, written and kept so.
//! - [`controllers`]: the one reconciliation of all kinds.
//! - [`rbac`]: what it may do in a cluster, from which the manifests are printed. Pure.
//! - [`storage`]: objects of any definition, written in its storage version.
//! - [`runtime`]: tasks, leader election, clock, logs and metrics.
//! - [`cli`]: the commands.

pub mod api;
pub mod certs;
pub mod cli;
pub mod controllers;
pub mod install;
pub mod kinds;
pub mod rbac;
pub mod review;
pub mod runtime;
pub mod server;
pub mod storage;

#[cfg(test)]
mod counted;
#[cfg(test)]
mod properties;
