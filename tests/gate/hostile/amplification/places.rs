//! The places of a review that are filled, and what with.

use gatehouse::api::bounded::MOST_PARTS;
use gatehouse::api::lens::memory::PREFIX;
use gatehouse::api::{Kind, Version, schema};
use gatehouse::kinds::KINDS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kit::examples::smallest;
use serde_json::{Map, Value, json};

use crate::hostile::UID;

/// One step to a place.
#[derive(Clone)]
pub enum Step {
    Field(String),
    Item,
    Key,
}

/// In what a place is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// The object.
    Object,
    /// The object, in which it stands as a text.
    Text,
    /// The request, beside the object.
    Request,
}

/// A list or map of a version of a kind, or a field that it does not know; or one of the request.
pub struct Place {
    pub kind: &'static str,
    pub version: Version,
    pub within: Within,
    pub steps: Vec<Step>,
    /// A sound object.
    sound: Value,
}

/// What stands in a place until it is filled.
pub const HERE: &str = "HERE";

impl Place {
    pub fn of(kind: &dyn Kind, version: Version, within: Within, steps: Vec<Step>) -> Self {
        let mut sound = smallest(kind, version);
        (sound["metadata"]["name"], sound["metadata"]["namespace"]) = (json!("a"), json!("b"));
        Self { kind: kind.names().kind, version, within, steps, sound }
    }

    pub fn name(&self) -> String {
        let steps = self.steps.iter().map(|step| match step {
            Step::Field(name) => format!(".{name}"),
            Step::Item => "[]".to_owned(),
            Step::Key => "{}".to_owned(),
        });
        let steps = steps.collect::<String>();
        match self.within {
            Within::Request => format!("request{steps}"),
            _ => format!("{} {} {steps}", self.kind, self.version),
        }
    }

    /// What is in it counts among the parts of the object on all paths. What a conversion passes on as it came does not.
    pub fn is_counted(&self) -> bool {
        let is_part =
            matches!(self.steps.first(), Some(Step::Field(name)) if name == "spec" || name == "status");
        self.within == Within::Object && is_part
    }

    /// The version that it is converted to.
    pub fn other(&self) -> &'static str {
        let other = Version::ALL.into_iter().find(|version| *version != self.version).unwrap();
        other.api_version()
    }

    /// The reviews of an object that are sound but for what is in the place: what is asked, and the whole text.
    pub fn reviews(&self, filling: &str) -> [(&'static str, String); 4] {
        let (mut object, mut request) = (self.sound.clone(), json!({"uid": UID}));
        let around = if self.within == Within::Request { &mut request } else { &mut object };
        if self.steps.is_empty() {
            around[HERE] = HERE.into();
        } else {
            *place(around, &self.steps) = HERE.into();
        }
        let kind = json!({"group": "gatehouse.dev", "version": self.version.as_str(), "kind": self.kind});
        let quoted = (self.within == Within::Text).then(|| Value::from(filling).to_string());
        let review = |version: &str, kind: &str, more: Value| {
            let mut request = request.clone();
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let text = json!({"apiVersion": version, "kind": kind, "request": request}).to_string();
            let keys = filling.trim_matches(['{', '}']);
            text.replace(&format!("\"{HERE}\":\"{HERE}\""), keys)
                .replace(&format!("\"{HERE}\""), quoted.as_deref().unwrap_or(filling))
        };
        let admission = |operation: &str, old: &Value| {
            let more = json!({"kind": kind, "requestKind": kind, "name": "a", "namespace": "b",
                "operation": operation, "object": object, "oldObject": old});
            review("admission.k8s.io/v1", "AdmissionReview", more)
        };
        let more = json!({"desiredAPIVersion": self.other(), "objects": [object]});
        let update = admission("UPDATE", &object);
        [
            ("/mutate", admission("CREATE", &Value::Null)),
            ("/mutate", update.clone()),
            ("/validate", update),
            ("/convert", review("apiextensions.k8s.io/v1", "ConversionReview", more)),
        ]
    }
}

/// What stands there, below objects and lists of one item that are made on the way.
fn place<'a>(mut value: &'a mut Value, steps: &[Step]) -> &'a mut Value {
    for step in steps {
        if let (Step::Field(_) | Step::Key, false) = (step, value.is_object()) {
            *value = Value::Object(Map::new());
        }
        value = match step {
            Step::Field(name) => &mut value[name],
            Step::Key => &mut value["a"],
            Step::Item => {
                *value = json!([null]);
                &mut value[0]
            }
        };
    }
    value
}

/// Steps through these fields.
pub fn fields(names: &[&str]) -> Vec<Step> {
    names.iter().map(|name| Step::Field((*name).to_owned())).collect()
}

/// Every list and map below a schema.
fn walk(schema: &JSONSchemaProps, steps: &[Step], found: &mut Vec<Vec<Step>>) {
    let below = |step: Step| [steps, &[step]].concat();
    for (name, field) in schema.properties.iter().flatten() {
        walk(field, &below(Step::Field(name.clone())), found);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        found.push(steps.to_vec());
        walk(item, &below(Step::Item), found);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
        found.push(steps.to_vec());
        walk(value, &below(Step::Key), found);
    }
}

/// All of them.
pub fn places() -> Vec<Place> {
    // First and in this order, so that each run has shapes that fit them.
    let around: [&[&str]; 5] =
        [&["userInfo", "extra"], &["userInfo", "groups"], &["unknown"], &["options"], &[]];
    let around = around.map(fields);
    let mut places: Vec<_> =
        around.map(|steps| Place::of(KINDS[0], Version::V1, Within::Request, steps)).into();
    let remembered = format!("{PREFIX}spec.windows");
    for kind in KINDS {
        let definition = kind.definition();
        for version in Version::ALL {
            let known: [&[&str]; 5] = [
                &["unknown"],
                &["spec", "unknown"],
                &["metadata", "labels"],
                &["metadata", "annotations"],
                &["metadata", "managedFields"],
            ];
            let mut found = known.map(fields).to_vec();
            walk(schema::of(&definition, version).unwrap(), &[], &mut found);
            places.extend(found.into_iter().map(|steps| Place::of(*kind, version, Within::Object, steps)));
            let steps = fields(&["metadata", "annotations", &remembered]);
            places.push(Place::of(*kind, version, Within::Text, steps));
        }
    }
    places
}

/// What a place is filled with, and how many parts each of it counts.
pub const SHAPES: [(&str, usize); 6] =
    [("0", 1), ("{}", 7), ("[]", 1), ("[0]", 2), ("keys", 1), ("{\"a\":0}", 8)];

/// So many of a shape.
pub fn filling(shape: &str, count: usize) -> String {
    if shape == "keys" {
        let keys: Vec<_> = (0..count).map(|key| format!("\"{key:x}\":0")).collect();
        return format!("{{{}}}", keys.join(","));
    }
    format!("[{}]", vec![shape; count].join(","))
}

/// How often a shape goes into 1 MiB, and how often into a review that is read to its end.
pub fn counts(shape: &str, parts: usize) -> [usize; 2] {
    let length = if shape == "keys" { 10 } else { shape.len() + 1 };
    [(1 << 20) / length, (MOST_PARTS - 500) / parts]
}
