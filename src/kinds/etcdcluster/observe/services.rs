//! The Services, as against how they should be, and how often an object is put back. Time is an argument.
//!
//! Guarantees: a Service that is not there, or belongs to another owner, is always found so. An object that another client
//! or a webhook changes each time that it is applied counts as it should be after [`TRIES`] within [`PAUSE`], so that it
//! holds nothing up; then it is applied again.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use tokio::time::Instant;

use super::kubernetes::owner;
use crate::controllers::deviation::Deviation;
use crate::controllers::manifest::Manifest;
use crate::kinds::etcdcluster::names::MANAGER;
use crate::kinds::etcdcluster::observation::{Found, Owner};

/// How often an object that is there is applied before it is left for a while.
const TRIES: u32 = 3;

/// For how long, from the first of these on.
const PAUSE: Duration = Duration::from_mins(10);

/// What was applied, and how often, by the names of the objects.
#[derive(Clone, Debug, Default)]
pub struct Applied(BTreeMap<String, Tries>);

/// How often an object that was there had to be applied.
#[derive(Clone, Debug)]
struct Tries {
    stamp: Option<String>,
    since: Instant,
    times: u32,
    /// Whether it has to be now.
    is_due: bool,
}

impl Applied {
    /// All that had to be have been applied; the names of the objects that are left for a while from now on.
    pub fn count(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        for (name, tries) in self.0.iter_mut().filter(|(_, tries)| tries.is_due) {
            tries.times = tries.times.saturating_add(1);
            if tries.times == TRIES {
                left.push(name.clone());
            }
        }
        left
    }

    /// How the Services were found, for the cluster of that uid.
    pub fn look(&mut self, services: &[(Manifest, Option<Service>)], cluster: &str, now: Instant) -> Found {
        self.0.values_mut().for_each(|tries| tries.is_due = false);
        let mut found = Found::Current;
        for (manifest, service) in services {
            let is_right = match service {
                Some(service) if owner(&service.metadata, cluster) == Owner::Foreign => {
                    return Found::Foreign;
                }
                Some(service) => self.is_right(manifest, service, now),
                None => false,
            };
            if !is_right {
                found = Found::Outdated;
            }
        }
        found
    }

    /// Whether a Service is as it should be, or is left for a while.
    fn is_right(&mut self, manifest: &Manifest, service: &Service, now: Instant) -> bool {
        let stamp = manifest.stamp().map(ToOwned::to_owned);
        let deviates = manifest.deviation(service, MANAGER) != Deviation::Nothing;
        !self.is_due((&format!("Service {}", manifest.place.name), stamp), deviates, now)
    }

    /// Whether the object of that name, which deviates or not, is to be applied now, and is not left for a while.
    pub fn is_due(&mut self, (name, stamp): (&str, Option<String>), deviates: bool, now: Instant) -> bool {
        let tries = self.0.entry(name.to_owned()).or_insert_with(|| Tries::first(stamp.clone(), now));
        if tries.stamp != stamp || now.duration_since(tries.since) >= PAUSE {
            *tries = Tries::first(stamp, now);
        }
        tries.is_due = deviates && tries.times < TRIES;
        tries.is_due
    }
}

impl Tries {
    const fn first(stamp: Option<String>, since: Instant) -> Self {
        Self { stamp, since, times: 0, is_due: false }
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
        let mut both = changed.clone();
        both[0].1.as_mut().unwrap().spec.as_mut().unwrap().publish_not_ready_addresses = None;
        assert_eq!(look(&both, 7), Found::Outdated, "another one is changed for the first time");
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
