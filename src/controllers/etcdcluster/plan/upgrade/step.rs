//! Which version members may be brought to, from what they run. The gate asks the same of the spec; here it is asked
//! of the members, so that it holds without the gate. Pure.
//!
//! Sources: etcd's upgrade and downgrade guides; `versions::MINORS` for the least patches.

use crate::api::etcdcluster::versions;
use crate::controllers::etcdcluster::observation::{Backup, Fact, MemberStatus, Minor, Version};
use crate::controllers::etcdcluster::plan::view::View;

/// The first minor whose members can be brought one minor down.
const FIRST_DOWNGRADE: Minor = 6;

/// The first minor that cannot read what older members have logged: a snapshot has to lie before it.
const FIRST_WITHOUT_V2: Minor = 7;

/// What the rules say of the version that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Members may be brought to it.
    Go(Version),
    /// They may, after something else.
    Prepare(Preparation),
    /// They may not.
    Refused(Refusal),
    /// Too little is known to tell.
    Unclear,
}

impl Step {
    /// The version, where members may be brought to it now.
    #[must_use]
    pub const fn version(self) -> Option<Version> {
        match self {
            Self::Go(version) => Some(version),
            Self::Prepare(_) | Self::Refused(_) | Self::Unclear => None,
        }
    }
}

/// What comes before the first member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Preparation {
    /// A verified backup.
    Backup,
    /// A snapshot on the disk of each member.
    Snapshots,
    /// Data and log of each member that the lower minor can read.
    Downgrade(Minor),
    /// No downgrade that is still allowed.
    CancelDowngrade,
}

/// Why members may not be brought to a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// This release does not know its minor.
    Unsupported,
    /// A minor lies between.
    SkipsMinor,
    /// A member runs a patch from which the step loses data.
    SourcePatch(Version),
    /// Etcd cannot go back that far.
    Backwards,
}

/// What the rules say of the version that is asked for.
#[must_use]
pub fn step(view: &View) -> Step {
    let wanted = view.desired.template.version;
    let Some(known) = versions::MINORS.iter().find(|one| one.minor == wanted.minor) else {
        return Step::Refused(Refusal::Unsupported);
    };
    let current = view.template().version;
    let allowed = |status: &MemberStatus| status.downgrade_target.is_known_and(|to| *to < wanted.minor);
    if view.seen.answers().any(|(_, status)| allowed(status)) {
        return Step::Prepare(Preparation::CancelDowngrade);
    }
    if current == wanted {
        return Step::Go(wanted);
    }
    let Fact::Known(agreed) = view.seen.cluster_version else { return Step::Unclear };
    if wanted.minor > agreed.saturating_add(1) {
        return Step::Refused(Refusal::SkipsMinor);
    }
    if wanted.minor.saturating_add(1) < agreed {
        return Step::Refused(Refusal::Backwards);
    }
    let answers: Vec<_> = view.seen.answers().map(|(_, status)| status).collect();
    if wanted.minor > agreed {
        return upwards(view, wanted, agreed, known.from_patch, &answers);
    }
    let above: Vec<_> = answers.into_iter().filter(|status| status.version.minor > wanted.minor).collect();
    if wanted.minor < agreed || above.iter().any(|status| !is_readable_by(status, wanted.minor)) {
        return if agreed >= FIRST_DOWNGRADE || wanted.minor == agreed {
            Step::Prepare(Preparation::Downgrade(wanted.minor))
        } else {
            Step::Refused(Refusal::Backwards)
        };
    }
    if wanted > current { backed_up(view, wanted) } else { Step::Go(wanted) }
}

fn upwards(
    view: &View,
    wanted: Version,
    agreed: Minor,
    from_patch: Option<u64>,
    answers: &[&MemberStatus],
) -> Step {
    let answered = view.membership().is_some_and(|membership| {
        membership
            .members
            .iter()
            .all(|member| member.ordinal.is_some_and(|ordinal| view.status(ordinal).is_some()))
    });
    if !answered {
        return Step::Unclear;
    }
    let least = Version::new(agreed, from_patch.unwrap_or(0));
    if answers.iter().any(|status| status.version < least) {
        return Step::Refused(Refusal::SourcePatch(least));
    }
    if wanted.minor >= FIRST_WITHOUT_V2 {
        let older: Vec<_> = answers.iter().filter(|status| status.version.minor < wanted.minor).collect();
        if older.iter().any(|status| status.has_saved_snapshot.is_unknown()) {
            return Step::Unclear;
        }
        if older.iter().any(|status| !status.has_saved_snapshot.is_known_and(|saved| *saved)) {
            return Step::Prepare(Preparation::Snapshots);
        }
    }
    backed_up(view, wanted)
}

fn backed_up(view: &View, wanted: Version) -> Step {
    let has_backup = view.seen.backup.is_known_and(|backup| *backup == Backup::Recent);
    if view.desired.backs_up_before_upgrade && !has_backup {
        Step::Prepare(Preparation::Backup)
    } else {
        Step::Go(wanted)
    }
}

/// Whether a member's data can be read by a lower minor.
fn is_readable_by(status: &MemberStatus, minor: Minor) -> bool {
    match status.storage_version {
        Fact::Known(storage) => storage <= minor,
        // Before 3.6 there was none.
        Fact::Absent => true,
        Fact::Unknown => false,
    }
}
