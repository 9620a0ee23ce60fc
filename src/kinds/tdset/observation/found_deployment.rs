//! A Deployment as it is watched: its count and its state are read, and the rest of its spec stays text. Pure.
//!
//! The spec is asked for as a whole where it has changed: whether all that is asked for is there
//! ([`Manifest::deviation`](crate::controllers::manifest::Manifest::deviation)). As text it takes an eighth of the
//! memory that its types take, and no time in each event of the watch. The same goes for labels and annotations: a map of
//! one takes half a kilobyte.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::found_metadata::{self, is_same_metadata};
use crate::controllers::difference::Difference;

/// A Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundDeployment {
    /// Its metadata, as far as they are read; without labels and annotations once it is trimmed.
    pub metadata: ObjectMeta,
    /// Those, as the text of metadata that has nothing else.
    marks: Option<Box<str>>,
    /// The managed fields of other clients that own more of its spec than the count, as text. Few Deployments have any.
    others: Option<Box<str>>,
    /// What it is to be.
    pub spec: FoundSpec,
    /// What it is.
    pub status: DeploymentStatus,
}

impl<'de> Deserialize<'de> for FoundDeployment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Found {
            #[serde(default, deserialize_with = "found_metadata::metadata_and_others")]
            metadata: (ObjectMeta, Vec<ManagedFieldsEntry>),
            #[serde(default)]
            spec: FoundSpec,
            #[serde(default)]
            status: DeploymentStatus,
        }
        let Found { metadata: (metadata, others), spec, status } = Found::deserialize(deserializer)?;
        let others = Some(others).filter(|others| !others.is_empty());
        let others =
            others.and_then(|others| serde_json::to_string(&others).ok()).map(String::into_boxed_str);
        Ok(Self { metadata, marks: None, others, spec, status })
    }
}

impl FoundDeployment {
    /// The count that it has; absent means 1.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    /// Takes out what is never read, as far as it was read at all.
    pub fn trim(&mut self) {
        let ObjectMeta { labels, annotations, .. } = &mut self.metadata;
        let marks =
            ObjectMeta { labels: labels.take(), annotations: annotations.take(), ..ObjectMeta::default() };
        self.marks = serde_json::to_string(&marks).ok().map(String::into_boxed_str);
        if let Some(conditions) = &mut self.status.conditions {
            conditions.retain(has_given_up);
        }
    }

    /// Whether it has given up waiting for its pods.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.status.conditions.iter().flatten().any(has_given_up)
    }

    /// How much the Deployment differs from what it was `before`.
    #[must_use]
    pub fn difference(before: &Self, after: &Self) -> Difference {
        let is_same_but_for_status = before.spec == after.spec
            && before.marks == after.marks
            && before.others == after.others
            && is_same_metadata(&before.metadata, &after.metadata);
        if !is_same_but_for_status || before.words() != after.words() {
            Difference::More
        } else if before.numbers() != after.numbers() {
            Difference::Numbers
        } else {
            Difference::Nothing
        }
    }

    /// How many replicas there are, are ready, are of the current template, and are available.
    #[must_use]
    pub fn numbers(&self) -> [i32; 4] {
        let DeploymentStatus { replicas, ready_replicas, updated_replicas, available_replicas, .. } =
            &self.status;
        [replicas, ready_replicas, updated_replicas, available_replicas].map(|number| number.unwrap_or(0))
    }

    /// What the conditions of its TDSet say of its status, beside numbers.
    fn words(&self) -> [bool; 4] {
        let (count, [has, ready, updated, available]) = (self.replicas(), self.numbers());
        let rolls = !self.is_seen() || has != count || updated < has;
        let lacks = !rolls && available < count;
        [self.is_seen() && ready >= count, rolls, lacks, lacks && self.is_stuck()]
    }

    /// Whether the status speaks of the spec as it is now.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.status.observed_generation >= self.metadata.generation
    }

    /// Whether the two have the same labels and annotations.
    #[must_use]
    pub fn is_marked_as(&self, other: &Self) -> bool {
        let Self { metadata, marks, .. } = other;
        (&self.marks, &self.metadata.labels, &self.metadata.annotations)
            == (marks, &metadata.labels, &metadata.annotations)
    }
}

/// Whether a Deployment says by a condition that it has given up.
fn has_given_up(condition: &DeploymentCondition) -> bool {
    (condition.type_.as_str(), condition.status.as_str()) == ("Progressing", "False")
}

impl Serialize for FoundDeployment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'a> {
            metadata: ObjectMeta,
            spec: &'a FoundSpec,
            status: &'a DeploymentStatus,
        }
        let Self { metadata, marks, others, spec, status } = self;
        let mut metadata = metadata.clone();
        if let Some(others) = others {
            metadata.managed_fields = Some(serde_json::from_str(others).map_err(S::Error::custom)?);
        }
        if let Some(marks) = marks {
            let marks: ObjectMeta = serde_json::from_str(marks).map_err(S::Error::custom)?;
            (metadata.labels, metadata.annotations) = (marks.labels, marks.annotations);
        }
        Whole { metadata, spec, status }.serialize(serializer)
    }
}

/// The spec of a Deployment.
#[derive(Clone, Debug, Default)]
pub struct FoundSpec {
    /// The count.
    replicas: Option<i32>,
    /// All of it; none where there is none.
    text: Option<Box<RawValue>>,
}

impl PartialEq for FoundSpec {
    fn eq(&self, other: &Self) -> bool {
        self.text.as_ref().map(|text| text.get()) == other.text.as_ref().map(|text| text.get())
    }
}

impl<'de> Deserialize<'de> for FoundSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        struct Counted {
            replicas: Option<i32>,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let counted: Option<Counted> = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { replicas: counted.unwrap_or_default().replicas, text: Some(text) })
    }
}

impl Serialize for FoundSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl Resource for FoundDeployment {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(kind: &()) -> Cow<'_, str> {
        Deployment::kind(kind)
    }

    fn group(kind: &()) -> Cow<'_, str> {
        Deployment::group(kind)
    }

    fn version(kind: &()) -> Cow<'_, str> {
        Deployment::version(kind)
    }

    fn plural(kind: &()) -> Cow<'_, str> {
        Deployment::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::deviation::Deviation;
    use crate::controllers::manifest::{Manifest, Place};
    use crate::kinds::tdset::names::MANAGER;

    #[test]
    fn its_count_is_read_and_all_of_its_spec_is_there_to_compare_with() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}});
        let found: FoundDeployment = serde_json::from_str(&object.to_string()).unwrap();
        assert_eq!(found.replicas(), 3);
        let lacks = |spec: Value| {
            let place = Place::of(&found);
            Manifest { place, object: json!({"spec": spec}) }.missing_from(&found)
        };
        assert!(!lacks(json!({"template": {"spec": {"containers": [{"name": "a"}]}}})));
        assert!(lacks(json!({"template": {"spec": {"containers": [{"name": "a", "image": "c"}]}}})));
        for without in [json!({"metadata": {}}), json!({"spec": {}}), json!({"spec": null})] {
            let found: FoundDeployment = serde_json::from_str(&without.to_string()).unwrap();
            assert_eq!(found.replicas(), 1, "{without}");
        }
    }

    #[test]
    fn what_other_clients_added_to_its_spec_is_found_and_the_count_is_not() {
        let deviation = |manager: &str, fields: Value| {
            let entry = json!({"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": fields}});
            let object = json!({"metadata": {"name": "shop", "managedFields": [entry]},
                "spec": {"replicas": 3, "paused": true, "minReadySeconds": 5}});
            let mut found: FoundDeployment = serde_json::from_str(&object.to_string()).unwrap();
            found.trim();
            let object = json!({"kind": "Deployment", "spec": {"minReadySeconds": 5}});
            let deviation = Manifest { place: Place::of(&found), object }.deviation(&found, MANAGER);
            (deviation, found.others.is_some())
        };
        assert_eq!(deviation("kubectl", json!({"f:paused": {}})), (Deviation::Added, true));
        assert_eq!(deviation(MANAGER, json!({"f:paused": {}})), (Deviation::Added, true));
        assert_eq!(deviation("kubectl", json!({"f:replicas": {}})), (Deviation::Nothing, false));
        assert_eq!(deviation("kubectl", json!({"f:minReadySeconds": {}})), (Deviation::Nothing, true));
    }

    #[test]
    fn of_its_conditions_those_are_kept_that_say_that_it_has_given_up() {
        let conditions = |status: &str| json!([{"type": "Available", "status": "True"}, {"type": "Progressing", "status": status}]);
        for (status, is_stuck, left) in [("True", false, 0), ("False", true, 1)] {
            let object = json!({"status": {"conditions": conditions(status), "readyReplicas": 2}});
            let mut found: FoundDeployment = serde_json::from_value(object).unwrap();
            found.trim();
            assert_eq!(
                (found.is_stuck(), found.status.conditions.map(|left| left.len())),
                (is_stuck, Some(left))
            );
        }
    }

    #[test]
    fn its_labels_and_annotations_are_there_to_compare_with_once_it_is_trimmed() {
        let trimmed = |labels: Value, annotations: Value| {
            let object = json!({"metadata": {"name": "shop", "labels": labels, "annotations": annotations}});
            let mut found: FoundDeployment = serde_json::from_value(object).unwrap();
            found.trim();
            found
        };
        let found = trimmed(json!({"a": "b", "c": "d"}), json!({"e": "f"}));
        assert_eq!((&found.metadata.labels, &found.metadata.annotations), (&None, &None));
        let lacks = |metadata: Value| {
            Manifest { place: Place::of(&found), object: json!({"metadata": metadata}) }.missing_from(&found)
        };
        assert!(!lacks(json!({"labels": {"a": "b"}, "annotations": {"e": "f"}, "name": "shop"})));
        assert!(lacks(json!({"labels": {"a": "c"}})) && lacks(json!({"annotations": {"e": "g"}})));
        assert!(found.is_marked_as(&trimmed(json!({"c": "d", "a": "b"}), json!({"e": "f"}))));
        assert!(!found.is_marked_as(&trimmed(json!({"a": "b"}), json!({"e": "f"}))));
        assert!(!found.is_marked_as(&trimmed(json!({"a": "b", "c": "d"}), json!({}))));
    }
}
