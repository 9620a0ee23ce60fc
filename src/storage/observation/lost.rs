//! Fields that objects may have in one version and not in another.
//!
//! Without a webhook that converts, the API server changes nothing of an object but its `apiVersion`, and prunes what the
//! schema of the version does not know. A write of an object that was stored in another version then loses those fields.

use serde_json::Value;

/// How many fields are reported, and how deep schemas are looked into.
const TOLD: usize = 5;
const DEEPEST: usize = 64;
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

/// Fields of the schema `from` that the schema `to` does not know, as paths: the first of them.
pub(super) fn lost(from: &Value, to: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(from, to, "", DEEPEST, &mut found);
    found
}

/// As the API server prunes: `x-kubernetes-preserve-unknown-fields` keeps what a schema does not name, not what it names;
/// `x-kubernetes-embedded-resource` keeps what every object has by itself.
fn look(from: &Value, to: &Value, at: &str, depth: usize, found: &mut Vec<String>) {
    if depth == 0 || found.len() >= TOLD {
        return;
    }
    let is = |schema: &Value, word: &str| schema[word] == true;
    let keeps = is(to, PRESERVES);
    let is_object = at.is_empty() || is(to, "x-kubernetes-embedded-resource");
    let others = &to["additionalProperties"];
    for (name, field) in from["properties"].as_object().into_iter().flatten() {
        if is_object && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        let place = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        let known = [&to["properties"][name], others];
        match known.into_iter().find(|schema| !schema.is_null()) {
            Some(schema) => look(field, schema, &place, depth - 1, found),
            None if keeps => {}
            None => tell(found, place),
        }
    }
    if from["items"].is_object() && to["items"].is_object() {
        look(&from["items"], &to["items"], &format!("{at}[]"), depth - 1, found);
    }
    // What is there under names that no schema has.
    let unnamed = &from["additionalProperties"];
    if unnamed.is_object() && others.is_object() {
        look(unnamed, others, &format!("{at}{{}}"), depth - 1, found);
    } else if !keeps && others.is_null() {
        if !unnamed.is_null() {
            tell(found, format!("{at}{{}}"));
        } else if is(from, PRESERVES) {
            tell(found, format!("{at}.*").trim_start_matches('.').to_owned());
        }
    }
}

fn tell(found: &mut Vec<String>, place: String) {
    if found.len() < TOLD {
        found.push(place);
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
        assert_eq!(lost(&keeps, &old), ["spec.*"], "it is unknown what is there");
    }

    #[test]
    fn what_is_kept_is_what_the_api_server_does_not_prune() {
        let text = json!({"type": "string"});
        let with = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
        let embedded = |more: &Value| {
            let mut spec = json!({"type": "object", "x-kubernetes-embedded-resource": true});
            json_patch::merge(&mut spec, more);
            with(spec)
        };
        let resource =
            embedded(&json!({"properties": {"kind": text, "metadata": {"type": "object"}, "data": text}}));
        assert_eq!(lost(&resource, &embedded(&json!({}))), ["spec.data"]);
        assert_eq!(
            lost(&resource, &embedded(&json!({"x-kubernetes-preserve-unknown-fields": true}))),
            [""; 0]
        );
        let nested = with(
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": text}}}}),
        );
        let keeps_around = with(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "object"}}}));
        assert_eq!(lost(&nested, &keeps_around), ["spec.a.b"], "what is named is pruned by its own schema");
        let map = with(json!({"type": "object", "additionalProperties": text}));
        assert_eq!(lost(&map, &with(json!({"type": "object", "properties": {"a": text}}))), ["spec{}"]);
        assert_eq!(lost(&map, &map), [""; 0]);
    }
}
