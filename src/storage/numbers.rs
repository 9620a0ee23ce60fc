//! The metrics of the leader's migrations.
//!
//! Guarantees: as many series as there are definitions of ours and ends of an object.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::plan::tally::Tally;

/// `{definition}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    definition: String,
}

/// `{definition,result}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    definition: String,
    result: &'static str,
}

/// The result for an object.
const RESULTS: [&str; 4] = ["rewritten", "as_wanted", "overtaken", "failed"];

/// The numbers. Clones share them. A rate is that of the counter.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    objects: Family<Result, Counter>,
    remaining: Family<Of, Gauge>,
    failing: Family<Of, Gauge>,
    older: Family<Of, Gauge>,
}

impl Numbers {
    /// Puts them on the page of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("gatehouse_storage");
        registry.register(
            "objects",
            "Objects that a migration has dealt with: rewritten, as_wanted, overtaken (written or deleted meanwhile) or failed",
            self.objects.clone(),
        );
        registry.register(
            "remaining_objects",
            "About how many objects a pass of a migration has before it",
            self.remaining.clone(),
        );
        registry.register(
            "failing_objects",
            "Objects that the last pass could not write",
            self.failing.clone(),
        );
        registry.register(
            "older_versions",
            "Versions besides the storage version that objects of a definition may be stored in",
            self.older.clone(),
        );
    }

    /// So many older versions may have objects. What is counted of it shows from then on, so that a rate has its first
    /// object.
    pub fn has_older(&self, definition: &str, older: usize) {
        for result in RESULTS {
            self.objects.get_or_create(&Result { definition: definition.to_owned(), result }).inc_by(0);
        }
        let of = Of { definition: definition.to_owned() };
        self.older.get_or_create(&of).set(i64::try_from(older).unwrap_or(i64::MAX));
    }

    /// Shows no more how definitions are: another replica knows that now.
    pub(super) fn forget(&self) {
        for family in [&self.remaining, &self.failing, &self.older] {
            family.clear();
        }
    }

    /// A pass has got from one tally to another, with so many objects before it.
    pub(super) fn moved(&self, definition: &str, before: &Tally, tally: &Tally, remaining: u64) {
        let each = [
            tally.rewritten.saturating_sub(before.rewritten),
            tally.as_wanted.saturating_sub(before.as_wanted),
            tally.overtaken.saturating_sub(before.overtaken),
            tally.failed.saturating_sub(before.failed),
        ];
        for (result, more) in RESULTS.into_iter().zip(each) {
            self.objects.get_or_create(&Result { definition: definition.to_owned(), result }).inc_by(more);
        }
        let of = Of { definition: definition.to_owned() };
        self.remaining.get_or_create(&of).set(i64::try_from(remaining).unwrap_or(i64::MAX));
        self.failing.get_or_create(&of).set(i64::try_from(tally.failed).unwrap_or(i64::MAX));
    }
}
