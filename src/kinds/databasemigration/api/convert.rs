//! How DatabaseMigration `v1alpha1` and `v1` map on each other.
//!
//! What the ancestor can say and gatehouse does not act on has its place in `spec.legacy` of `v1`, word for word.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::api::Version;
use crate::api::lens::{Lens, Row, Table, Translation, hub_only, list, object, rename, same, translated};

/// The tables.
pub static LENS: Lens = Lens { spokes: Cow::Borrowed(&[(Version::V1Alpha1, Table::of(V1ALPHA1))]) };

const V1ALPHA1: &[Row] = &[
    object("/spec/database", "/spec/database"),
    translated("/spec/database/type", "/spec/database/engine", ENGINE),
    rename("/spec/database/connectionSecret", "/spec/database/credentialsSecret/name"),
    same("/spec/database/host"),
    same("/spec/database/port"),
    rename("/spec/database/database", "/spec/database/name"),
    translated("/spec/database/sslMode", "/spec/database/tls/mode", TLS_MODE),
    hub_only("/spec/database/credentialsSecret"),
    hub_only("/spec/database/tls"),
    hub_only("/spec/database/file"),
    rename("/spec/migration/strategy", "/spec/legacy/migration/strategy"),
    list("/spec/migration/scripts", "/spec/scripts", SCRIPT, None),
    rename("/spec/migration/parallel", "/spec/legacy/migration/parallel"),
    rename("/spec/migration/batchSize", "/spec/legacy/migration/batchSize"),
    rename("/spec/validation", "/spec/legacy/validation"),
    rename("/spec/rollback", "/spec/legacy/rollback"),
    rename("/spec/notifications", "/spec/legacy/notifications"),
    hub_only("/spec/legacy"),
    hub_only("/spec/history"),
    hub_only("/spec/baseline"),
    hub_only("/spec/existingTables"),
    hub_only("/spec/outOfOrder"),
    hub_only("/spec/mode"),
    hub_only("/spec/approval"),
    hub_only("/spec/retry"),
    hub_only("/spec/onFailure"),
    hub_only("/spec/acceptChecksums"),
    hub_only("/spec/requires"),
    hub_only("/spec/deletionPolicy"),
    hub_only("/spec/suspend"),
    hub_only("/spec/runner"),
    same("/status/observedGeneration"),
    translated("/status/phase", "/status/phase", PHASE),
    same("/status/plan"),
    same("/status/pendingCount"),
    same("/status/appliedCount"),
    same("/status/conditions"),
    hub_only("/status/applied"),
    hub_only("/status/appliedSnapshot"),
    hub_only("/status/currentRun"),
    hub_only("/status/lastRun"),
    hub_only("/status/lastError"),
    hub_only("/status/serverVersion"),
];

const SCRIPT: &[Row] = &[
    rename("/name", "/id"),
    translated("/type", "/kind", KIND),
    translated("/source", "/up", SOURCE),
    same("/checksum"),
    same("/dependsOn"),
    rename("/timeout", "/timeouts/statement"),
    hub_only("/down"),
    hub_only("/transaction"),
    hub_only("/idempotent"),
    hub_only("/timeouts"),
];

const ENGINE: Translation =
    Translation { to_hub: |value| word(value, ENGINES, 0, 1), to_spoke: |value| word(value, ENGINES, 1, 0) };

const ENGINES: &[[&str; 2]] =
    &[["postgresql", "PostgreSQL"], ["mysql", "MySQL"], ["mariadb", "MariaDB"], ["sqlite", "SQLite"]];

const TLS_MODE: Translation = Translation {
    to_hub: |value| word(value, TLS_MODES, 0, 1),
    to_spoke: |value| word(value, TLS_MODES, 1, 0),
};

const TLS_MODES: &[[&str; 2]] = &[
    ["disable", "Disable"],
    ["require", "Require"],
    ["verify-ca", "VerifyCA"],
    ["verify-full", "VerifyFull"],
];

const KIND: Translation =
    Translation { to_hub: |value| word(value, KINDS, 0, 1), to_spoke: |value| word(value, KINDS, 1, 0) };

const KINDS: &[[&str; 2]] = &[["schema", "Schema"], ["data", "Data"], ["validation", "Check"]];

/// The ancestor's phases are five. Going up, a phase that was shown coarser comes back as it was.
const PHASE: Translation = Translation {
    to_hub: |value| word(value, PHASES, 0, 1),
    to_spoke: |value| word(value, PHASES, 1, 0).or_else(|| word(value, COARSER, 1, 0)),
};

const PHASES: &[[&str; 2]] = &[
    ["Pending", "Pending"],
    ["Running", "Running"],
    ["Succeeded", "Succeeded"],
    ["Failed", "Failed"],
    ["RollingBack", "Reverting"],
];

const COARSER: &[[&str; 2]] = &[
    ["Pending", "Planning"],
    ["Pending", "AwaitingApproval"],
    ["Failed", "InDoubt"],
    ["Failed", "Blocked"],
    ["RollingBack", "Reverted"],
];

fn word(value: &Value, words: &[[&str; 2]], from: usize, to: usize) -> Option<Value> {
    let text = value.as_str()?;
    let pair = words.iter().find(|pair| pair[from] == text)?;
    Some(pair[to].into())
}

/// `configmap://NAME/KEY`, `secret://NAME/KEY`, either with a namespace before the name, `inline://SQL`.
const SOURCE: Translation = Translation { to_hub: source_up, to_spoke: source_down };

const SCHEMES: [(&str, &str); 2] = [("configmap://", "configMapKeyRef"), ("secret://", "secretKeyRef")];

const INLINE: &str = "inline://";

fn source_up(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    if let Some(script) = text.strip_prefix(INLINE) {
        return Some(json!({"inline": script}));
    }
    let (field, place) =
        SCHEMES.iter().find_map(|(scheme, field)| Some((field, text.strip_prefix(scheme)?)))?;
    let reference = match place.split('/').collect::<Vec<_>>()[..] {
        [name, key] => json!({"name": name, "key": key}),
        [namespace, name, key] => json!({"namespace": namespace, "name": name, "key": key}),
        _ => return None,
    };
    Some(json!({*field: reference}))
}

fn source_down(value: &Value) -> Option<Value> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    let (field, source) = fields.iter().next()?;
    if field == "inline" {
        return Some(format!("{INLINE}{}", source.as_str()?).into());
    }
    let (scheme, _) = SCHEMES.iter().find(|(_, known)| known == field)?;
    let reference = source.as_object()?;
    let part = |name: &str| reference.get(name).map(Value::as_str);
    let steps = match (reference.len(), part("namespace"), part("name"), part("key")) {
        (2, None, Some(Some(name)), Some(Some(key))) => vec![name, key],
        (3, Some(Some(namespace)), Some(Some(name)), Some(Some(key))) => vec![namespace, name, key],
        _ => return None,
    };
    // What has a slash in it would be read back as something else.
    let is_plain = steps.iter().all(|step| !step.contains('/'));
    is_plain.then(|| format!("{scheme}{}", steps.join("/")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_map_on_each_other() {
        for (spoke, hub) in [
            ("configmap://sql/001.sql", json!({"configMapKeyRef": {"name": "sql", "key": "001.sql"}})),
            ("secret://sql/001.sql", json!({"secretKeyRef": {"name": "sql", "key": "001.sql"}})),
            (
                "configmap://shop/sql/001.sql",
                json!({"configMapKeyRef": {"namespace": "shop", "name": "sql", "key": "001.sql"}}),
            ),
            ("inline://SELECT 1 // 2", json!({"inline": "SELECT 1 // 2"})),
        ] {
            assert_eq!(source_up(&json!(spoke)), Some(hub.clone()));
            assert_eq!(source_down(&hub), Some(json!(spoke)));
        }
        for nonsense in [json!("configmap://a"), json!("configmap://a/b/c/d"), json!("https://a/b"), json!(3)]
        {
            assert_eq!(source_up(&nonsense), None, "{nonsense}");
        }
        for hub in [
            json!({}),
            json!({"inline": "a", "secretKeyRef": {}}),
            json!({"secretKeyRef": {"name": "a/b", "key": "c"}}),
        ] {
            assert_eq!(source_down(&hub), None, "{hub}");
        }
    }

    #[test]
    fn every_phase_has_one_of_the_ancestors() {
        for phase in [
            "Pending",
            "Planning",
            "AwaitingApproval",
            "Running",
            "Succeeded",
            "Failed",
            "InDoubt",
            "Blocked",
            "Reverting",
            "Reverted",
        ] {
            assert!((PHASE.to_spoke)(&json!(phase)).is_some(), "{phase}");
        }
    }
}
