//! Why a call failed, and whether it may have been done all the same.
//!
//! What etcd says is recognized by its text, not by its gRPC code: between 3.5 and 3.7 the codes of some errors
//! changed ("rpc not supported for learner" was Unavailable and is FailedPrecondition), and two reach clients as
//! Unknown. The texts are those of `api/v3rpc/rpctypes/error.go` and have not changed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy;
use tonic::Code;

/// What etcd's own errors begin with. Where 3.5 asks whether a caller may maintain a member, it passes the error of its
/// store of users on as it is.
const PREFIXES: [&str; 2] = ["etcdserver: ", "auth: "];

/// For a connection that ended without a reason.
const CLOSED: &str = "the connection closed";

/// A call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to {doing} at {endpoint}: {reason}")]
pub struct Error {
    doing: &'static str,
    endpoint: Arc<str>,
    reason: Reason,
}

/// Whether a call that failed may have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It surely had none, and never will.
    None,
    /// It may have had one, or may have it yet.
    Unknown,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// etcd refused and did nothing.
    #[error("{0}")]
    Refused(Refusal),
    /// There is no connection, and the request did not leave.
    #[error("{0}")]
    Unreachable(String),
    /// The request was sent, and its outcome is unknown.
    #[error("{0}")]
    Unsure(Doubt),
}

/// What makes an outcome unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// There was no answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Deadline(Duration),
    /// The member sees no leader.
    #[error("etcd has no leader")]
    NoLeader,
    /// Another member became the leader meanwhile.
    #[error("the leader changed")]
    LeaderChanged,
    /// The member is ending.
    #[error("the member is ending")]
    Stopped,
    /// The member waited in vain for the others; etcd's words.
    #[error("{0}")]
    TimedOut(String),
    /// The connection broke.
    #[error("{0}")]
    Broken(String),
    /// Words of etcd's that are not known here, with the gRPC code.
    #[error("{message} ({code:?})")]
    Other {
        /// The gRPC code, a number of its specification.
        code: Code,
        /// Its message.
        message: String,
    },
}

/// The refusals that are known: a name, and etcd's words for it after "etcdserver: ".
macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $words:literal,)*) => {
        /// What etcd says no to, before or while it applies a request, and without an effect. The names are those of
        /// `api/v3rpc/rpctypes/error.go`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Refusal {
            $($(#[$doc])* $name,)*
        }

        impl Refusal {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// etcd's words for it, less its prefix.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

refusals! {
    /// ErrUnhealthy: the change could cost the quorum, or this member has not been connected to enough of the others
    /// for the five seconds that etcd asks for.
    Unhealthy = "unhealthy cluster",
    /// ErrMemberNotEnoughStarted: some member has been added and not started.
    NotEnoughStartedMembers = "re-configuration failed due to not enough started members",
    /// ErrTooManyLearners: there is a learner already, and one is all that etcd allows.
    TooManyLearners = "too many learner members in cluster",
    /// ErrPeerURLExist: a member with this peer URL is there. After an answer that was lost it is one's own.
    PeerUrlExists = "Peer URLs already exists",
    /// ErrMemberExist: a member with this ID is there. etcd makes an ID of the peer URLs and the second, so a member
    /// that is added twice within one is this.
    MemberExists = "member ID already exist",
    /// ErrMemberNotFound: no member has this ID. etcd says the same of one that has been removed (ErrIDRemoved).
    MemberNotFound = "member not found",
    /// ErrMemberBadURLs: a peer URL is none.
    BadPeerUrls = "given member URLs are invalid",
    /// ErrLearnerNotReady: the learner lacks too much of what the leader has; it is asked again later.
    LearnerNotReady = "can only promote a learner member which is in sync with leader",
    /// ErrMemberNotLearner: the member votes already.
    MemberNotLearner = "can only promote a learner member",
    /// ErrClusterIDMismatch: the request was meant for another cluster.
    ClusterIdMismatch = "cluster ID mismatch",

    /// ErrNotLeader: this member does not lead.
    NotLeader = "not leader",
    /// ErrBadLeaderTransferee: the member that is to lead cannot.
    BadLeaderTransferee = "bad leader transferee",
    /// ErrNotSupportedForLearner: a learner answers Status and serializable reads alone.
    NotSupportedForLearner = "rpc not supported for learner",
    /// ErrNotCapable: the version that the members agreed on is older than the call.
    NotCapable = "not capable",

    /// ErrCompacted: the revision is gone.
    Compacted = "mvcc: required revision has been compacted",
    /// ErrFutureRev: the revision has not come yet, at this member.
    FutureRevision = "mvcc: required revision is a future revision",
    /// ErrNoSpace: the database is at its quota.
    NoSpace = "mvcc: database space exceeded",
    /// ErrCorrupt: the members' data differ, and nothing is written before a person has looked.
    Corrupt = "corrupt cluster",
    /// ErrKeyNotFound: the key to update is not there.
    KeyNotFound = "key not found",
    /// ErrEmptyKey: a key is needed.
    EmptyKey = "key is not provided",
    /// ErrDuplicateKey: a transaction writes a key twice.
    DuplicateKey = "duplicate key given in txn request",
    /// ErrTooManyOps: a transaction has too many parts.
    TooManyOperations = "too many operations in txn request",
    /// ErrRequestTooLarge: the request is larger than etcd takes.
    RequestTooLarge = "request is too large",
    /// ErrTooManyRequests: too much is waiting to be applied.
    TooManyRequests = "too many requests",

    /// ErrInvalidDowngradeTargetVersion: only the next older minor will do.
    InvalidDowngradeTarget = "invalid downgrade target version",
    /// ErrWrongDowngradeVersionFormat: the version is none.
    WrongDowngradeVersionFormat = "wrong downgrade target version format",
    /// ErrDowngradeInProcess: a downgrade is under way.
    DowngradeInProcess = "cluster has a downgrade job in progress",
    /// ErrNoInflightDowngrade: no downgrade is under way.
    NoDowngradeInProcess = "no inflight downgrade job",
    /// ErrClusterVersionUnavailable: the members have not agreed on a version yet.
    ClusterVersionUnavailable = "cluster version not found during downgrade",

    /// ErrRootUserNotExist: there is no user root, without which authentication is not turned on.
    RootUserMissing = "root user does not exist",
    /// ErrRootRoleNotExist: the user root has not the role root.
    RootRoleMissing = "root user does not have root role",
    /// ErrUserAlreadyExist: the user is there.
    UserExists = "user name already exists",
    /// ErrUserEmpty: the user needs a name; also the answer to a caller without one, once authentication is on.
    UserEmpty = "user name is empty",
    /// ErrUserNotFound: there is no such user.
    UserNotFound = "user name not found",
    /// ErrRoleAlreadyExist: the role is there.
    RoleExists = "role name already exists",
    /// ErrRoleNotFound: there is no such role.
    RoleNotFound = "role name not found",
    /// ErrRoleEmpty: the role needs a name.
    RoleEmpty = "role name is empty",
    /// ErrAuthFailed: user or password are wrong.
    AuthFailed = "authentication failed, invalid user ID or password",
    /// ErrNoPasswordUser of its store of users: the user never has a password.
    NoPasswordUser = "authentication failed, password was given for no password user",
    /// ErrPermissionNotGiven: there is no permission in the request.
    PermissionNotGiven = "permission not given",
    /// ErrPermissionDenied: the caller may not do this.
    PermissionDenied = "permission denied",
    /// ErrRoleNotGranted: the user has not this role.
    RoleNotGranted = "role is not granted to the user",
    /// ErrPermissionNotGranted: the role has not this permission.
    PermissionNotGranted = "permission is not granted to the role",
    /// ErrAuthNotEnabled: authentication is off.
    AuthNotEnabled = "authentication is not enabled",
    /// ErrInvalidAuthToken: the token is not, or no longer, known.
    InvalidAuthToken = "invalid auth token",
    /// ErrInvalidAuthMgmt: root cannot be taken away while authentication is on.
    InvalidAuthManagement = "invalid auth management",
    /// ErrAuthOldRevision: users or roles changed while the request was under way.
    AuthOldRevision = "revision of auth store is old",
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.words())
    }
}

impl Error {
    pub(super) const fn new(doing: &'static str, endpoint: Arc<str>, reason: Reason) -> Self {
        Self { doing, endpoint, reason }
    }

    /// The URL of the member that was asked.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Why it failed.
    #[must_use]
    pub const fn reason(&self) -> &Reason {
        &self.reason
    }

    /// What etcd refused, if it did.
    #[must_use]
    pub const fn refusal(&self) -> Option<Refusal> {
        match self.reason {
            Reason::Refused(refusal) => Some(refusal),
            Reason::Unreachable(_) | Reason::Unsure(_) => None,
        }
    }

    /// Whether what was asked for may have been done.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self.reason {
            Reason::Refused(_) | Reason::Unreachable(_) => Outcome::None,
            Reason::Unsure(_) => Outcome::Unknown,
        }
    }
}

impl Reason {
    /// What a gRPC status means for a call that had so much time, over a connection with these last words.
    pub(super) fn of(status: &tonic::Status, limit: Duration, last_words: Option<String>) -> Self {
        if let Some(words) = PREFIXES.iter().find_map(|prefix| status.message().strip_prefix(prefix)) {
            return Self::of_words(status.code(), words);
        }
        if let Some(error) = std::error::Error::source(status) {
            return if chain(error).any(is_no_connection) {
                Self::Unreachable(causes(error))
            } else if chain(error).any(is_no_longer_connected) {
                Self::Unreachable(last_words.unwrap_or_else(|| CLOSED.to_owned()))
            } else {
                Self::Unsure(Doubt::Broken(with(causes(error), last_words)))
            };
        }
        Self::Unsure(match status.code() {
            Code::DeadlineExceeded => Doubt::Deadline(limit),
            Code::Unavailable => Doubt::Broken(status.message().to_owned()),
            code => Doubt::Other { code, message: status.message().to_owned() },
        })
    }

    fn of_words(code: Code, words: &str) -> Self {
        if let Some(refusal) = Refusal::ALL.iter().find(|refusal| refusal.words() == words) {
            return Self::Refused(*refusal);
        }
        Self::Unsure(match words {
            "no leader" => Doubt::NoLeader,
            "leader changed" => Doubt::LeaderChanged,
            "server stopped" => Doubt::Stopped,
            _ if words.starts_with("request timed out") => Doubt::TimedOut(words.to_owned()),
            _ => Doubt::Other { code, message: words.to_owned() },
        })
    }
}

/// Whether an error of the transport is that no connection could be made.
fn is_no_connection(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
}

/// Whether it is that the connection ended before hyper took the request from its queue, or let anything in there.
fn is_no_longer_connected(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<hyper::Error>().is_some_and(|error| error.is_canceled() || error.is_closed())
}

/// What an error of the transport was caused by, once each; itself if by nothing.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    // hyper's client says "client error (Connect)" and the like.
    for cause in chain(error).filter(|error| !error.is::<legacy::Error>()).map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else {
            text = with(text, Some(cause));
        }
    }
    if text.is_empty() { error.to_string() } else { text }
}

/// A text and what it was caused by, unless it says so already.
fn with(mut text: String, cause: Option<String>) -> String {
    if let Some(cause) = cause.filter(|cause| !text.contains(cause)) {
        text.extend([": ", &cause]);
    }
    text
}

fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    fn of(code: Code, message: &str) -> Reason {
        Reason::of(&tonic::Status::new(code, message), LIMIT, None)
    }

    #[test]
    fn a_refusal_is_known_by_its_words_whatever_its_code() {
        for code in [Code::Unknown, Code::FailedPrecondition, Code::Unavailable] {
            for refusal in Refusal::ALL {
                let reason = of(code, &format!("etcdserver: {refusal}"));
                assert_eq!(reason, Reason::Refused(*refusal));
            }
        }
    }

    #[test]
    fn what_the_store_of_users_says_is_a_refusal_too() {
        assert_eq!(of(Code::Unknown, "auth: permission denied"), Reason::Refused(Refusal::PermissionDenied));
        assert_eq!(of(Code::Unknown, "auth: user name is empty"), Reason::Refused(Refusal::UserEmpty));
        assert_eq!(of(Code::Unknown, "auth: invalid auth token"), Reason::Refused(Refusal::InvalidAuthToken));
    }

    #[test]
    fn no_two_refusals_have_the_same_words() {
        let mut words: Vec<_> = Refusal::ALL.iter().map(|refusal| refusal.words()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Refusal::ALL.len());
    }

    #[test]
    fn a_learner_that_lags_is_not_one_that_votes_already() {
        let lags = "etcdserver: can only promote a learner member which is in sync with leader";
        assert_eq!(of(Code::FailedPrecondition, lags), Reason::Refused(Refusal::LearnerNotReady));
        let votes = "etcdserver: can only promote a learner member";
        assert_eq!(of(Code::FailedPrecondition, votes), Reason::Refused(Refusal::MemberNotLearner));
    }

    #[test]
    fn what_the_member_gave_up_on_is_in_doubt() {
        let words = "request timed out, possibly due to previous leader failure";
        assert_eq!(
            of(Code::Unavailable, &format!("etcdserver: {words}")),
            Reason::Unsure(Doubt::TimedOut(words.to_owned()))
        );
        assert_eq!(of(Code::Unavailable, "etcdserver: leader changed"), Reason::Unsure(Doubt::LeaderChanged));
        assert_eq!(of(Code::Unavailable, "etcdserver: no leader"), Reason::Unsure(Doubt::NoLeader));
        assert_eq!(of(Code::Unavailable, "etcdserver: server stopped"), Reason::Unsure(Doubt::Stopped));
    }

    #[test]
    fn what_is_not_known_is_in_doubt_and_keeps_its_words() {
        let reason = of(Code::Unknown, "raft: proposal dropped");
        let doubt = Doubt::Other { code: Code::Unknown, message: "raft: proposal dropped".to_owned() };
        assert_eq!(reason, Reason::Unsure(doubt));
        assert_eq!(
            of(Code::DeadlineExceeded, "context deadline exceeded"),
            Reason::Unsure(Doubt::Deadline(LIMIT))
        );
        assert_eq!(
            of(Code::Unavailable, "connection reset"),
            Reason::Unsure(Doubt::Broken("connection reset".to_owned()))
        );
    }

    #[test]
    fn an_error_says_what_was_done_where_and_what_came_of_it() {
        let reason = Reason::Refused(Refusal::TooManyLearners);
        let error = Error::new("add a member", "http://127.0.0.1:2379".into(), reason);
        assert_eq!(
            error.to_string(),
            "failed to add a member at http://127.0.0.1:2379: too many learner members in cluster"
        );
        assert_eq!((error.refusal(), error.outcome()), (Some(Refusal::TooManyLearners), Outcome::None));
    }
}
