//! The bounds of an autoscaler that another client made.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::json;

use crate::controllers::manifest::{Manifest, Place};

/// The bounds, if they are others: the upper one only where it is given, but never below the lower one.
#[must_use]
pub fn bounds(of: &HorizontalPodAutoscaler, least: i32, most: Option<i32>) -> Option<Manifest> {
    let spec = of.spec.as_ref()?;
    let most = most.map(|most| most.max(least));
    let is_so = spec.min_replicas == Some(least) && most.is_none_or(|most| spec.max_replicas == most);
    if is_so || of.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let bounds = match most {
        Some(most) => json!({"spec": {"minReplicas": least, "maxReplicas": most}}),
        None => json!({"spec": {"minReplicas": least}}),
    };
    Some(Manifest::part(Place::of(of), of.metadata.uid.as_deref()?, bounds))
}
