//! Random objects, for properties that hold for every object: made from a definition's schema, so that a new field
//! is covered the day that it is added. Whole ones and parts, sound ones and nonsense.

#![expect(clippy::expect_used, reason = "a test's definition has what it has to have")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};

mod random;

pub use random::Random;

/// A small generator of its own, so that one number reproduces an object.
#[derive(Debug)]
pub struct Source {
    random: Random,
    /// One value in so many is nonsense; 0 for none.
    pub nonsense: u64,
}

impl Source {
    /// The objects that come from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed ^ 0x9E37_79B9_7F4A_7C15), nonsense: 0 }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.roll(bound)
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let index = usize::try_from(self.below(all.len() as u64)).expect("an index");
        all[index].clone()
    }

    /// An object of a definition, as written in one of its versions: any subset of its fields.
    ///
    /// # Panics
    /// When the definition lacks that version, or a schema of it.
    pub fn object(&mut self, definition: &CustomResourceDefinition, version: &str) -> Value {
        let spec = &definition.spec;
        let version = spec.versions.iter().find(|one| one.name == version).expect("the version");
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let schema = schema.expect("its schema");
        let mut object = Map::new();
        object.insert("apiVersion".into(), format!("{}/{}", spec.group, version.name).into());
        object.insert("kind".into(), spec.names.kind.clone().into());
        if self.below(8) > 0 {
            object.insert("metadata".into(), self.metadata());
        }
        for part in ["spec", "status"] {
            if let (Some(schema), true) =
                (schema.properties.as_ref().and_then(|all| all.get(part)), self.below(8) > 0)
            {
                object.insert(part.into(), self.value(schema, 0));
            }
        }
        Value::Object(object)
    }

    fn metadata(&mut self) -> Value {
        let mut metadata = json!({"name": "some", "namespace": "here", "uid": "1-2", "generation": 3});
        if self.below(2) == 0 {
            metadata["annotations"] = json!({"example.org/a": "b"});
        }
        if self.below(2) == 0 {
            metadata["labels"] = json!({"app": "x"});
        }
        metadata
    }

    fn value(&mut self, schema: &JSONSchemaProps, depth: u32) -> Value {
        if self.nonsense > 0 && self.below(self.nonsense) == 0 {
            return self.pick(&[
                json!(null),
                json!(-7),
                json!(1e30),
                json!("?"),
                json!([]),
                json!({"a": [1]}),
                json!(true),
            ]);
        }
        if schema.x_kubernetes_int_or_string == Some(true) {
            return self.pick(&[json!(3), json!("10Gi"), json!("50%")]);
        }
        if let Some(allowed) = &schema.enum_ {
            return self.pick(allowed).0;
        }
        match schema.type_.as_deref() {
            Some("object") => self.fields(schema, depth),
            Some("array") => match &schema.items {
                Some(JSONSchemaPropsOrArray::Schema(each)) => {
                    (0..self.below(4)).map(|_| self.value(each, depth + 1)).collect()
                }
                _ => json!([]),
            },
            Some("integer") => {
                self.pick(&[json!(0), json!(1), json!(18), json!(23), json!(60), json!(10_000)])
            }
            Some("number") => json!(0.5),
            Some("boolean") => self.pick(&[json!(true), json!(false)]),
            _ => self.text(),
        }
    }

    fn text(&mut self) -> Value {
        let (hour, minute) = (self.below(25), self.pick(&[0, 0, 30, 45]));
        self.pick(&[
            json!(format!("{hour:02}:{minute:02}")),
            json!(format!("{hour:02}:00")),
            json!("w0"),
            json!("w1"),
            json!("evening"),
            json!("0 2 * * *"),
            json!("2026-12-24"),
            json!(""),
        ])
    }

    fn fields(&mut self, schema: &JSONSchemaProps, depth: u32) -> Value {
        let mut fields = Map::new();
        let presence = self.pick(&[2, 3, 6]);
        for (name, each) in schema.properties.iter().flatten() {
            if depth < 7 && self.below(presence) == 0 {
                fields.insert(name.clone(), self.value(each, depth + 1));
            }
        }
        if let Some(JSONSchemaPropsOrBool::Schema(each)) = &schema.additional_properties
            && self.below(2) == 0
        {
            fields.insert("example.org/key".into(), self.value(each, depth + 1));
        }
        Value::Object(fields)
    }
}
