//! What the gate's process and the operator's tell each other.

use serde::{Deserialize, Serialize};

/// What the operator says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// It leads, for the so-many-th time, and waits for [`Told::Installed`] of the same number.
    Won(u64),
    /// How its parts are.
    State(Vec<Part>),
    /// Its metrics, in the `OpenMetrics` text format: the answer to [`Told::Page`], in the order of the questions.
    Page(String),
}

/// What the operator is told. The end of all telling means that it has to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// The cluster is as the leader of that number has to have it before it works.
    Installed(u64),
    /// Its metrics are wanted.
    Page,
}

/// One line of `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Why it is not ready.
    pub fault: Option<String>,
}
