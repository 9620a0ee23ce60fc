//! EtcdCluster: a real etcd, grown, shrunk, healed and upgraded.
//!
//! This much is pure: what a pass knows ([`observation`]), what it can do ([`effect`]), and what it does ([`plan`]).

pub mod effect;
pub mod observation;
pub mod plan;
