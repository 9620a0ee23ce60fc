//! The metadata of a new object, as an API server takes them from any client: no definition describes them.
//!
//! Guarantees: the verdict of the API server with `fieldValidation=Strict` (apimachinery, `pkg/api/validation`,
//! `ValidateObjectMeta`; apiextensions, `schema/objectmeta`), except for what the server overwrites and for what depends
//! on the request. Null is absent there.

use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::generate::SchemaSettings;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::field::{FieldError, Path, Reason};
use super::name;
use super::schema::Schema;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<ObjectMeta>();
    let described = JSONSchemaProps::deserialize(schema.to_value()).unwrap_or_default();
    Schema::beside_others("metadata", &described)
});

/// More faults than these are not looked for.
const MOST_FAULTS: usize = 100;

/// The fields of the metadata that no API server knows.
#[must_use]
pub fn unknown_fields(object: &Value) -> Vec<Path> {
    SCHEMA.unknown_fields(object)
}

/// The names of the fields that metadata have.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCHEMA.names("metadata")
}

/// All that is wrong with the metadata of a new object.
#[must_use]
pub fn faults(object: &Value) -> Vec<FieldError> {
    let object = Value::Object(Map::from_iter([(
        "metadata".to_owned(),
        without_null(object.get("metadata").unwrap_or(&Value::Null)),
    )]));
    let mut faults = match object.pointer("/metadata") {
        Some(Value::Null) => Vec::new(),
        _ => SCHEMA.faults(&object, MOST_FAULTS),
    };
    let metadata = Metadata(&object["metadata"]);
    let meant = [
        metadata.names(),
        metadata.labels(),
        metadata.annotations(),
        metadata.finalizers(),
        metadata.owners(),
    ];
    for fault in meant.into_iter().flatten() {
        if !faults.iter().any(|known| fault.path.is_within(&known.path)) {
            faults.push(fault);
        }
    }
    faults
}

/// A value without the fields that are null.
fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.iter().filter(|(_, value)| !value.is_null());
            given.map(|(name, value)| (name.clone(), without_null(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_null).collect(),
        scalar => scalar.clone(),
    }
}

struct Metadata<'a>(&'a Value);

impl<'a> Metadata<'a> {
    /// A text that is given, and not empty.
    fn text(&self, field: &str) -> Option<&'a str> {
        self.0.get(field)?.as_str().filter(|text| !text.is_empty())
    }

    fn texts(&self, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
        let fields = self.0.get(field).and_then(Value::as_object);
        fields.into_iter().flatten().filter_map(|(key, value)| Some((key, value.as_str()?)))
    }

    fn names(&self) -> Vec<FieldError> {
        let path = Path::metadata();
        let invalid =
            |field: &'static str, text: &str, detail: &str| FieldError::invalid(path.at(field), text, detail);
        let mut faults = Vec::new();
        let (name, base) = (self.text("name"), self.text("generateName"));
        if name.is_none() && base.is_none() {
            faults.push(FieldError::required(path.at("name"), "name or generateName is required"));
        }
        if let Some(text) = name
            && let Err(detail) = name::dns_1123_subdomain(text)
        {
            faults.push(invalid("name", text, detail));
        }
        // The API server appends letters and digits.
        if let Some(text) = base
            && let Err(detail) = name::dns_1123_subdomain(&format!("{}a", text.trim_end_matches('-')))
        {
            faults.push(invalid("generateName", text, detail));
        }
        if let Some(text) = self.text("namespace")
            && let Err(detail) = name::dns_1123_label(text)
        {
            faults.push(invalid("namespace", text, detail));
        }
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(text) = self.text(field)
                && text.parse::<Timestamp>().is_err()
            {
                faults.push(invalid(
                    field,
                    text,
                    "must be an instant, such as 2026-11-27T06:00:00Z: remove it",
                ));
            }
        }
        faults
    }

    fn labels(&self) -> Vec<FieldError> {
        let path = Path::metadata().at("labels");
        let mut faults = Vec::new();
        for (key, value) in self.texts("labels") {
            let of_key = name::qualified_name(key).err().map(|detail| (key.as_str(), detail));
            let of_value = name::label_value(value).err().map(|detail| (value, detail));
            let wrong = of_key.into_iter().chain(of_value);
            faults.extend(wrong.map(|(shown, detail)| FieldError::invalid(path.key(key), shown, detail)));
        }
        faults
    }

    fn annotations(&self) -> Vec<FieldError> {
        let path = Path::metadata().at("annotations");
        let wrong = self.texts("annotations").filter_map(|(key, _)| {
            let detail = name::qualified_name(&key.to_lowercase()).err()?;
            Some(FieldError::invalid(path.key(key), key, detail))
        });
        let mut faults: Vec<_> = wrong.collect();
        let size: usize = self.texts("annotations").map(|(key, text)| key.len() + text.len()).sum();
        if size > LARGEST_ANNOTATIONS {
            let detail = format!("must have at most {LARGEST_ANNOTATIONS} bytes together, have {size}");
            faults.push(FieldError::new(path, Reason::TooLong, detail));
        }
        faults
    }

    fn finalizers(&self) -> Vec<FieldError> {
        let path = Path::metadata().at("finalizers");
        let finalizers = self.0.get("finalizers").and_then(Value::as_array).into_iter().flatten();
        let texts = finalizers.enumerate().filter_map(|(at, one)| Some((at, one.as_str()?)));
        let wrong = texts.filter_map(|(at, text)| {
            let detail = name::qualified_name(text).err()?;
            Some(FieldError::invalid(path.index(at), text, detail))
        });
        wrong.collect()
    }

    fn owners(&self) -> Vec<FieldError> {
        let path = Path::metadata().at("ownerReferences");
        let owners: Vec<_> =
            self.0.get("ownerReferences").and_then(Value::as_array).into_iter().flatten().collect();
        let mut faults = Vec::new();
        for (at, owner) in owners.iter().enumerate() {
            let is_empty = |field: &&str| owner.get(*field).is_some_and(|value| *value == "");
            let empty = ["apiVersion", "kind", "name", "uid"].into_iter().filter(is_empty);
            faults.extend(
                empty.map(|field| FieldError::required(path.index(at).at(field), "must not be empty")),
            );
        }
        if owners.iter().filter(|owner| owner.get("controller") == Some(&Value::Bool(true))).count() > 1 {
            let detail = "at most one of them can have controller: true";
            faults.push(FieldError::forbidden(path, detail));
        }
        faults
    }
}

/// Bytes of all annotations (`TotalAnnotationSizeLimitB`).
const LARGEST_ANNOTATIONS: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(metadata: &Value) -> Vec<String> {
        let object = json!({ "kind": "A", "metadata": metadata, "spec": { "label": 1 } });
        let unknown = unknown_fields(&object).into_iter().map(|path| format!("{path}: unknown"));
        let faults =
            faults(&object).into_iter().map(|fault| format!("{}: {}", fault.path, fault.reason.cause()));
        unknown.chain(faults).collect()
    }

    #[test]
    fn metadata_as_people_write_them_are_accepted() {
        for sound in [
            json!({ "name": "a" }),
            json!({ "generateName": "a-", "creationTimestamp": null, "labels": null }),
            json!({ "name": "a.b", "namespace": "c", "labels": { "app.kubernetes.io/name": "x", "empty": "" },
                "annotations": { "Example.com/Note": "any text\n" }, "finalizers": ["example.com/f"],
                "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controller": true }],
                "managedFields": [{ "manager": "a", "fieldsV1": { "f:spec": {} } }], "uid": "c", "generation": 3, "resourceVersion": "1" }),
        ] {
            assert_eq!(found(&sound), [""; 0], "{sound}");
        }
    }

    #[test]
    fn what_an_api_server_refuses_is_named_by_its_field() {
        for (wrong, expected) in [
            (json!({ "label": {} }), "metadata.label: unknown"),
            (
                json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "id": 1 }] }),
                "metadata.ownerReferences[0].id: unknown",
            ),
            (json!({ "labels": { "a": 1 } }), "metadata.labels[a]: FieldValueTypeInvalid"),
            (json!({ "labels": ["a"] }), "metadata.labels: FieldValueTypeInvalid"),
            (json!({ "annotations": { "a": true } }), "metadata.annotations[a]: FieldValueTypeInvalid"),
            (json!({ "finalizers": "a" }), "metadata.finalizers: FieldValueTypeInvalid"),
            (
                json!({ "ownerReferences": [{ "kind": "Pod", "name": "a", "uid": "b" }] }),
                "metadata.ownerReferences[0].apiVersion: FieldValueRequired",
            ),
            (json!({ "labels": { "a b": "c" } }), "metadata.labels[a b]: FieldValueInvalid"),
            (json!({ "labels": { "a": "b c" } }), "metadata.labels[a]: FieldValueInvalid"),
            (json!({ "annotations": { "a/b/c": "" } }), "metadata.annotations[a/b/c]: FieldValueInvalid"),
            (
                json!({ "annotations": { "a": "x".repeat(300_000) } }),
                "metadata.annotations: FieldValueTooLong",
            ),
            (json!({ "finalizers": ["a b"] }), "metadata.finalizers[0]: FieldValueInvalid"),
            (json!({ "namespace": "A" }), "metadata.namespace: FieldValueInvalid"),
            (json!({ "creationTimestamp": "now" }), "metadata.creationTimestamp: FieldValueInvalid"),
        ] {
            let mut metadata = json!({ "name": "a" });
            json_patch::merge(&mut metadata, &wrong);
            assert_eq!(found(&metadata), [expected], "{wrong}");
        }
        for (wrong, expected) in [
            (json!([]), "metadata: FieldValueTypeInvalid"),
            (json!({ "name": 1 }), "metadata.name: FieldValueTypeInvalid"),
            (json!({ "name": "A_b" }), "metadata.name: FieldValueInvalid"),
            (json!({ "generateName": "A" }), "metadata.generateName: FieldValueInvalid"),
            (json!({}), "metadata.name: FieldValueRequired"),
            (Value::Null, "metadata.name: FieldValueRequired"),
        ] {
            assert_eq!(found(&wrong), [expected], "{wrong}");
        }
    }
}
