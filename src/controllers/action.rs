//! The actions of a plan, and their results.
//!
//! Guarantees: an action without fail points does not compile; what has failed says whether to try again is of use.

use serde::{Deserialize, Serialize};

use super::fail_points::FailPoints;
use super::manifest::Place;
use super::outcome::{Class, Error};

/// One thing that a plan may ask for.
pub trait Action: Send + Sync {
    /// The fail points around it.
    fn points(&self) -> FailPoints;

    /// What it is called in logs and metrics.
    fn name(&self) -> &'static str {
        self.points().name()
    }

    /// Whether actions after it need what it does.
    fn holds_up_others(&self) -> bool {
        true
    }

    /// Whether the log says that it was carried out.
    fn is_logged(&self) -> bool {
        true
    }

    /// Whether the status says that it is refused. Not where a condition of its own does.
    fn reports_refusal(&self) -> bool {
        true
    }
}

/// The result of an action that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Whether something is otherwise now.
    pub changed: bool,
    /// The resource version of the object that was written, where it is of use.
    pub resource_version: Option<String>,
}

/// A write that the API server refuses until a user changes something: a quota, a policy, a missing right.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RefusedWrite {
    /// The action that it was a part of.
    pub action: String,
    /// The API server's message.
    pub why: String,
}

impl RefusedWrite {
    /// Whether a right is missing, as against a quota or a policy that is in the way: the words of the API server's
    /// authorizer (kubernetes, `staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`, `forbiddenMessage`),
    /// behind what it says before them, or behind what [`Error::said`] does.
    #[must_use]
    pub fn lacks_right(&self) -> bool {
        let begins = [" is forbidden: User \"", " (403): User \""];
        begins.iter().any(|begin| self.why.contains(begin)) && self.why.contains("\" cannot ")
    }
}

/// Why an action was not carried out, or not surely.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something has moved since it was decided on.
    #[error("{0}")]
    Moved(String),
    /// This installation may not do it.
    #[error("{0}")]
    Forbidden(&'static str),
    /// What is to be created has the name of an object of another owner.
    #[error("{0} is there and belongs to another owner: delete it, or give this object another name")]
    Taken(Box<Place>),
    /// Another server than the API server refused, or its answer was lost.
    #[error("{source}")]
    Elsewhere {
        /// Its message.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// Whether it surely has not been done.
        is_undone: bool,
    },
    /// The API server refused, or its answer was lost.
    #[error("{}", .0.said())]
    Api(#[from] Error),
}

/// The result of an action, in one word for metrics and traces.
#[must_use]
pub const fn result(done: Result<&Executed, &Failure>) -> &'static str {
    match done {
        Ok(_) => "done",
        Err(Failure::Moved(_)) => "refused",
        Err(Failure::Api(_) | Failure::Elsewhere { .. } | Failure::Forbidden(_) | Failure::Taken(_)) => {
            "failed"
        }
    }
}

impl Failure {
    /// Something has moved.
    pub fn moved(why: impl Into<String>) -> Self {
        Self::Moved(why.into())
    }

    /// Whether it fails again until a user changes something.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Forbidden(_) | Self::Taken(_) => true,
            Self::Api(error) => error.class() == Class::Permanent,
            Self::Moved(_) | Self::Elsewhere { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::runtime::call;

    /// A write that is refused with these words.
    fn refused(message: &str) -> RefusedWrite {
        let status = Status {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: message.to_owned(),
            ..Status::default()
        };
        let source = call::Error::Refused(Box::new(status));
        let failure = Failure::from(Error { verb: "apply", object: "services a/b".to_owned(), source });
        RefusedWrite { action: "apply-services".to_owned(), why: failure.to_string() }
    }

    #[test]
    fn a_missing_right_is_told_from_what_else_is_forbidden() {
        let right = "services \"b\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch resource \"services\" in \
                     API group \"\" in the namespace \"a\"";
        assert!(refused(right).lacks_right(), "{}", refused(right).why);
        let read = RefusedWrite { action: "read services".to_owned(), why: right.to_owned() };
        assert!(read.lacks_right());
        let quota = refused("services \"b\" is forbidden: exceeded quota: services=1");
        assert!(!quota.lacks_right(), "{}", quota.why);
    }
}
