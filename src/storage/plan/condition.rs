//! The condition of a definition that says whether its objects are stored in its storage version.
//!
//! `kubectl wait --for=condition=StorageMigrated crd/tdsets.gatehouse.dev` waits for it. Kubernetes' own migrator keeps
//! another one beside it, `StorageMigrating` (1.36 and later).

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Its type.
pub const TYPE: &str = "StorageMigrated";

/// The type of that of Kubernetes' own migrator.
pub const OF_KUBERNETES: &str = "StorageMigrating";

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

/// The reason of one that says that a migration ended, and `storedVersions` stays as it is.
pub const KEPT: &str = "Kept";

/// The reason of one that says that a migration was asked to end before it had.
pub const INTERRUPTED: &str = "Interrupted";

/// The reason of one that says that the API server did not do what it was asked for.
pub const UNABLE: &str = "Failed";

/// The reason of one that says that objects may be stored in another version, and that nothing is written yet.
pub const WAITING: &str = "Waiting";

/// The reason by which Kubernetes' own migrator says that it failed.
const FAILED: &str = "MigrationFailed";

/// The condition by which Kubernetes' own migrator says that it ended, well or not.
#[must_use]
pub fn ended_by_kubernetes(conditions: &[Value]) -> Option<&Value> {
    let theirs = conditions.iter().find(|one| one["type"] == OF_KUBERNETES);
    theirs.filter(|one| one["reason"] == FAILED || one["reason"] == "MigrationSucceeded")
}

/// Whether it says that it failed.
#[must_use]
pub fn has_kubernetes_failed(conditions: &[Value]) -> bool {
    ended_by_kubernetes(conditions).is_some_and(|theirs| theirs["reason"] == FAILED)
}

/// Since when a condition is what it is, in whole seconds.
#[must_use]
pub fn since(condition: &Value) -> Option<Timestamp> {
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

fn bounded(message: &str) -> String {
    message[..message.floor_char_boundary(LONGEST)].to_owned()
}

impl Condition {
    /// All objects are stored in that version, as they should be; with what else there is to say.
    #[must_use]
    pub fn migrated(to: &str, besides: &str) -> Self {
        let message = bounded(&format!("all objects are stored as {to}{besides}"));
        Self { is_true: true, reason: "Migrated", message }
    }

    /// They may not be, and why.
    #[must_use]
    pub fn failed(reason: &'static str, why: &str) -> Self {
        Self { is_true: false, reason, message: bounded(why) }
    }

    /// Since when it is so, as of `now`. That all objects are stored as they should be is known after the end of
    /// Kubernetes' own migration, and has to show as later also where the clock that wrote that end is ahead.
    fn begins(&self, conditions: &[Value], now: Timestamp) -> Timestamp {
        let ended = ended_by_kubernetes(conditions).filter(|_| self.is_true).and_then(since);
        let after = ended.and_then(|ended| ended.checked_add(SignedDuration::from_secs(1)).ok());
        after.map_or(now, |after| now.max(after))
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
            _ => format!("{:.0}", self.begins(conditions, now)),
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
    use super::*;

    #[test]
    fn its_message_has_a_bound() {
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

    #[test]
    fn it_shows_as_later_than_the_end_of_a_migration_of_kubernetes_whatever_the_clocks_say() {
        let theirs = |reason: &str| {
            json!({"type": OF_KUBERNETES, "status": "False", "reason": reason,
                "lastTransitionTime": "2026-01-01T12:00:00Z"})
        };
        let written = |conditions: &[Value], condition: &Condition, now: &str| {
            let all = condition.among(conditions, now.parse().unwrap()).unwrap();
            all.last().unwrap()["lastTransitionTime"].as_str().unwrap().to_owned()
        };
        let done = Condition::migrated("v1", "");
        let before = "2026-01-01T11:00:00Z";
        for ended in ["MigrationFailed", "MigrationSucceeded"] {
            for (now, since) in [
                (before, "2026-01-01T12:00:01Z"),
                ("2026-01-01T12:00:00.9Z", "2026-01-01T12:00:01Z"),
                ("2026-01-01T12:00:02Z", "2026-01-01T12:00:02Z"),
            ] {
                assert_eq!(written(&[theirs(ended)], &done, now), since, "{ended} {now}");
            }
            assert_eq!(written(&[theirs(ended)], &Condition::failed(KEPT, "why"), before), before);
        }
        assert_eq!(written(&[theirs("MigrationRunning")], &done, before), before);
    }
}
