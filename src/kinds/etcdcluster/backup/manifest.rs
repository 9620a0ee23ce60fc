//! The description of a backup: in a file beside it, and in the report of its Job. Pure.
//!
//! Guarantees: a report is one line that a kubelet takes as a termination message.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Bytes of a termination message that a kubelet reads.
pub const LONGEST_REPORT: usize = 4096;

/// How the name of a snapshot ends.
pub const SNAPSHOT: &str = ".db";

/// How the name of its manifest ends.
pub const MANIFEST: &str = ".json";

/// The EtcdCluster that a backup is of.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid, which distinguishes its backups from those of another one of that name.
    pub uid: String,
}

/// A backup that was verified.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Name of the snapshot's file, in the same folder.
    pub name: String,
    /// When it was begun.
    pub time: Timestamp,
    /// Whose it is.
    pub cluster: Owner,
    /// Identity of the etcd cluster, in hexadecimal.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// URL of the member that it was taken of.
    pub endpoint: String,
    /// Version of etcd that this member ran.
    pub version: String,
    /// Revision that this member had when the snapshot began: it holds this one, and perhaps some that followed.
    pub revision: i64,
    /// SHA-256 of the file, in hexadecimal, as `sha256sum` prints it.
    pub sha256: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Which backup of its folder it is, in the order in which they were taken; 0: an earlier release took it.
    #[serde(default)]
    pub number: u64,
    /// Whether something else than the schedule asked for it: a person, or an upgrade.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
}

/// The result of an attempt.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(tag = "result")]
pub enum Report {
    /// A backup was taken and verified.
    Succeeded(Box<Success>),
    /// None was.
    Failed {
        /// Why.
        message: String,
    },
}

/// A backup that was taken and verified.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Success {
    /// The backup.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// Older ones that were deleted, for nothing asked to keep them.
    pub removed: usize,
    /// Why older ones could not be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_removed: Option<String>,
}

impl Report {
    /// The report as one line of JSON, its message cut where it would be too long.
    #[must_use]
    pub fn line(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        if text.len() <= LONGEST_REPORT {
            return text;
        }
        let halved = |message: &str| {
            let end = message.floor_char_boundary(message.len() / 2);
            message.get(..end).unwrap_or_default().to_owned()
        };
        match self {
            Self::Failed { message } if !message.is_empty() => {
                Self::Failed { message: halved(message) }.line()
            }
            Self::Succeeded(success) if success.not_removed.as_ref().is_some_and(|why| !why.is_empty()) => {
                let not_removed = success.not_removed.as_deref().map(halved);
                Self::Succeeded(Box::new(Success { not_removed, ..(**success).clone() })).line()
            }
            _ => text,
        }
    }

    /// The report of a Job; none where its message is something else.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text.trim()).ok()
    }
}

/// What the files of a backup are called, without their ends: by its time, so that a listing is in order, and its
/// revision.
#[must_use]
pub fn stem(time: Timestamp, revision: i64) -> String {
    format!("{}-r{revision}", time.strftime("%Y-%m-%dT%H-%M-%S%.3fZ"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn success() -> Success {
        let owner = Owner { namespace: "a".into(), name: "b".into(), uid: "c".into() };
        let manifest = Manifest {
            name: "2026-11-22T01-02-03.456Z-r7.db".into(),
            time: Timestamp::from_millisecond(1_795_309_323_456).unwrap(),
            cluster: owner,
            cluster_id: "cdf818194e3a8c32".into(),
            endpoint: "https://b-0.b.a.svc:2379".into(),
            version: "3.6.16".into(),
            revision: 7,
            sha256: "00".repeat(32),
            size: 20512,
            number: 3,
            on_demand: false,
        };
        Success { manifest, removed: 2, not_removed: None }
    }

    #[test]
    fn a_report_is_one_line_that_reads_back() {
        for report in
            [Report::Succeeded(Box::new(success())), Report::Failed { message: "a \"b\"\nc".into() }]
        {
            let line = report.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Report::read(&format!("{line}\n")), Some(report));
        }
        assert_eq!(Report::read("Error: no"), None);
    }

    #[test]
    fn a_report_fits_a_termination_message_whatever_it_has_to_say() {
        let long = "\u{1}ä".repeat(3000);
        let told = Success { not_removed: Some(long.clone()), ..success() };
        for report in [Report::Failed { message: long }, Report::Succeeded(Box::new(told))] {
            let line = report.line();
            assert!(line.len() <= LONGEST_REPORT && line.len() > LONGEST_REPORT / 3, "{}", line.len());
            assert!(Report::read(&line).is_some(), "{line}");
        }
    }

    #[test]
    fn names_tell_when_and_are_in_order() {
        let at = |millisecond| stem(Timestamp::from_millisecond(millisecond).unwrap(), 7);
        assert_eq!(at(1_795_309_323_456), "2026-11-22T01-02-03.456Z-r7");
        assert!(at(1_795_309_323_000) < at(1_795_309_323_001));
    }
}
