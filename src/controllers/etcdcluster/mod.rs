//! EtcdCluster: a real etcd, grown, shrunk, healed and upgraded.
//!
//! This much is pure: what a pass knows ([`observation`]) and what it can do ([`effect`]).

pub mod effect;
pub mod observation;
