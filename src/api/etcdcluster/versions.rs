//! The versions of etcd that this release knows, and which of them lead to which.
//!
//! Sources: etcd's CHANGELOG and its upgrade guides (etcd.io/docs, op-guide and upgrades).

use semver::Version;

/// The annotation by which members may be brought one minor down. Only `true` does.
pub const ALLOW_DOWNGRADE: &str = "gatehouse.dev/allow-downgrade";

/// One minor of etcd 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minor {
    /// The minor: 6 stands for 3.6.
    pub minor: u64,
    /// The newest patch that this release was tested with.
    pub newest_patch: u64,
    /// The least patch of the minor below from which an upgrade to this one is safe; and to which members of this one are
    /// brought down, so that they can come back.
    pub from_patch: Option<u64>,
    /// Patches below this one lack the fix of a known loss of data.
    pub sound_patch: u64,
    /// Whether upstream has stopped to mend it.
    pub end_of_life: bool,
}

/// Every minor that this release supports, oldest first.
pub const MINORS: &[Minor] = &[
    // Upstream keeps the newest minor and the one before it (etcd.io, op-guide/versioning). etcd-io/etcd#20967:
    // members removed long ago come back after an upgrade from 3.5 below 3.5.26.
    Minor { minor: 5, newest_patch: 33, from_patch: None, sound_patch: 26, end_of_life: true },
    // upgrade_3_6: all members at 3.5.32 or later.
    Minor { minor: 6, newest_patch: 16, from_patch: Some(32), sound_patch: 0, end_of_life: false },
    // upgrade_3_7: all members at 3.6.11 or later.
    Minor { minor: 7, newest_patch: 3, from_patch: Some(11), sound_patch: 0, end_of_life: false },
];

/// The newest version that this release supports: what an absent `spec.version` means.
pub const NEWEST: &str = "3.7.3";

/// The minors, as messages list them.
pub const SUPPORTED: &[&str] = &["3.5.*", "3.6.*", "3.7.*"];

/// The first minor whose members can be brought one minor down (etcd.io, downgrades).
pub const FIRST_DOWNGRADE: u64 = 6;

/// Reads a version of etcd: `3.minor.patch`, nothing before or behind it.
#[must_use]
pub fn parse(text: &str) -> Option<Version> {
    let version = Version::parse(text).ok()?;
    (version.major == 3 && version.pre.is_empty() && version.build.is_empty()).then_some(version)
}

/// Reads a version that etcd reports, which may lack its patch, as a cluster version such as `3.6` does.
#[must_use]
pub fn parse_reported(text: &str) -> Option<Version> {
    parse(text).or_else(|| parse(&format!("{text}.0")))
}

/// What is known of a version's minor; nothing where it is not supported.
#[must_use]
pub fn minor_of(version: &Version) -> Option<&'static Minor> {
    MINORS.iter().find(|one| one.minor == version.minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_last_of_the_table() {
        let newest = parse(NEWEST).unwrap();
        let last = MINORS.last().unwrap();
        assert_eq!((newest.minor, newest.patch), (last.minor, last.newest_patch));
    }

    #[test]
    fn the_table_and_what_messages_list_agree() {
        let listed: Vec<String> = MINORS.iter().map(|one| format!("3.{}.*", one.minor)).collect();
        assert_eq!(listed, SUPPORTED);
    }

    #[test]
    fn only_three_plain_numbers_are_a_version() {
        for text in ["3.6.16", "3.5.0"] {
            assert!(parse(text).is_some(), "{text}");
        }
        for text in
            ["v3.6.16", "3.6", "3", "", "4.0.0", "3.6.16-rc.1", "3.6.16+x", "3.06.1", "latest", " 3.6.1"]
        {
            assert!(parse(text).is_none(), "{text}");
        }
        assert_eq!(parse_reported("3.6"), parse("3.6.0"));
    }
}
