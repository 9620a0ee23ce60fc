//! EtcdCluster: what it looks like in each version, what its fields mean, and who judges them.

pub mod convert;
pub mod v1;
pub mod v1alpha1;
