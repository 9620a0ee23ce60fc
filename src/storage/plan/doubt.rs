//! How far what a definition says about its objects is relied on. Pure.
//!
//! Guarantees: what says that no object is stored in another version is believed only where no migration has found, and
//! none has set out to find, that it is otherwise; what is not believed is verified by passes over all objects, and no
//! version may be removed meanwhile.

use super::super::observation::Definition;
use super::Goal;

/// Whether no object may be stored in another version, as far as that is verified.
#[must_use]
pub fn is_stored_as_wanted(definition: &Definition) -> bool {
    definition.stored == [definition.storage_version()] && !definition.is_unverified()
}

/// Whether a definition says that all objects are stored as they should be, and that is not known any more: it has another
/// storage version since, or Kubernetes' own migrator has ended.
#[must_use]
pub fn is_untrue(definition: &Definition) -> bool {
    definition.says_migrated() && !is_stored_as_wanted(definition)
}

/// Whether nothing has to be looked at: no object may be stored in another version, and no managed fields can be of a
/// version that is not served.
#[must_use]
pub fn is_settled(definition: &Definition) -> bool {
    is_stored_as_wanted(definition) && definition.versions.iter().all(|version| version.is_served)
}

/// Whether a definition that a migration began with and did its work in is still as that has left it.
#[must_use]
pub fn is_left_as_wanted(before: &Definition, after: &Definition) -> bool {
    after.is_in_state_of(before) && is_stored_as_wanted(after)
}

/// Whether the place that a definition has is not gone on from. Where its condition says that all is done, that place is
/// of a migration which another client has ended since.
#[must_use]
pub fn ignores_place(definition: &Definition, goal: &Goal) -> bool {
    goal.is_forced || goal.ignores_place || definition.says_migrated()
}

/// The versions besides the storage version that an object is stored in at worst.
fn suspected<'a>(definition: &'a Definition, goal: &Goal) -> Vec<&'a str> {
    match &goal.named {
        Some(named) if !goal.is_forced => {
            definition.older_and(|other| named.iter().any(|name| name == other))
        }
        None if !goal.is_forced && !definition.may_name_too_few() => definition.older(),
        _ => definition.older_and(|_| true),
    }
}

/// Fields that objects would lose by being written in the storage version.
pub(super) fn lost(definition: &Definition, goal: &Goal) -> Vec<String> {
    let lost = suspected(definition, goal).into_iter().filter_map(|version| definition.lost.get(version));
    lost.flatten().cloned().collect()
}

/// What `storedVersions` has to name before anything is written; none where it does. While the status of a definition may
/// say too little, no version may be removed by what it says: neither while objects are written nor when that ends
/// early.
#[must_use]
pub fn restored(definition: &Definition, goal: &Goal) -> Option<Vec<String>> {
    let others = if goal.is_forced || goal.named.is_some() {
        suspected(definition, goal)
    } else {
        definition.maybe_stored()
    };
    let lacks = others.len() > definition.older().len();
    lacks.then(|| others.into_iter().chain([definition.storage_version()]).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::super::checkpoint::Checkpoint;
    use super::super::tests::{begin_at, definition};
    use super::super::{Begin, Held};
    use super::*;
    use crate::storage::observation::Version;

    fn later() -> Timestamp {
        "2026-01-01T00:01:00Z".parse().unwrap()
    }

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn ours(status: &str, reason: &str) -> Value {
        json!({"type": "StorageMigrated", "status": status, "reason": reason,
            "lastTransitionTime": "2026-01-02T00:00:00Z"})
    }

    fn ended_by_kubernetes(reason: &str, generation: i64) -> Value {
        json!({"type": "StorageMigrating", "status": "False", "reason": reason, "observedGeneration": generation,
            "lastTransitionTime": "2026-01-03T00:00:00Z"})
    }

    /// With that version besides, in which objects have a field that the storage version lacks.
    fn with(stored: &[&str], conditions: &[Value]) -> Definition {
        let mut all = definition();
        let beta = Version { name: "v1beta1".to_owned(), ..all.versions[0].clone() };
        all.versions.insert(1, beta);
        let lost = BTreeMap::from([("v1alpha1".to_owned(), names(&["spec.shade"]))]);
        Definition { stored: names(stored), conditions: conditions.to_vec(), lost, ..all }
    }

    fn begins(definition: &Definition, goal: &Goal) -> Result<Begin, Held> {
        begin_at(definition, &Goal { loses_fields: true, ..goal.clone() }, later())
    }

    #[test]
    fn what_we_deny_is_verified_whatever_stored_versions_says() {
        let all = Some(names(&["v1alpha1", "v1beta1", "v1"]));
        for reason in ["Waiting", "Migrating", "Interrupted", "Kept", "Failed", "Held"] {
            let reduced = with(&["v1"], &[ours("False", reason)]);
            assert!(!is_stored_as_wanted(&reduced) && !is_settled(&reduced), "{reason}");
            assert!(matches!(begins(&reduced, &Goal::default()), Ok(Begin::Rewrite(_))), "{reason}");
            assert_eq!(restored(&reduced, &Goal::default()), all, "{reason}");
            // As it is while objects are written: what it names is what objects may be stored in.
            let named = with(&["v1beta1", "v1"], &[ours("False", reason)]);
            assert!(matches!(begins(&named, &Goal::default()), Ok(Begin::Rewrite(_))), "{reason}");
            assert_eq!(restored(&named, &Goal::default()), None, "{reason}");
            assert_eq!(lost(&named, &Goal::default()), [""; 0], "{reason}");
        }
        let verified = with(&["v1"], &[ours("True", "Migrated")]);
        assert!(is_settled(&verified) && !is_untrue(&verified));
        assert_eq!(restored(&verified, &Goal::default()), None);
    }

    #[test]
    fn what_is_forced_believes_neither_the_status_nor_a_place() {
        let forced = Goal { is_forced: true, ..Goal::default() };
        let place = Checkpoint { next: "token".to_owned(), ..Checkpoint::at_pass(2, "u", 2, "v1") };
        let all = names(&["v1alpha1", "v1beta1", "v1"]);
        let verified = Definition { checkpoint: Some(place), ..with(&["v1"], &[ours("True", "Migrated")]) };
        assert_eq!(restored(&verified, &forced), Some(all.clone()));
        assert_eq!(lost(&verified, &forced), ["spec.shade"]);
        assert!(matches!(begin_at(&verified, &forced, later()), Err(Held::LosesFields { .. })));
        let named = Definition { stored: all, conditions: vec![ours("False", "Waiting")], ..verified };
        assert_eq!(restored(&named, &forced), None, "once");
        let beginning = Checkpoint::at_pass(1, "u", 2, "v1");
        assert_eq!(begins(&named, &forced), Ok(Begin::Rewrite(beginning.clone())));
        let from_the_start = Goal { ignores_place: true, ..Goal::default() };
        assert_eq!(begins(&named, &from_the_start), Ok(Begin::Rewrite(beginning.clone())));
        let untrue = Definition { conditions: vec![ours("True", "Migrated")], ..named };
        let begun = begins(&untrue, &Goal::default());
        assert_eq!(begun, Ok(Begin::Rewrite(beginning)), "another client has ended that migration");
    }

    #[test]
    fn what_kubernetes_reduces_is_what_was_named_before() {
        for reason in ["MigrationFailed", "MigrationSucceeded"] {
            let conditions = [ours("False", "Migrating"), ended_by_kubernetes(reason, 2)];
            let reduced = with(&["v1"], &conditions);
            let unknown = Goal::default();
            assert_eq!(restored(&reduced, &unknown), Some(names(&["v1alpha1", "v1beta1", "v1"])), "{reason}");
            assert_eq!(lost(&reduced, &unknown), ["spec.shade"], "{reason}");
            let known = Goal { named: Some(names(&["v1beta1", "v1"])), ..Goal::default() };
            let before = Some(names(&["v1beta1", "v1"]));
            assert_eq!(restored(&reduced, &known), before, "{reason}");
            assert_eq!(lost(&reduced, &known), [""; 0], "{reason}");
            // So it is for the next run, which does not know what was named before.
            let named = with(&["v1beta1", "v1"], &conditions);
            assert_eq!(restored(&named, &unknown), None, "{reason}");
            assert_eq!(lost(&named, &unknown), [""; 0], "{reason}");
            let switched = Definition { generation: 3, ..named };
            let all = Some(names(&["v1beta1", "v1alpha1", "v1"]));
            assert_eq!(restored(&switched, &unknown), all, "{reason}: the switch has named a version");
        }
    }

    #[test]
    fn true_is_untrue_once_another_version_is_named() {
        let switched = with(&["v1beta1", "v1"], &[ours("True", "Migrated")]);
        assert!(is_untrue(&switched));
        let ended = ended_by_kubernetes("MigrationSucceeded", 2);
        assert!(is_untrue(&with(&["v1"], &[ours("True", "Migrated"), ended])));
        assert!(!is_untrue(&with(&["v1beta1", "v1"], &[ours("False", "Kept")])));
    }

    #[test]
    fn a_migration_is_done_only_with_the_definition_that_it_began_with() {
        let before = with(&["v1beta1", "v1"], &[]);
        let after = with(&["v1"], &[ours("True", "Migrated")]);
        assert!(is_left_as_wanted(&before, &after));
        let is_left = |after: Definition| is_left_as_wanted(&before, &after);
        assert!(!is_left(Definition { generation: 3, ..after.clone() }), "it may store another version now");
        assert!(!is_left(Definition { uid: "v".to_owned(), ..after.clone() }));
        assert!(!is_left(Definition { stored: names(&["v1", "v2"]), ..after.clone() }));
        assert!(!is_left(Definition { conditions: vec![ours("False", "Kept")], ..after }));
    }
}
