//! An autoscaler, as far as its bounds go: a HorizontalPodAutoscaler, or a ScaledObject of KEDA. Pure.
//!
//! Assumes, of HorizontalPodAutoscalers: one leaves a workload of no replicas alone, unless it has brought it there
//! itself, as those with metrics of the types Object and External do whose lower bound is 0, from Kubernetes 1.37 on
//! (kubernetes `pkg/controller/podautoscaler/horizontal.go`). Of ScaledObjects: an absent lower bound is 0 and an absent
//! upper one 100 (KEDA `apis/keda/v1alpha1/scaledobject_types.go`).

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, MetricSpec};
use kube::Resource as _;
use kube::core::DynamicObject;
use serde_json::Value;

use super::{Controller, ObjectKey, Writer};
use crate::controllers::manifest::Place;
use crate::kinds::tdset::api::v1::AutoscalerKind;

/// The upper bound of a ScaledObject that names none.
const MOST_OF_SCALED_OBJECTS: i32 = 100;

/// An autoscaler, as far as its bounds go.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// What it is.
    pub kind: AutoscalerKind,
    /// Where it is.
    pub place: Place,
    /// Which one it is.
    pub uid: String,
    /// The state of it that was read.
    pub resource_version: Option<String>,
    /// The lower bound, as it is written.
    pub written_min: Option<i32>,
    /// The upper bound, as it is written.
    pub written_max: Option<i32>,
    /// A count below the lower bound at which it keeps the workload while nothing is to be done.
    pub idle: Option<i32>,
    /// Whether an annotation has it leave the workload as it is.
    pub is_paused: bool,
    /// Who wrote the lower bound last.
    pub writer: Writer,
    /// Who wrote the upper one last.
    pub writer_of_max: Writer,
    /// Whether it may have a lower bound of 0, with which it goes to 0 and comes back by itself.
    pub goes_to_zero: bool,
    /// What has made it.
    pub controller: Option<Controller>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What it scales, if it says so.
    pub scales: Option<ObjectKey>,
}

impl Bounds {
    /// Those of a HorizontalPodAutoscaler. One that has a lower bound of 0 goes to 0.
    #[must_use]
    pub fn of(found: &HorizontalPodAutoscaler) -> Self {
        let spec = found.spec.as_ref();
        let written_min = spec.and_then(|spec| spec.min_replicas);
        Self {
            kind: AutoscalerKind::HorizontalPodAutoscaler,
            place: Place::of(found),
            uid: found.metadata.uid.clone().unwrap_or_default(),
            resource_version: found.metadata.resource_version.clone(),
            written_min,
            written_max: spec.map(|spec| spec.max_replicas),
            idle: None,
            is_paused: false,
            writer: Writer::of(&found.metadata),
            writer_of_max: Writer::of_max(&found.metadata),
            goes_to_zero: written_min == Some(0),
            controller: Controller::of(&found.metadata),
            is_deleting: found.metadata.deletion_timestamp.is_some(),
            scales: Self::scaled(found),
        }
    }

    /// What a HorizontalPodAutoscaler scales.
    #[must_use]
    pub fn scaled(found: &HorizontalPodAutoscaler) -> Option<ObjectKey> {
        let target = &found.spec.as_ref()?.scale_target_ref;
        let namespace = found.metadata.namespace.as_deref()?;
        Some(ObjectKey::referred(target.api_version.as_deref()?, &target.kind, namespace, &target.name))
    }

    /// Whether a HorizontalPodAutoscaler scales that workload. Asked of all in a namespace, most of which name another.
    #[must_use]
    pub fn scale(found: &HorizontalPodAutoscaler, workload: &ObjectKey) -> bool {
        let target = found.spec.as_ref().map(|spec| &spec.scale_target_ref);
        target.is_some_and(|target| target.name == workload.name)
            && Self::scaled(found).as_ref() == Some(workload)
    }

    /// Those of a ScaledObject at `place`, whose managed fields are trimmed.
    #[must_use]
    pub fn of_scaled_object(found: &DynamicObject, place: Place) -> Self {
        let count = |field: &str| {
            let count = found.data.pointer(field).and_then(Value::as_i64)?;
            i32::try_from(count).ok()
        };
        let text = |field: &str| found.data.pointer(field).and_then(Value::as_str);
        let scales = text("/spec/scaleTargetRef/name").map(|name| {
            // KEDA's own defaults.
            let api_version = text("/spec/scaleTargetRef/apiVersion").filter(|text| !text.is_empty());
            let kind = text("/spec/scaleTargetRef/kind").filter(|text| !text.is_empty());
            let (api_version, kind) = (api_version.unwrap_or("apps/v1"), kind.unwrap_or("Deployment"));
            ObjectKey::referred(api_version, kind, &place.namespace, name)
        });
        Self {
            kind: AutoscalerKind::ScaledObject,
            uid: found.meta().uid.clone().unwrap_or_default(),
            resource_version: found.meta().resource_version.clone(),
            written_min: count("/spec/minReplicaCount"),
            written_max: count("/spec/maxReplicaCount"),
            idle: count("/spec/idleReplicaCount"),
            is_paused: found.meta().annotations.iter().flatten().any(|(name, value)| pauses(name, value)),
            writer: Writer::of(found.meta()),
            writer_of_max: Writer::of_max(found.meta()),
            goes_to_zero: true,
            controller: Controller::of(found.meta()),
            is_deleting: found.meta().deletion_timestamp.is_some(),
            scales,
            place,
        }
    }

    /// The names of the two fields, as the spec of the autoscaler has them.
    #[must_use]
    pub const fn fields(&self) -> (&'static str, &'static str) {
        match self.kind {
            AutoscalerKind::HorizontalPodAutoscaler => ("minReplicas", "maxReplicas"),
            AutoscalerKind::ScaledObject => ("minReplicaCount", "maxReplicaCount"),
        }
    }

    /// The lower bound that holds.
    #[must_use]
    pub fn min(&self) -> i32 {
        self.written_min.unwrap_or(match self.kind {
            AutoscalerKind::HorizontalPodAutoscaler => 1,
            AutoscalerKind::ScaledObject => 0,
        })
    }

    /// The upper bound that holds.
    #[must_use]
    pub fn max(&self) -> i32 {
        self.written_max.unwrap_or(MOST_OF_SCALED_OBJECTS)
    }

    /// Whether it leaves a workload of that count as it is, while it is at work and not paused.
    #[must_use]
    pub fn allows(&self, count: i32) -> bool {
        (self.min()..=self.max()).contains(&count) || self.idle == Some(count)
    }

    /// The least that the lower bound can be.
    #[must_use]
    pub fn least_min(&self) -> i32 {
        i32::from(!self.goes_to_zero)
    }

    /// What the lower bound can be that is nearest to that one, beside that upper one, or the present one where none is
    /// given.
    #[must_use]
    pub fn nearest_min(&self, min: i32, max: Option<i32>) -> i32 {
        min.max(self.least_min()).min(max.unwrap_or_else(|| self.max()))
    }

    /// Whether it leaves 0 by itself, whichever client scaled the workload to 0. KEDA does, up to `minReplicaCount`
    /// (`pkg/scaling/executor/scale_scaledobjects.go` of v2.21.0).
    #[must_use]
    pub fn leaves_zero(&self) -> bool {
        self.kind == AutoscalerKind::ScaledObject
    }

    /// Whether a HorizontalPodAutoscaler has a metric that exists for a workload of no replicas.
    #[must_use]
    pub fn measures_none(found: &HorizontalPodAutoscaler) -> bool {
        let metrics = found.spec.iter().filter_map(|spec| spec.metrics.as_ref()).flatten();
        metrics.into_iter().any(tells_of_none)
    }

    /// `HorizontalPodAutoscaler web`.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{} {}", self.kind.as_str(), self.place.name)
    }
}

/// Whether an annotation pauses a ScaledObject: at a count of its own, or as the workload is (KEDA
/// `apis/keda/v1alpha1/scaledobject_types.go`).
fn pauses(name: &str, value: &str) -> bool {
    let is_set = matches!(value, "true" | "1" | "t" | "T" | "True" | "TRUE");
    name == "autoscaling.keda.sh/paused-replicas" || (name == "autoscaling.keda.sh/paused" && is_set)
}

/// Whether a metric exists for a workload of no replicas: it is not one of its pods.
#[must_use]
pub fn tells_of_none(metric: &MetricSpec) -> bool {
    ["Object", "External"].contains(&metric.type_.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::FieldOwner;
    use super::*;

    #[test]
    fn each_bound_has_its_own_writer() {
        let managed = |min: &str, max: &str| {
            let entry =
                |manager: &str, field: &str| json!({"manager": manager, "fieldsV1": {"f:spec": {field: {}}}});
            json!({"name": "web", "namespace": "default",
                "managedFields": [entry("of-min", min), entry("of-max", max)]})
        };
        let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let autoscaler = json!({"metadata": managed("f:minReplicas", "f:maxReplicas"),
            "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 2}});
        let scaled_object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": managed("f:minReplicaCount", "f:maxReplicaCount"),
            "spec": {"scaleTargetRef": {"name": "web"}, "minReplicaCount": 1, "maxReplicaCount": 2}});
        let autoscaler: HorizontalPodAutoscaler = serde_json::from_value(autoscaler).unwrap();
        let scaled_object: DynamicObject = serde_json::from_value(scaled_object).unwrap();
        let place = Place::of(&autoscaler);
        for bounds in [Bounds::of(&autoscaler), Bounds::of_scaled_object(&scaled_object, place)] {
            let by = |manager: &str| Writer::Other(FieldOwner { manager: manager.to_owned(), time: None });
            assert_eq!(
                (bounds.writer, bounds.writer_of_max),
                (by("of-min"), by("of-max")),
                "{:?}",
                bounds.kind
            );
        }
    }
}
