//! What clients asked for and were answered, and what etcd says happened.

/// Each is written once at most, in the whole of a history.
pub type Value = u64;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// When it was sent, in nanoseconds since the writer's start.
    pub start: u64,
    /// When its end was known.
    pub end: u64,
    /// The key, one of a few.
    pub key: u8,
    /// What was asked for.
    pub action: Action,
    /// What was said.
    pub answer: Answer,
}

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To write a value.
    Put(Value),
    /// To write a value if the key's last change was at this revision; 0 if it is not there.
    CompareAndPut {
        /// The value.
        value: Value,
        /// The revision.
        unchanged_since: i64,
    },
    /// To delete the key.
    Delete,
    /// To read it linearizably.
    Read,
}

impl Action {
    /// The value that it would write.
    #[must_use]
    pub const fn value(self) -> Option<Value> {
        match self {
            Self::Put(value) | Self::CompareAndPut { value, .. } => Some(value),
            Self::Delete | Self::Read => None,
        }
    }
}

/// How a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was done, at this revision.
    Done(i64),
    /// Nothing was there to be done: the comparison did not hold, or no key was there to delete.
    Nothing(i64),
    /// What was read: the revision of the whole, and value and last change of the key if it was there.
    Read(i64, Option<(Value, i64)>),
    /// It surely was not done.
    Failed,
    /// It may have been done or not.
    Unknown,
}

impl Answer {
    /// The revision at which etcd stood, as far as the answer says.
    #[must_use]
    pub const fn revision(self) -> Option<i64> {
        match self {
            Self::Done(revision) | Self::Nothing(revision) | Self::Read(revision, _) => Some(revision),
            Self::Failed | Self::Unknown => None,
        }
    }
}

/// A change of a key, as etcd's history has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Its place in the history.
    pub revision: i64,
    /// The key.
    pub key: u8,
    /// What was written; none for a deletion.
    pub value: Option<Value>,
}
