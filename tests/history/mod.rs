//! Whether etcd kept its word to clients: a writer beside a test that changes or breaks a cluster, a record of what it
//! was told, and a check of that record against what etcd says happened.
//!
//! Guarantees: an acknowledged write that is missing, changed or twice in the history, a read that is not what the
//! history says, and an order that contradicts what was acknowledged before are each named as a violation. A call
//! whose outcome is unknown may have happened, once, or not; nothing is concluded from it but that.
//!
//! Assumes: all that happens to keys of the given prefix is done by the one [`Writer`], and the history since its start
//! is not compacted. etcd puts all writes in one order of revisions and says with every answer at which it stood, so
//! no order has to be searched for: the check takes n log n.
//!
//! Never: sends a write again. Another attempt is another value.

pub mod check;
pub mod record;
mod watch;
pub mod writer;
