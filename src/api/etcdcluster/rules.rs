//! Rules in CEL that more than one field or version has, and what they say.
//!
//! They hold even where the gate does not answer; [`super::validate`] has a twin of each.

/// A rule and its message.
pub type Rule = (&'static str, &'static str);

/// The name of a cluster, on the root.
pub const NAME: Rule = (
    "self.metadata.name.size() <= 45 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "must be a DNS-1035 label of at most 45 characters: lower-case letters, digits and '-', first a letter",
);

/// A version of etcd.
pub const VERSION: Rule = (
    "self.matches('^3[.](0|[1-9][0-9]{0,2})[.](0|[1-9][0-9]{0,3})$')",
    "must be 3.<minor>.<patch> with no leading v, such as 3.6.16",
);

/// A number of bytes.
pub const BYTES: Rule = (
    "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0')) && quantity(string(self)).isInteger()",
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

/// The URL of a store.
pub const ENDPOINT: Rule = (
    "self.matches('^https?://[^@/?# ]+([/?#][^ ]*)?$')",
    "must be a URL such as https://minio.example.com:9000, without credentials in it",
);

/// Environment variables of etcd's container.
pub const ENVIRONMENT: Rule = (
    "self.all(variable, !variable.name.startsWith('ETCD_'))",
    "variables that begin with ETCD_ are flags of etcd: use spec.options",
);
