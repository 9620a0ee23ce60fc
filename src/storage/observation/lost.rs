//! Fields that objects may have in one version and not in another.
//!
//! Without a webhook that converts, the API server changes nothing of an object but its `apiVersion`, and prunes what the
//! schema of the version does not know. A write of an object that was stored in another version then loses those fields.

use serde_json::Value;

/// How many fields are reported, and how deep schemas are looked into.
const TOLD: usize = 5;
const DEEPEST: usize = 64;

/// Fields of the schema `from` that the schema `to` does not know, as paths: the first of them.
pub(super) fn lost(from: &Value, to: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(from, to, "", DEEPEST, &mut found);
    found
}

fn look(from: &Value, to: &Value, at: &str, depth: usize, found: &mut Vec<String>) {
    let keeps_all =
        to["x-kubernetes-preserve-unknown-fields"] == true || to["x-kubernetes-embedded-resource"] == true;
    if depth == 0 || found.len() >= TOLD || keeps_all {
        return;
    }
    if let Some(fields) = from["properties"].as_object() {
        for (name, field) in fields {
            let place = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            // Objects have these by themselves.
            if at.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            let known = [&to["properties"][name], &to["additionalProperties"]];
            match known.into_iter().find(|schema| !schema.is_null()) {
                Some(schema) => look(field, schema, &place, depth - 1, found),
                None if found.len() < TOLD => found.push(place),
                None => return,
            }
        }
    }
    for (part, name) in [("items", "[]"), ("additionalProperties", "{}")] {
        if from[part].is_object() && to[part].is_object() {
            look(&from[part], &to[part], &format!("{at}{name}"), depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_another_schema_does_not_know_is_lost() {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let text = json!({"type": "string"});
        let old = object(json!({"apiVersion": text, "spec": object(json!({
            "size": {"type": "integer"},
            "ports": {"type": "array", "items": object(json!({"name": text, "old": text}))},
            "labels": {"type": "object", "additionalProperties": object(json!({"old": text}))}
        }))}));
        let new = object(json!({"spec": object(json!({
            "replicas": {"type": "integer"},
            "ports": {"type": "array", "items": object(json!({"name": text}))},
            "labels": {"type": "object", "additionalProperties": object(json!({}))}
        }))}));
        assert_eq!(lost(&old, &new), ["spec.labels{}.old", "spec.ports[].old", "spec.size"]);
        assert_eq!(lost(&old, &old), [""; 0]);
        let keeps = object(json!({"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}));
        assert_eq!(lost(&old, &keeps), [""; 0]);
        assert_eq!(lost(&keeps, &old), [""; 0], "it is unknown what is there");
    }
}
