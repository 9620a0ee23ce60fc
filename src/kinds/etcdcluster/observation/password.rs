//! The password that etcd's user root is to have. Never: the password, or anything made of it.

use serde::{Deserialize, Serialize};

use super::Handle;

/// How the password that a Secret has for root compares with the one that root has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RootPassword {
    /// Etcd takes it.
    Current,
    /// Etcd does not accept it, or does not have authentication enabled yet.
    Outdated {
        /// The Secret that has it.
        secret: Handle,
    },
    /// Root was made as a user that never has a password: etcd drops the one that it is given, and refuses to delete
    /// root while authentication is enabled.
    Barred,
    /// The Secret has none.
    Unreadable(Unreadable),
}

/// Why a Secret has no password for root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unreadable {
    /// There is no such Secret.
    Missing,
    /// It could not be read.
    Unanswered,
    /// It is of a type that is none of passwords.
    OtherType,
    /// Its `username` belongs to another owner.
    OtherUser,
    /// It has no key `password`.
    NoPassword,
    /// Nothing is in it.
    Empty,
    /// It is no text.
    NotText,
    /// It has more bytes than etcd reads.
    TooLong,
}
