//! The bounds of an autoscaler that another client made.
//!
//! Merged and not applied: a field that is applied once and then left out is taken away, and an autoscaler without its
//! upper bound is refused.

use serde_json::json;

use crate::controllers::api_write::{ApiWrite, Merge};
use crate::controllers::manifest::Manifest;
use crate::kinds::tdset::names::COUNT_MANAGER;
use crate::kinds::tdset::observation::Bounds;

/// The bounds, if they are others: the upper one only where it is given.
#[must_use]
pub fn bounds(of: &Bounds, min: i32, max: Option<i32>) -> Option<ApiWrite> {
    let (min_field, max_field) = of.fields();
    let (min_is_so, max_is_so) = (of.min() == min, max.is_none_or(|max| of.max() == max));
    if (min_is_so && max_is_so) || of.is_deleting {
        return None;
    }
    let mut bounds = json!({min_field: min});
    if let Some(max) = max {
        bounds[max_field] = max.into();
    }
    Some(ApiWrite::Merge(Merge {
        manifest: Manifest::part(of.place.clone(), &of.uid, json!({"spec": bounds})),
        manager: COUNT_MANAGER,
        scale: false,
        seen: of.resource_version.clone(),
    }))
}
