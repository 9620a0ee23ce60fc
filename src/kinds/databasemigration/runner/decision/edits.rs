//! Whether what has run is what a script still says. Pure.

use super::super::super::result::{Blocked, BlockedReason};
use super::super::history::Row;
use super::super::scripts::{Text, Way};
use crate::api::script;

/// The statement to go on with: what was done before it must be what the text still says, in whatever way the rest could
/// run. What ran in a transaction and failed has done nothing, and neither has a check.
pub(super) fn resumed(text: &Text, row: &Row, from: u32) -> Result<u32, Box<Blocked>> {
    let Some(expected) = row.done.clone().filter(|_| from > 1 && text.way != Way::Check) else {
        return Ok(1);
    };
    let found = text.done_before(from).unwrap_or_default();
    if expected == found {
        return Ok(from);
    }
    let id = &row.id;
    let blocked = Blocked {
        reason: BlockedReason::ChecksumMismatch,
        id: Some(id.clone()),
        message: format!(
            "script {id} was edited before its statement {from}, and what stands there has run: it was {expected} and \
             is {found}; restore it"
        ),
        expected: Some(expected.clone()),
        found: Some(found),
    };
    Err(Box::new(with_line_ends(blocked, text.before(from).unwrap_or_default(), &expected)))
}

/// A script is not what was applied.
#[must_use]
pub fn edited(id: &str, expected: &str, found: &str) -> Blocked {
    Blocked {
        reason: BlockedReason::ChecksumMismatch,
        id: Some(id.to_owned()),
        expected: Some(expected.to_owned()),
        found: Some(found.to_owned()),
        message: format!(
            "script {id} was edited after it was applied: it was {expected} and is {found}; restore it and append a \
             new script, or accept the checksum (acceptChecksums, --accept-checksum)"
        ),
    }
}

/// The text of a script is not what was applied.
pub(super) fn edited_text(text: &Text, row: &Row) -> Blocked {
    with_line_ends(edited(&row.id, &row.checksum, &text.checksum), &text.all, &row.checksum)
}

/// Names the line ends where nothing else differs.
fn with_line_ends(blocked: Blocked, text: &str, expected: &str) -> Blocked {
    if !script::is_of_other_line_ends(text, expected) {
        return blocked;
    }
    let message = format!(
        "{}; only its line ends differ, CRLF and LF, as the settings of git or of an editor change them",
        blocked.message
    );
    Blocked { message, ..blocked }
}
