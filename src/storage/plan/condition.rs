//! The condition of a definition that says whether its objects are stored in its storage version.
//!
//! `kubectl wait --for=condition=StorageMigrated crd/tdsets.gatehouse.dev` waits for it. Kubernetes' own migrator keeps
//! another one beside it, `StorageMigrating` (1.36 and later).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::observation::Definition;
use super::tally::Tally;
use super::{End, is_stored_as_wanted};

/// Its type.
pub const TYPE: &str = "StorageMigrated";

/// The longest message, in bytes.
const LONGEST: usize = 1024;

/// Whether objects are stored as they should be, and what a reader should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether they are.
    pub is_true: bool,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// What the last pass leads to, as a condition; none where the one that is there stays.
///
/// A pass that `rewrites` nothing only takes managed fields away: where it fails, objects are stored as they were.
#[must_use]
pub fn of_end(definition: &Definition, end: &End, last: &Tally, rewrites: bool) -> Option<Condition> {
    match end {
        End::Keep(why) => {
            let message = format!("storedVersions stays as it is: {}", why.told(last));
            rewrites.then(|| Condition::failed("Kept", &message))
        }
        End::Said if !rewrites && (!is_stored_as_wanted(definition) || !has(definition)) => None,
        End::Said if last.failed > 0 => {
            let migrated = Condition::migrated(definition);
            let fields =
                format!("managed fields of other versions stay in {} objects{}", last.failed, last.named());
            Some(Condition { message: bounded(&format!("{}; {fields}", migrated.message)), ..migrated })
        }
        End::Said | End::Reduce(_) => Some(Condition::migrated(definition)),
    }
}

fn has(definition: &Definition) -> bool {
    definition.condition(TYPE).is_some()
}

fn bounded(message: &str) -> String {
    message[..message.floor_char_boundary(LONGEST)].to_owned()
}

impl Condition {
    /// All objects of that definition are stored as they should be.
    #[must_use]
    pub fn migrated(definition: &Definition) -> Self {
        let message = format!("all objects are stored as {}", definition.storage_version());
        Self { is_true: true, reason: "Migrated", message }
    }

    /// They may not be, and why.
    #[must_use]
    pub fn failed(reason: &'static str, why: &str) -> Self {
        Self { is_true: false, reason, message: bounded(why) }
    }

    /// The conditions with this one among them; none where it is there as it is.
    #[must_use]
    pub fn among(&self, conditions: &[Value], now: Timestamp) -> Option<Vec<Value>> {
        let status = if self.is_true { "True" } else { "False" };
        let mut all = conditions.to_vec();
        let known = all.iter().position(|one| one["type"] == TYPE);
        let before = known.map_or(Value::Null, |at| all[at].clone());
        let since = match &before["lastTransitionTime"] {
            Value::String(since) if before["status"] == status => since.clone(),
            _ => format!("{now:.0}"),
        };
        let condition = json!({"type": TYPE, "status": status, "reason": self.reason, "message": self.message,
            "lastTransitionTime": since});
        if before == condition {
            return None;
        }
        match known {
            Some(at) => all[at] = condition,
            None => all.push(condition),
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
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
        let conditions = vec![json!({"type": TYPE, "status": "False"})];
        let told = Definition { conditions, ..wanted };
        let text = "all objects are stored as v1; managed fields of other versions stay in 1 objects: shop/one: not \
                    this one";
        assert_eq!(said(&told, &End::Said, false), Some((true, "Migrated", text.to_owned())));
        let older = Definition { stored: definition().stored, ..told };
        assert_eq!(said(&older, &End::Said, false), None, "nothing was written");
        let long = Condition::failed("Failed", &"ä".repeat(LONGEST));
        assert!(long.message.len() <= LONGEST);
    }

    #[test]
    fn it_is_written_once_and_leaves_the_others() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (first, later) = (at("2026-01-01T00:00:00.5Z"), at("2026-01-02T00:00:00Z"));
        let condition =
            |is_true, message: &str| Condition { is_true, reason: "Migrating", message: message.to_owned() };
        let others = [json!({"type": "Established", "status": "True", "observedGeneration": 2})];
        let all = condition(false, "1 of 2").among(&others, first).unwrap();
        assert_eq!(all[0], others[0]);
        assert_eq!(all[1]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(condition(false, "1 of 2").among(&all, later), None);
        let next = condition(false, "2 of 2").among(&all, later).unwrap();
        assert_eq!(next[1]["lastTransitionTime"], "2026-01-01T00:00:00Z", "only what it says has changed");
        let done = condition(true, "done").among(&next, later).unwrap();
        assert_eq!((done.len(), &done[1]["lastTransitionTime"]), (2, &json!("2026-01-02T00:00:00Z")));
    }
}
