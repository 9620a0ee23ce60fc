//! What is kept of the HorizontalPodAutoscalers that are watched. Pure.

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, MetricSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Controller;

/// Takes out of an autoscaler what is never read: nothing but its target, its bounds and the type of its metrics matters.
pub fn trim(autoscaler: &mut HorizontalPodAutoscaler) {
    autoscaler.status = None;
    let metadata = std::mem::take(&mut autoscaler.metadata);
    autoscaler.metadata = ObjectMeta { labels: None, annotations: None, ..metadata };
    super::trim(&mut autoscaler.metadata);
    super::trim_owners(&mut autoscaler.metadata);
    if let Some(spec) = &mut autoscaler.spec {
        let metrics = spec.metrics.take().unwrap_or_default();
        let kept = metrics.into_iter().find(super::tells_of_none);
        spec.metrics = kept.map(|kept| vec![MetricSpec { type_: kept.type_, ..MetricSpec::default() }]);
        spec.behavior = None;
    }
}

/// The name of what an autoscaler scales.
#[must_use]
pub fn name_of_scaled(autoscaler: &HorizontalPodAutoscaler) -> Option<&str> {
    Some(&autoscaler.spec.as_ref()?.scale_target_ref.name)
}

/// Whether two autoscalers differ in nothing that matters.
#[must_use]
pub fn is_same(one: &HorizontalPodAutoscaler, other: &HorizontalPodAutoscaler) -> bool {
    let key = |autoscaler: &HorizontalPodAutoscaler| {
        let metadata = &autoscaler.metadata;
        let owner = Controller::of(metadata);
        let writers = (super::other(metadata), super::other_of_max(metadata));
        (metadata.uid.clone(), metadata.deletion_timestamp.clone(), writers, owner)
    };
    one.spec == other.spec && key(one) == key(other)
}
