//! Rules in CEL that more than one field or version uses, and their messages.
//!
//! They hold even where the gate does not answer; [`super::validate`] has a twin of each.
//!
//! The API server lets a rule rest while the value that it stands on stays the same. A rule that stands on more than
//! one field therefore says itself what it lets pass: what the stored object has as well.

use crate::api::policy::{Protection, Workload};

/// A rule and its message.
pub type Rule = (&'static str, &'static str);

/// The name of a cluster, on the root. A name never changes: on update there is nothing to say.
pub const NAME: Rule = (
    "oldSelf.hasValue() || self.metadata.name.size() <= 45 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "must be a DNS-1035 label of at most 45 characters: lower-case letters, digits and '-', first a letter",
);

/// A rule on the spec against a state, given as CEL of `self` and of `oldSelf.value()`: it may stay and not come.
macro_rules! unless {
    ($now:literal, $before:literal) => {
        concat!("!(", $now, ") || oldSelf.hasValue() && ", $before)
    };
}

/// A cluster in memory with no members.
pub const STOPPED_MEMORY: Rule = (
    unless!(
        "self.?replicas.orValue(1) == 0 && self.?storage.medium.orValue('') == 'Memory'",
        "oldSelf.value().?replicas.orValue(1) == 0 && oldSelf.value().?storage.medium.orValue('') == 'Memory'"
    ),
    "a cluster in memory cannot be stopped: its data would be gone",
);

/// Passwords without TLS.
pub const READABLE_PASSWORDS: Rule = (
    unless!(
        "self.?auth.enabled.orValue(false) && self.?tls.mode.orValue('') == 'Disabled'",
        "oldSelf.value().?auth.enabled.orValue(false) && oldSelf.value().?tls.mode.orValue('') == 'Disabled'"
    ),
    "authentication needs TLS: passwords would cross the network readable",
);

/// What this release cannot do, on the field that asks for it: one that is stored may stay, none may come. The API
/// server never takes a field for unchanged whose content no schema describes, so the rule says so itself.
pub const UNSUPPORTED: Rule = ("oldSelf.hasValue()", "not supported by this release");

/// How long a member has to stop. Etcd gives the handover of its leadership five seconds and two election timeouts
/// (`ReqTimeout` of `server/config/config.go`). With 0 the API server drops the pod while its process still writes, and
/// the next one could start beside it on the same volume.
pub const GRACE: Rule = (
    "self >= 10 && self <= 3600",
    "must be from 10 to 3600: etcd needs time to hand its leadership over, and with 0 the next pod can start while it still writes",
);

/// A rule on the root against a change of the count that does not go with what was seen of the cluster. The scale
/// subresource shows the webhook nothing but counts; the API server holds its changes to rules as well.
macro_rules! unless_seen {
    (shrinks $count:literal, $seen:literal) => {
        concat!(
            "!(self.?spec.",
            $count,
            ".orValue(0) > 0 && self.?spec.",
            $count,
            ".orValue(0) < oldSelf.?spec.",
            $count,
            ".orValue(0)) || !(",
            $seen,
            ")"
        )
    };
}

/// What is refused while the cluster is being recovered.
pub const RECOVERING: &str = "the cluster is being recovered: wait until that is through";
/// What is refused while fewer members answer than a majority.
pub const WITHOUT_QUORUM: &str = "no member can be removed while the quorum is lost";

/// Changes of `spec.replicas` that what was seen forbids. That a member is being added or removed forbids none: a change
/// of mind is carried out from where the members are.
pub const SEEN: [Rule; 2] = [
    (unless_seen!(shrinks "replicas", "oldSelf.?status.operation.type.orValue('') == 'Recover'"), RECOVERING),
    (
        unless_seen!(
            shrinks "replicas",
            "has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuorumLost' && c.status == 'True')"
        ),
        WITHOUT_QUORUM,
    ),
];

/// The same of `spec.size` in `v1alpha1`, where conditions tell of operations.
pub const SEEN_V1ALPHA1: [Rule; 2] = [
    (
        unless_seen!(
            shrinks "size",
            "has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'Progressing' && c.reason == 'Recovering')"
        ),
        RECOVERING,
    ),
    (
        unless_seen!(
            shrinks "size",
            "has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuorumLost' && c.status == 'True')"
        ),
        WITHOUT_QUORUM,
    ),
];

/// A version of etcd.
pub const VERSION: Rule = (
    "self.matches('^3[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)$')",
    "must be 3.<minor>.<patch> with no leading v, such as 3.6.16",
);

/// A number of bytes. CEL finds whole only what the API server keeps as a machine integer, which ends at 10Ti.
pub const BYTES: Rule = (
    "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0')) \
     && (quantity(string(self)).isInteger() || quantity(string(self)).isGreaterThan(quantity('10Ti')))",
    "must be a whole number of bytes above zero, such as 10Gi, 500M or 1073741824",
);

/// A number of bytes that does not shrink.
pub const GROWS: Rule = (
    "!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",
    "a volume can grow and never shrink",
);

/// A relative path that stays below where it starts.
pub const PATH: Rule =
    ("!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')", "must be relative and without ..");

/// Environment variables of etcd's container.
pub const ENVIRONMENT: Rule = (
    "self.all(variable, !variable.name.startsWith('ETCD_'))",
    "variables that begin with ETCD_ are flags of etcd: use spec.options",
);

/// A cluster that says so is not deleted.
pub const PROTECTION: Protection = Protection {
    // What is stored may be of another type: a spec that is a list has no fields to ask for.
    protected: "has(oldObject.spec) && type(oldObject.spec) == map && has(oldObject.spec.deletionProtection) && \
                oldObject.spec.deletionProtection",
    message: "'the cluster is protected from deletion by spec.deletionProtection; lift it first: kubectl patch \
              etcdcluster ' + oldObject.metadata.name + ' --type=merge -p \\'{\"spec\":{\"deletionProtection\":false}}\\''",
};

/// The members, and the pods of backups.
pub const WORKLOADS: [Workload; 2] = [
    Workload { group: "apps", resource: "statefulsets", asked: "true", field: "spec" },
    Workload {
        group: "batch",
        resource: "cronjobs",
        asked: "has(object.spec) && has(object.spec.backup)",
        field: "spec.backup",
    },
];
