//! Whether etcd kept its word to clients: clients that write beside a test that changes or breaks a cluster, a record
//! of what they were answered, and a check of that record against the history that etcd tells.
//!
//! Guarantees: an acknowledged write that is missing, changed or twice in the history, a read that is not what the
//! history says, and an order that contradicts what was acknowledged before are each named as a violation. A call
//! whose outcome is unknown may have happened, once, or not; nothing is concluded from it but that.
//!
//! Assumes: all that happens to keys of the given prefix is done by the one [`Writer`], and the history since its start
//! is not compacted when the check reads it. etcd puts all writes in one order of revisions and says with every answer
//! at which it stood, so no order has to be searched for: the check takes n log n.
//!
//! Never: sends a write again, for another attempt is another value; and judges how fast a cluster is. A minute without
//! an acknowledged change is an outage, which a test may rule out.

pub mod check;
pub mod record;
mod watch;
pub mod writer;
