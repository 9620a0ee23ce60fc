//! The ordinal of a member.

use serde::{Deserialize, Serialize};

/// The number at the end of a pod's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ordinal(pub u32);
