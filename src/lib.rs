//! gatehouse: it stands at the gate of a cluster, and works inside.
//!
//! At the gate, an HTTPS server defaults, validates and converts custom resources; inside, an operator makes them
//! real. The parts, pure ones first:
//!
//! - [`api`]: the kinds, their versions, conversion, defaults and rules. Pure.
//! - [`review`]: the API server's review protocol, bytes in and bytes out. Pure.
//! - [`kinds`]: the one table of kinds, from which everything else is derived.
//! - [`certs`]: the certificate that is served, and what others have to trust.
//! - [`install`]: what the cluster is told about this gate, and that it stays so.
//! - [`controllers`]: the operator: what works on the objects that were let in.
//! - [`etcd`]: a client of etcd, for one member.
//! - [`backup`]: what takes a backup of etcd into a folder.
//! - [`member`]: what runs in the pod of a member of etcd.
//! - [`rights`]: what it may do in a cluster, from which the manifests are printed. Pure.

pub mod api;
pub mod backup;
pub mod certs;
pub mod cli;
pub mod controllers;
pub mod etcd;
pub mod install;
pub mod kinds;
pub mod member;
pub mod rbac;
pub mod review;
pub mod runtime;
pub mod server;

#[cfg(test)]
mod properties;
