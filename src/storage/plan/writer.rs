//! Who writes the objects of a definition: Kubernetes' own migrator, or gatehouse. Pure.
//!
//! Guarantees: unless Kubernetes is named, it is asked once for a state of a definition, at the beginning. What it
//! leaves, what it fails at, and all that follows is gatehouse's.

use super::super::observation::Definition;
use super::checkpoint::Checkpoint;
use super::condition::{self, INTERRUPTED, KEPT, OF_KUBERNETES, UNABLE};

/// Who is to write them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writer {
    /// Kubernetes where the API server has its migrator, and gatehouse all that this has not written.
    #[default]
    Auto,
    /// gatehouse.
    Gatehouse,
    /// Kubernetes first, also where it has ended before.
    Kubernetes,
}

/// What is asked of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// How far a migration is that may be there: of a run that ended early.
    Known,
    /// A migration, unless there is one.
    New,
}

/// What is asked of Kubernetes where objects are written from that place on.
#[must_use]
pub fn asked(writer: Writer, definition: &Definition, place: &Checkpoint, is_forced: bool) -> Asked {
    if writer == Writer::Gatehouse || !place.is_beginning() {
        return Asked::Nothing;
    }
    let is_for_gatehouse = is_forced
        || definition.older().is_empty()
        || has_kubernetes_ended(definition)
        || has_gatehouse_begun(definition);
    if writer == Writer::Kubernetes || !is_for_gatehouse {
        Asked::New
    } else if definition.condition(OF_KUBERNETES).is_some() {
        Asked::Known
    } else {
        Asked::Nothing
    }
}

/// Where gatehouse begins after Kubernetes has written all objects: the first pass was Kubernetes', unless the definition
/// was changed meanwhile or another run has got further.
#[must_use]
pub fn place_after(before: &Definition, after: &Definition, place: Checkpoint) -> Checkpoint {
    let is_same = after.is_in_state_of(before);
    if is_same && place.is_beginning() { Checkpoint { pass: 2, ..place } } else { place }
}

/// Whether a migration of Kubernetes has ended with the definition as it is, well or not: it would do nothing else now.
fn has_kubernetes_ended(definition: &Definition) -> bool {
    let ended = condition::ended_by_kubernetes(&definition.conditions);
    ended.is_some_and(|ended| ended["observedGeneration"] == definition.generation)
}

/// Whether gatehouse has set about these objects by itself, and has not come to the end.
fn has_gatehouse_begun(definition: &Definition) -> bool {
    let said = definition.condition(condition::TYPE).filter(|said| said["status"] == "False");
    said.is_some_and(|said| [KEPT, UNABLE, INTERRUPTED].iter().any(|reason| said["reason"] == *reason))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::definition;
    use super::*;

    fn with(conditions: &[Value]) -> Definition {
        Definition { conditions: conditions.to_vec(), ..definition() }
    }

    fn of_kubernetes(status: &str, reason: &str, generation: i64) -> Value {
        json!({"type": "StorageMigrating", "status": status, "reason": reason, "observedGeneration": generation})
    }

    fn ours(reason: &str) -> Value {
        json!({"type": "StorageMigrated", "status": if reason == "Migrated" { "True" } else { "False" },
            "reason": reason})
    }

    fn at_first(definition: &Definition) -> Checkpoint {
        Checkpoint::at_pass(1, &definition.uid, definition.generation, "v1")
    }

    #[test]
    fn kubernetes_is_asked_once_for_a_state_of_a_definition() {
        let asked_of =
            |definition: &Definition| asked(Writer::Auto, definition, &at_first(definition), false);
        assert_eq!(asked_of(&definition()), Asked::New);
        let generation = definition().generation;
        for (said, wanted) in [
            (of_kubernetes("True", "MigrationRunning", generation), Asked::New),
            (of_kubernetes("False", "MigrationSucceeded", generation), Asked::Known),
            (of_kubernetes("False", "MigrationFailed", generation), Asked::Known),
            (of_kubernetes("False", "MigrationFailed", generation - 1), Asked::New),
            (ours("Migrating"), Asked::New),
            (ours("Held"), Asked::New),
            (ours("Migrated"), Asked::New),
            (ours("Kept"), Asked::Nothing),
            (ours("Failed"), Asked::Nothing),
            (ours("Interrupted"), Asked::Nothing),
        ] {
            assert_eq!(asked_of(&with(std::slice::from_ref(&said))), wanted, "{said}");
        }
        let verified = Definition { stored: vec!["v1".to_owned()], ..definition() };
        assert_eq!(asked_of(&verified), Asked::Nothing, "nothing is named that would be written");
    }

    #[test]
    fn what_has_begun_and_what_is_forced_is_for_gatehouse() {
        let all = definition();
        let beginning = at_first(&all);
        let within = Checkpoint { next: "token".to_owned(), ..beginning.clone() };
        let second = Checkpoint { pass: 2, ..beginning.clone() };
        for writer in [Writer::Auto, Writer::Kubernetes] {
            for place in [&within, &second] {
                assert_eq!(asked(writer, &all, place, false), Asked::Nothing, "{place:?}");
            }
        }
        assert_eq!(asked(Writer::Auto, &all, &beginning, true), Asked::Nothing);
    }

    #[test]
    fn who_is_named_writes() {
        let kept = with(&[ours("Kept"), of_kubernetes("False", "MigrationFailed", definition().generation)]);
        for is_forced in [false, true] {
            let of = |writer| asked(writer, &kept, &at_first(&kept), is_forced);
            assert_eq!(of(Writer::Kubernetes), Asked::New);
            assert_eq!(of(Writer::Gatehouse), Asked::Nothing);
        }
    }
    #[test]
    fn the_first_pass_is_that_of_kubernetes_unless_the_definition_has_changed() {
        let before = definition();
        let pass = |after: &Definition, place: Checkpoint| place_after(&before, after, place).pass;
        assert_eq!(pass(&before, at_first(&before)), 2);
        let changed = Definition { generation: before.generation + 1, ..definition() };
        let other = Definition { uid: "another".to_owned(), ..definition() };
        for after in [changed, other] {
            assert_eq!(pass(&after, at_first(&after)), 1, "Kubernetes may have written them as they were");
        }
        let within = Checkpoint { next: "token".to_owned(), ..at_first(&before) };
        assert_eq!(pass(&before, within), 1, "it is taken up there");
    }
}
