//! What holds of our kinds also while the gate does not answer: rules for the API server's own policies, in CEL.
//!
//! `object` and `oldObject` are in the hub version there.

/// Objects that must not be deleted.
#[derive(Clone, Copy, Debug)]
pub struct Protection {
    /// CEL of `oldObject`: it is protected.
    pub protected: &'static str,
    /// CEL: what its author is told.
    pub message: &'static str,
}

/// A workload that is made for an object, with all that pods may do. Who may not make it may not have it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its API group.
    pub group: &'static str,
    /// Its plural name.
    pub resource: &'static str,
    /// CEL of `object`: it asks for such a workload.
    pub asked: &'static str,
    /// The field that asks.
    pub field: &'static str,
}
