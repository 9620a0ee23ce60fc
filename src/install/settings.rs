//! The settings that an installation is made with, and their note on what is installed. Pure.
//!
//! Guarantees: what is noted by one gate is read as the same settings by another of the same release.
//! Assumes: what no gate of this release has noted was changed by a person, and counts as no note: it is put right like
//! any other change.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{Address, INSTALLED_WITH, Plan, Served};
use crate::certs::certificate::Bundle;

/// What replicas may have set differently from each other: in a rolling change, the old ones and the new ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Where the API server finds the gate.
    pub address: Address,
    /// The namespaces whose objects are validated; none for all.
    pub namespaces: BTreeSet<String>,
    /// The versions by which our kinds are served.
    pub served_versions: Served,
    /// The ClusterRole that owns the webhook configurations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_role: Option<String>,
}

impl Settings {
    /// Those of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        Self {
            address: plan.address.clone(),
            namespaces: plan.namespaces.clone(),
            served_versions: plan.served.clone(),
            cluster_role: plan.cluster_role.clone(),
        }
    }

    /// Those that are noted on an object.
    #[must_use]
    pub fn noted(annotations: &BTreeMap<String, String>) -> Option<Self> {
        serde_json::from_str(annotations.get(INSTALLED_WITH)?).ok()
    }

    /// Notes them on an object.
    pub fn note(&self, metadata: &mut ObjectMeta) {
        let Ok(text) = serde_json::to_string(self) else { return };
        metadata.annotations.get_or_insert_default().insert(INSTALLED_WITH.to_owned(), text);
    }

    /// What is installed with them and that bundle, in all else like `plan`.
    #[must_use]
    pub fn planned(self, plan: &Plan, bundle: Option<Bundle>) -> Plan {
        let Self { address, namespaces, served_versions, cluster_role } = self;
        Plan {
            address,
            namespaces,
            served: served_versions,
            cluster_role,
            replaces_newer: plan.replaces_newer,
            bundle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_as_the_same_settings() {
        let service = Address::Service { name: "a".to_owned(), namespace: "b".to_owned(), port: 443 };
        let plan = Plan {
            namespaces: ["shop".to_owned()].into(),
            served: Served::hub(),
            cluster_role: Some("gatehouse".to_owned()),
            ..Plan::at(service)
        };
        let outside = Plan::at(Address::from_url("https://[::1]:9443").unwrap());
        for plan in [plan, outside] {
            let settings = Settings::of(&plan);
            let mut metadata = ObjectMeta::default();
            settings.note(&mut metadata);
            assert_eq!(Settings::noted(&metadata.annotations.unwrap()), Some(settings.clone()));
            assert_eq!(Settings::of(&settings.clone().planned(&plan, None)), settings);
        }
    }

    #[test]
    fn what_no_gate_notes_is_no_note() {
        let noted = |text: &str| Settings::noted(&[(INSTALLED_WITH.to_owned(), text.to_owned())].into());
        let url = r#""address":{"url":{"host":"gate","port":9443}},"namespaces":[]"#;
        assert!(noted(&format!(r#"{{{url},"servedVersions":"v1"}}"#)).is_some());
        for wrong in ["", "{}", &format!(r#"{{{url},"servedVersions":"v1alpha1"}}"#)] {
            assert_eq!(noted(wrong), None, "{wrong}");
        }
        assert_eq!(noted(&format!(r#"{{{url},"servedVersions":"v1","more":1}}"#)), None);
        assert_eq!(Settings::noted(&BTreeMap::new()), None);
    }
}
