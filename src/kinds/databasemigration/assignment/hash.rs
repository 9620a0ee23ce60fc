//! The hash of a plan. Pure.

use aws_lc_rs::digest::{Context, SHA256};

use super::{Assignment, Database, ScriptKind, Transaction};
use crate::api::checksum::hexadecimal;

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

/// The hash of a plan, 64 hexadecimal digits: over all scripts, applied or not, in their order, and over what says where
/// and under which rules they run. So a plan that was approved for one database is none for another.
#[must_use]
pub fn plan_hash<'a>(assignment: &Assignment, scripts: impl IntoIterator<Item = Planned<'a>>) -> String {
    let Assignment { database, history, baseline, out_of_order, accept_checksums, .. } = assignment;
    let Database { engine, host, port, name, file, .. } = database;
    // Where a file is mounted says nothing of which one it is.
    let name = file.as_ref().unwrap_or(name);
    let port = port.or(engine.port());
    let around = (engine, host, port, name, history, baseline, out_of_order, accept_checksums);
    let mut hash = Context::new(&SHA256);
    // Each part with its length, so that no two plans are the same bytes.
    let mut add = |part: &str| {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    };
    add("gatehouse plan 2");
    // Nothing in it fails to be written.
    add(&serde_json::to_string(&around).unwrap_or_default());
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
