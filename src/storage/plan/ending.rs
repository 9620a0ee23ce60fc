//! The condition of the definition before the first pass, and after the last one.

use super::super::observation::Definition;
use super::condition::{Condition, KEPT, TYPE, WAITING};
use super::tally::Tally;
use super::{End, is_stored_as_wanted};

/// All objects of that definition are stored as they should be.
#[must_use]
pub fn migrated(definition: &Definition) -> Condition {
    Condition::migrated(definition.storage_version(), "")
}

/// Objects of that definition may be stored otherwise, and nothing is done about it yet.
#[must_use]
pub fn waiting(definition: &Definition) -> Condition {
    let to = definition.storage_version();
    Condition::failed(
        WAITING,
        &format!("objects may be stored in another version than {to}, and are not written yet"),
    )
}

/// What the last pass leads to, as a condition; none where the one that is there stays.
///
/// A pass that `rewrites` nothing only takes managed fields away: where it fails, objects are stored as they were.
#[must_use]
pub fn of_end(definition: &Definition, end: &End, last: &Tally, rewrites: bool) -> Option<Condition> {
    match end {
        End::Keep(why) => {
            let message = format!("storedVersions stays as it is: {}", why.told(last));
            rewrites.then(|| Condition::failed(KEPT, &message))
        }
        End::Said if !rewrites && (!is_stored_as_wanted(definition) || !has(definition)) => None,
        End::Said if last.failed > 0 => {
            let (failed, named) = (last.failed, last.named());
            let fields = format!("; managed fields of other versions stay in {failed} objects{named}");
            Some(Condition::migrated(definition.storage_version(), &fields))
        }
        End::Said | End::Reduce(_) => Some(migrated(definition)),
    }
}

fn has(definition: &Definition) -> bool {
    definition.condition(TYPE).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Kept;
    use super::super::tally::Fate;
    use super::super::tests::definition;
    use super::*;

    #[test]
    fn it_names_what_could_not_be_written_and_says_nothing_untrue() {
        let mut last = Tally::default();
        last.add(&"shop/one", Fate::Failed("not this one".to_owned()), false);
        let wanted = Definition { stored: vec!["v1".to_owned()], ..definition() };
        let said = |definition: &Definition, end: &End, rewrites| {
            let condition = of_end(definition, end, &last, rewrites);
            condition.map(|one| (one.is_true, one.reason, one.message))
        };
        let kept = End::Keep(Kept::Failed(1));
        let text = "storedVersions stays as it is: 1 objects could not be written: shop/one: not this one";
        assert_eq!(said(&definition(), &kept, true), Some((false, "Kept", text.to_owned())));
        assert_eq!(said(&wanted, &kept, false), None, "it is reduced already");
        assert_eq!(said(&wanted, &End::Said, false), None, "it has never had a condition");
        let with = |status: &str| {
            let conditions = vec![json!({"type": TYPE, "status": status})];
            Definition { conditions, ..wanted.clone() }
        };
        assert_eq!(
            said(&with("False"), &End::Said, false),
            None,
            "a pass that writes nothing verifies nothing"
        );
        let told = with("True");
        let text = "all objects are stored as v1; managed fields of other versions stay in 1 objects: shop/one: not \
                    this one";
        assert_eq!(said(&told, &End::Said, false), Some((true, "Migrated", text.to_owned())));
        let older = Definition { stored: definition().stored, ..told };
        assert_eq!(said(&older, &End::Said, false), None, "nothing was written");
    }
}
