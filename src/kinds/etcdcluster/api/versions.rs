//! The versions of etcd that this release knows, and which upgrades are possible between them.
//!
//! Sources: etcd's CHANGELOG and its upgrade guides (etcd.io/docs, op-guide and upgrades).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The annotation by which members may be brought one minor down. Only `true` does.
pub const ALLOW_DOWNGRADE: &str = "gatehouse.dev/allow-downgrade";

/// A version of etcd 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// The minor.
    pub minor: u64,
    /// The patch.
    pub patch: u64,
}

impl Version {
    /// 3.`minor`.`patch`.
    #[must_use]
    pub const fn new(minor: u64, patch: u64) -> Self {
        Self { minor, patch }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "3.{}.{}", self.minor, self.patch)
    }
}

/// One minor of etcd 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minor {
    /// The minor: 6 stands for 3.6.
    pub minor: u64,
    /// The newest patch that this release was tested with.
    pub newest_patch: u64,
    /// The least patch of the minor below from which an upgrade to this one is safe; and to which members of this one
    /// are brought down, so that they can come back.
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
    let version = semver::Version::parse(text).ok()?;
    let is_plain = version.major == 3 && version.pre.is_empty() && version.build.is_empty();
    is_plain.then_some(Version::new(version.minor, version.patch))
}

/// Reads a version that etcd reports. It may lack its patch, as a cluster version such as `3.6` does, and have a suffix,
/// as that of an image which was built again does.
#[must_use]
pub fn parse_reported(text: &str) -> Option<Version> {
    let version =
        semver::Version::parse(text).or_else(|_| semver::Version::parse(&format!("{text}.0"))).ok()?;
    (version.major == 3).then_some(Version::new(version.minor, version.patch))
}

/// What is known of a minor; nothing where it is not supported.
#[must_use]
pub fn find(minor: u64) -> Option<&'static Minor> {
    MINORS.iter().find(|one| one.minor == minor)
}

/// The least patch of the minor below from which members come up to a minor, and to which they are brought down from
/// it.
fn least_below(minor: u64) -> Version {
    Version::new(minor.saturating_sub(1), find(minor).and_then(|known| known.from_patch).unwrap_or(0))
}

/// Why etcd cannot go from one version to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Refusal {
    /// It skips a minor version.
    SkipsMinor,
    /// A member runs a patch below this one, from which the step loses data.
    SourcePatch(Version),
    /// Etcd cannot go back that far.
    Backwards,
    /// The spec does not allow a downgrade.
    DowngradeNotAllowed,
    /// A later upgrade would not be possible from a patch below this one.
    TargetPatch(Version),
}

/// Why members that have agreed on a minor cannot be brought up to `wanted`. `lowest`: the lowest version that one of
/// them runs; none: that is not asked.
#[must_use]
pub fn refused_upgrade(wanted: Version, agreed: u64, lowest: Option<Version>) -> Option<Refusal> {
    if wanted.minor <= agreed {
        return None;
    }
    if wanted.minor > agreed.saturating_add(1) {
        return Some(Refusal::SkipsMinor);
    }
    let least = least_below(wanted.minor);
    lowest.filter(|lowest| *lowest < least).map(|_| Refusal::SourcePatch(least))
}

/// Why members that have agreed on a minor cannot be brought down to `wanted`.
#[must_use]
pub fn refused_downgrade(wanted: Version, agreed: u64, is_allowed: bool) -> Option<Refusal> {
    if wanted.minor >= agreed {
        return None;
    }
    if wanted.minor.saturating_add(1) < agreed || agreed < FIRST_DOWNGRADE {
        return Some(Refusal::Backwards);
    }
    let least = least_below(agreed);
    if wanted < least {
        return Some(Refusal::TargetPatch(least));
    }
    (!is_allowed).then_some(Refusal::DowngradeNotAllowed)
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
    fn members_go_one_minor_at_a_time_and_by_patches_that_lose_nothing() {
        let version = |text: &str| parse(text).unwrap();
        let up =
            |from: &str, to: &str| refused_upgrade(version(to), version(from).minor, Some(version(from)));
        let down = |from: &str, to: &str| refused_downgrade(version(to), version(from).minor, true);
        assert_eq!(up("3.5.33", "3.6.16"), None);
        assert_eq!(up("3.6.16", "3.6.1"), None, "the same minor");
        assert_eq!(up("3.5.31", "3.6.16"), Some(Refusal::SourcePatch(Version::new(5, 32))));
        assert_eq!(up("3.6.10", "3.7.3"), Some(Refusal::SourcePatch(Version::new(6, 11))));
        assert_eq!(up("3.5.33", "3.7.3"), Some(Refusal::SkipsMinor));
        assert_eq!(refused_upgrade(version("3.6.16"), 5, None), None);
        assert_eq!(down("3.7.3", "3.6.16"), None);
        assert_eq!(down("3.7.3", "3.6.10"), Some(Refusal::TargetPatch(Version::new(6, 11))));
        assert_eq!(down("3.7.3", "3.5.33"), Some(Refusal::Backwards));
        assert_eq!(down("3.5.33", "3.4.0"), Some(Refusal::Backwards));
        assert_eq!(refused_downgrade(version("3.6.16"), 7, false), Some(Refusal::DowngradeNotAllowed));
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
        for text in ["3.6.16-acme.2", "3.6.16+acme"] {
            assert_eq!(parse_reported(text), parse("3.6.16"), "{text}");
        }
        assert_eq!(parse_reported("4.0.0"), None);
    }
}
