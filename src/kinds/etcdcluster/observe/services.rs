//! The Services, as against how they should be. Time is an argument.
//!
//! Guarantees: one that is not there, or belongs to another owner, is always found so. One that another client or a
//! webhook changes each time that it is applied counts as it should be after [`TRIES`] within [`PAUSE`], so that it holds
//! nothing up; then it is applied again.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use tokio::time::Instant;

use super::kubernetes::owner;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::observation::{Found, Owner};

/// How often Services that are there are applied before they are left for a while.
const TRIES: u32 = 3;

/// For how long, from the first of these on.
const PAUSE: Duration = Duration::from_mins(10);

/// What was applied, and how often.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    stamps: Vec<String>,
    since: Option<Instant>,
    times: u32,
}

impl Applied {
    /// They have been applied.
    pub const fn count(&mut self) {
        self.times = self.times.saturating_add(1);
    }

    /// How the Services were found, for the cluster of that uid.
    pub fn look(&mut self, services: &[(Manifest, Option<Service>)], cluster: &str, now: Instant) -> Found {
        let stamps: Vec<_> =
            services.iter().filter_map(|(manifest, _)| manifest.stamp().map(ToOwned::to_owned)).collect();
        let is_over = self.since.is_none_or(|since| now.duration_since(since) >= PAUSE);
        if is_over || self.stamps != stamps {
            *self = Self { stamps, since: Some(now), times: 0 };
        }
        let there = || services.iter().filter_map(|(manifest, service)| Some((manifest, service.as_ref()?)));
        let is_left = self.times >= TRIES;
        let right = there().filter(|(manifest, service)| is_left || !manifest.missing_from(service));
        if there().any(|(_, service)| owner(&service.metadata, cluster) == Owner::Foreign) {
            Found::Foreign
        } else if right.count() == services.len() {
            Found::Current
        } else {
            Found::Outdated
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::etcdcluster::resources::services::manifests;
    use crate::kinds::etcdcluster::resources::tests::cluster;

    type Services = Vec<(Manifest, Option<Service>)>;

    fn made(overrides: &serde_json::Value) -> Services {
        let made = |manifest: Manifest| {
            let service = serde_json::from_value(manifest.object.clone()).unwrap();
            (manifest, Some(service))
        };
        manifests(&cluster(overrides)).into_iter().map(made).collect()
    }

    fn uid() -> String {
        cluster(&json!({})).uid().to_owned()
    }

    /// The selector of the one for clients is another one.
    fn changed(mut services: Services) -> Services {
        let service = services[1].1.as_mut().unwrap();
        service.spec.as_mut().unwrap().selector = None;
        services
    }

    #[test]
    fn services_that_another_client_changes_each_time_are_left_for_a_while() {
        let (begun, mut applied) = (Instant::now(), Applied::default());
        let mut look = |services: &Services, second| {
            let found = applied.look(services, &uid(), begun + Duration::from_secs(second));
            if found == Found::Outdated {
                applied.count();
            }
            found
        };
        let (sound, changed) = (made(&json!({})), changed(made(&json!({}))));
        assert_eq!(look(&sound, 0), Found::Current);
        let found: Vec<_> = (1..=6).map(|second| look(&changed, second)).collect();
        assert_eq!(found, [[Found::Outdated; 3], [Found::Current; 3]].concat());
        let mut gone = changed.clone();
        gone[0].1 = None;
        assert_eq!(look(&gone, 7), Found::Outdated, "one is not there");
        assert_eq!(look(&changed, 8), Found::Current);
        assert_eq!(look(&changed, 601), Found::Outdated, "it is tried again");
        let others = self::changed(made(&json!({"clientService": {"annotations": {"a": "b"}}})));
        assert_eq!(look(&changed, 602), Found::Outdated);
        assert_eq!(look(&changed, 603), Found::Outdated);
        assert_eq!(look(&changed, 604), Found::Current);
        assert_eq!(look(&others, 605), Found::Outdated, "something else is asked for");
    }

    #[test]
    fn a_service_of_another_owner_is_told_from_one_that_is_not_there() {
        let mut applied = Applied::default();
        let mut services = made(&json!({}));
        services[0].1 = None;
        assert_eq!(applied.look(&services, &uid(), Instant::now()), Found::Outdated);
        assert_eq!(applied.look(&services, "another", Instant::now()), Found::Foreign);
    }
}
