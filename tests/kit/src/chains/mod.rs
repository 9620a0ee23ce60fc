//! Ways from one spec of an EtcdCluster to another, and whether two clusters are alike. Pure.
//!
//! Guarantees: the gate lets each edit of a [`chain`] in, whatever the cluster has come to by then; where no edit is
//! [`chain::Pace::Breaks`], the cluster can get there. [`compare`] calls clusters alike that differ in what no two
//! clusters have in common, each such thing with its reason, and in nothing else.

pub mod chain;
pub mod compare;
