//! Judges the bounds of an autoscaler.

use crate::api::field::{Fault, Path, Verdict};
use crate::kinds::tdset::api::v1::{MOST_REPLICAS, TDSetSpec};

/// What is wrong with `maxReplicas`, wherever it stands.
pub(super) fn judge(spec: &TDSetSpec, verdict: &mut Verdict) {
    let path = Path::spec();
    let own = spec.autoscaler.as_ref().and_then(|autoscaler| autoscaler.max_replicas);
    let own = own.map(|most| {
        (path.at("autoscaler").at("maxReplicas"), most, Some(spec.default_replicas), "spec.defaultReplicas")
    });
    let windows = spec.windows().iter().enumerate().filter_map(|(at, window)| {
        let path = path.at("windows").index(at).at("maxReplicas");
        Some((path, window.max_replicas?, Some(window.replicas), "replicas"))
    });
    let exceptions = spec.exceptions().iter().enumerate().filter_map(|(at, exception)| {
        let path = path.at("exceptions").index(at).at("maxReplicas");
        Some((path, exception.max_replicas?, exception.replicas, "replicas"))
    });
    let rules: Vec<_> = windows.chain(exceptions).collect();
    for (path, ..) in &rules {
        if spec.autoscaler.is_none() {
            verdict.deny(Fault::forbidden(path.clone(), "goes with autoscaler"));
        } else if own.is_none() {
            let detail = "needs autoscaler.maxReplicas, which holds at all other times";
            verdict.deny(Fault::forbidden(path.clone(), detail));
        }
    }
    for (path, most, least, field) in own.into_iter().chain(rules) {
        if !(1..=MOST_REPLICAS).contains(&most) {
            verdict.deny(Fault::invalid(path, most, format!("must be from 1 to {MOST_REPLICAS}")));
        } else if least.is_some_and(|least| most < least) {
            verdict.deny(Fault::invalid(path, most, format!("must not be below {field}")));
        }
    }
}
