//! Checksums of scripts, and the hash of the plan that they are. Pure.

use std::fmt::Write as _;

use aws_lc_rs::digest::{Context, SHA256, digest};

use super::{ScriptKind, Transaction};

/// Whether a text is a checksum as [`checksum`] writes it.
#[must_use]
pub fn is_checksum(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|one| matches!(one, b'0'..=b'9' | b'a'..=b'f'))
}

/// The checksum of a script's bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(digest(&SHA256, bytes).as_ref()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

/// A script as the hash of a plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it is for.
    pub kind: ScriptKind,
    /// Whether it runs in a transaction.
    pub transaction: Transaction,
    /// The checksum of its text.
    pub checksum: &'a str,
    /// The checksum of the text that takes it back.
    pub down: Option<&'a str>,
}

/// The hash of a plan, 64 hexadecimal digits: over all scripts of a series, applied or not, in their order.
#[must_use]
pub fn plan_hash<'a>(series: &str, scripts: impl IntoIterator<Item = Planned<'a>>) -> String {
    let mut hash = Context::new(&SHA256);
    // Each part with its length, so that no two plans are the same bytes.
    let mut add = |part: &str| {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    };
    add("gatehouse plan 1");
    add(series);
    for script in scripts {
        add(script.id);
        add(match script.kind {
            ScriptKind::Schema => "Schema",
            ScriptKind::Data => "Data",
            ScriptKind::Check => "Check",
        });
        add(match script.transaction {
            Transaction::Required => "Required",
            Transaction::None => "None",
        });
        add(script.checksum);
        add(script.down.unwrap_or_default());
    }
    hexadecimal(hash.finish().as_ref())
}
