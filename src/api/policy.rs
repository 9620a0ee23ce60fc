//! Rules in CEL that the API server's own policies enforce on our kinds, also while the gate does not answer.
//!
//! `object` and `oldObject` are in the hub version there.

/// Objects that must not be deleted.
#[derive(Clone, Copy, Debug)]
pub struct Protection {
    /// CEL of `oldObject`: it is protected.
    pub protected: &'static str,
    /// CEL: the message for its author.
    pub message: &'static str,
}

/// A workload that is made for an object. Its pods may do whatever pods may: only an author who may create such a
/// workload may ask for it.
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

/// What an author has to be allowed beside the workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorRule {
    /// CEL of `object`, `oldObject` (null at creation) and `authorizer`: it is so. The API server lets one expression
    /// ask the authorizer twice at most.
    pub holds: &'static str,
    /// The message where it is not: the field and what is missing.
    pub message: &'static str,
}
