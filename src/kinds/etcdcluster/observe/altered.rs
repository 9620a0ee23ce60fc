//! Changes by other clients of a StatefulSet, a ConfigMap, a PodDisruptionBudget and a CronJob. Time is an argument.
//!
//! Guarantees: a change by another release of gatehouse is none of another client; an object that another client changes
//! each time that it is put back counts as it should be for a while, as [`Applied`] says. No entry of a member is known
//! that another client has written.

use k8s_openapi::api::apps::v1;
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::json;
use tokio::time::Instant;

use super::kubernetes;
use super::services::Applied;
use crate::controllers::deviation::Deviation;
use crate::controllers::manifest::{APPLIED_HASH, Manifest};
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Budget, Config, Fact, Found, Owner, StatefulSet};
use crate::kinds::etcdcluster::resources::{config as entries, stateful_set as sets};
use crate::kinds::etcdcluster::spec::Spec;

/// The StatefulSet, as against how it should be by the spec and by the revision of its template.
pub fn stateful_set(
    set: &v1::StatefulSet,
    wanted: (&Spec, u64),
    guard_image: &str,
    (applied, now): (&mut Applied, Instant),
) -> StatefulSet {
    let (spec, _) = wanted;
    let found = kubernetes::stateful_set(set, spec.uid(), guard_image);
    let (stamp, is_altered) = alteration(set, &found, wanted, guard_image);
    let is_altered = found.owner == Owner::Ours
        && applied.is_due((&format!("StatefulSet {}", spec.name()), stamp), is_altered, now);
    StatefulSet { is_altered, ..found }
}

/// The ConfigMap, likewise. An entry that another client has written counts as lost, so that the plan writes it as it
/// writes an entry that was deleted, and nothing is done to a member by what it says. While another client writes entries
/// each time that they are put back, what they are is not known.
pub fn config(
    found: &ConfigMap,
    (spec, revision): (&Spec, u64),
    (applied, now): (&mut Applied, Instant),
) -> Fact<Config> {
    let mut config = kubernetes::config(found, spec.name(), spec.uid());
    if config.owner == Owner::Foreign {
        return Fact::Known(config);
    }
    let others = entries::written_by_others(spec, found);
    let is_altered = entries::is_altered(spec, found, revision);
    let object = format!("ConfigMap {}", names::config(spec.name()));
    let is_due = applied.is_due((&object, None), is_altered || !others.is_empty(), now);
    if !others.is_empty() && !is_due {
        return Fact::Unknown;
    }
    config.entries.retain(|ordinal, _| !others.contains(ordinal));
    Fact::Known(Config { is_altered: is_altered && is_due, ..config })
}

/// The PodDisruptionBudget, likewise.
pub fn budget(found: &PodDisruptionBudget, spec: &Spec, (applied, now): (&mut Applied, Instant)) -> Budget {
    let budget = kubernetes::budget(found, spec);
    let stamp = Some(budget.min_available.to_string());
    let is_current =
        !applied.is_due((&format!("PodDisruptionBudget {}", spec.name()), stamp), !budget.is_current, now);
    Budget { is_current, ..budget }
}

/// The CronJob of the backups, likewise; none: the spec has no schedule.
pub fn backup_schedule(
    wanted: Option<&Manifest>,
    found: &Fact<CronJob>,
    cluster: &str,
    (applied, now): (&mut Applied, Instant),
) -> Fact<Found> {
    let state = match (wanted, found) {
        (_, Fact::Unknown) => return Fact::Unknown,
        (None, Fact::Absent) => Found::Current,
        (Some(_), Fact::Absent) => Found::Outdated,
        (wanted, Fact::Known(found)) => {
            let is_ours = kubernetes::owner(&found.metadata, cluster) == Owner::Ours;
            match wanted {
                Some(_) if !is_ours => Found::Foreign,
                Some(wanted) => {
                    let object =
                        (&*format!("CronJob {}", wanted.place.name), wanted.stamp().map(str::to_owned));
                    let deviates = wanted.deviation(found, names::MANAGER) != Deviation::Nothing;
                    if applied.is_due(object, deviates, now) { Found::Outdated } else { Found::Current }
                }
                None if is_ours => Found::Outdated,
                None => Found::Current,
            }
        }
    };
    Fact::Known(state)
}

/// Whether another client has changed the StatefulSet that was found, and the stamp of how it should be. Another release
/// of gatehouse may build it in another way, and it is not applied for that: where this very manifest was not applied,
/// the question is who owns its fields. A template of another revision than `revision` cannot be built again, and stays.
fn alteration(
    set: &v1::StatefulSet,
    found: &StatefulSet,
    (spec, revision): (&Spec, u64),
    guard_image: &str,
) -> (Option<String>, bool) {
    let StatefulSet { template, replicas, labels_voters, .. } = found;
    let wanted = sets::over(set, spec, (template, *replicas), guard_image, revision, *labels_voters);
    let stamp = wanted.stamp().map(ToOwned::to_owned);
    let applied = set.metadata.annotations.as_ref().and_then(|all| all.get(APPLIED_HASH));
    let is_altered = if applied == stamp.as_ref() || template.revision != revision {
        wanted.unstamped().deviation(set, names::MANAGER) != Deviation::Nothing
    } else {
        let is_added = wanted.deviation(set, names::MANAGER) == Deviation::Added;
        is_added || wanted.is_owned_by_another(set, names::MANAGER) || !has_labels(&wanted, set)
    };
    (stamp, is_altered)
}

/// Whether the StatefulSet has the labels that it should have. The watch finds it by one of them.
fn has_labels(wanted: &Manifest, set: &v1::StatefulSet) -> bool {
    let labels = json!({"metadata": {"labels": wanted.object["metadata"]["labels"]}});
    !Manifest { object: labels, ..wanted.clone() }.missing_from(set)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::kinds::etcdcluster::observation::{ConfigEntry, MemberId, Ordinal, Purpose, Uid};
    use crate::kinds::etcdcluster::resources::budget as budgets;
    use crate::kinds::etcdcluster::resources::tests::{GUARD, TEMPLATE, plain};

    /// What another client makes of an object that we applied, owning those fields of the spec since.
    fn changed<K: serde::de::DeserializeOwned>(
        applied: &Manifest,
        fields: &Value,
        place: &str,
        value: Value,
    ) -> K {
        let mut object = applied.object.clone();
        let tree = json!({"f:spec": fields});
        object["metadata"]["managedFields"] = json!([
            {"manager": names::MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "forces", "operation": "Apply", "fieldsV1": tree},
        ]);
        let (parent, name) = place.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap();
        match name.parse::<usize>() {
            Ok(index) => parent[index] = value,
            Err(_) => parent[name] = value,
        }
        serde_json::from_value(object).unwrap()
    }

    fn is_altered(set: &v1::StatefulSet, guard: &str, revision: u64) -> bool {
        let spec = plain();
        let found = kubernetes::stateful_set(set, spec.uid(), guard);
        alteration(set, &found, (&spec, revision), guard).1
    }

    #[test]
    fn what_another_client_removed_from_a_stateful_set_is_an_alteration() {
        let mut object = sets::manifest(&plain(), &TEMPLATE, 3, GUARD, true).object;
        // The API server completes what it stores, and a volume that grows later leaves the claim template as it is.
        let claim = &mut object["spec"]["volumeClaimTemplates"][0]["spec"];
        claim["volumeMode"] = json!("Filesystem");
        claim["resources"]["requests"]["storage"] = json!("1Mi");
        let without = |place: Option<(&str, &str)>, guard| {
            let mut object = object.clone();
            if let Some((parent, field)) = place {
                assert!(object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field).is_some());
            }
            is_altered(&serde_json::from_value(object).unwrap(), guard, TEMPLATE.revision)
        };
        let label = Some(("/metadata/labels", "app.kubernetes.io/managed-by"));
        let command = Some(("/spec/template/spec/containers/0", "command"));
        assert_eq!([None, label, command].map(|place| without(place, GUARD)), [false, true, true]);
        // Another release may have no command there.
        let places = [None, label, command];
        assert_eq!(places.map(|place| without(place, "example.com/guard:2")), [false, true, false]);
    }

    #[test]
    fn a_stateful_set_that_another_client_changed_is_altered_whichever_release_built_it() {
        const POD: &str = "/spec/template/spec";
        let etcd = |field: &str| {
            let of_etcd = json!({"k:{\"name\":\"etcd\"}": {field: {}}});
            json!({"f:template": {"f:spec": {"f:containers": of_etcd}}})
        };
        let changes = [
            (etcd("f:image"), format!("{POD}/containers/0/image"), json!("example.com/etcd:1")),
            (etcd("f:command"), format!("{POD}/containers/0/command"), json!(["sh"])),
            (
                json!({"f:updateStrategy": {"f:type": {}}}),
                "/spec/updateStrategy/type".to_owned(),
                json!("RollingUpdate"),
            ),
            (json!({"f:minReadySeconds": {}}), "/spec/minReadySeconds".to_owned(), json!(5)),
        ];
        let spec = plain();
        let applied = sets::manifest(&spec, &TEMPLATE, 3, GUARD, true);
        let (ours, another) = (TEMPLATE.revision, TEMPLATE.revision + 1);
        let sound: v1::StatefulSet = serde_json::from_value(applied.object.clone()).unwrap();
        for (guard, revision) in [(GUARD, ours), ("example.com/guard:2", ours), (GUARD, another)] {
            assert!(!is_altered(&sound, guard, revision), "{guard} {revision:x}");
        }
        for (fields, place, value) in changes {
            let set: v1::StatefulSet = changed(&applied, &fields, &place, value);
            assert!(is_altered(&set, GUARD, ours), "{place}");
            assert!(is_altered(&set, "example.com/guard:2", ours), "{place}");
            // Of pods of another template only the spec of then would say how they were.
            assert_eq!(is_altered(&set, GUARD, another), !place.starts_with(POD), "{place}");
        }
        let restart = json!({"f:template": {"f:metadata": {"f:annotations": {"f:restartedAt": {}}}}});
        let place = "/spec/template/metadata/annotations/restartedAt";
        assert!(!is_altered(&changed(&applied, &restart, place, json!("now")), GUARD, ours));
    }

    /// The ConfigMap with the entries of three members, of which another client has written the second one: `changed`.
    fn config_with(changed: &str) -> ConfigMap {
        let spec = plain();
        let entry = |ordinal| ConfigEntry {
            purpose: Purpose::Run,
            member: Some(MemberId(0x8e9e + u64::from(ordinal))),
            volume: Uid(format!("v-{ordinal}")),
            template: TEMPLATE,
            pod: None,
            raft_index: None,
            skips_check: false,
        };
        let told: BTreeMap<_, _> = (0..3).map(|ordinal| (Ordinal(ordinal), entry(ordinal))).collect();
        let mut object = entries::manifest(&spec, &entries::data(&spec, &told, &[])).object;
        let fields = |keys: &[&str]| {
            let keys: serde_json::Map<_, _> =
                keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
            json!({"f:data": keys})
        };
        let keys = ["c-0.json", "c-0.yaml", "c-1.yaml", "c-2.json", "c-2.yaml"];
        object["metadata"]["managedFields"] = json!([
            {"manager": names::MANAGER, "operation": "Update", "fieldsV1": fields(&keys)},
            {"manager": "edits", "operation": "Update", "fieldsV1": fields(&["c-1.json"])},
        ]);
        object["data"]["c-1.json"] = json!(changed);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_entry_that_another_client_has_written_counts_as_lost_whatever_it_says() {
        let (spec, begun) = (plain(), Instant::now());
        let good = r#"{"member":"8e9f","purpose":"Run","template":"3.6.16-0000000000000001","volume":"v-1"}"#;
        for changed in [
            good.to_owned(),
            good.replace("v-1", "v-0"),
            good.replace("8e9f", "8e9e"),
            good.replace("Run", "Retired"),
            good.replace("Run", "Force"),
            good.replace("0001", "0002"),
            good.replace('{', r#"{"pod":"p","#),
            "{}".to_owned(),
        ] {
            let mut applied = Applied::default();
            let mut seen = |found: &ConfigMap| {
                let found = config(found, (&spec, TEMPLATE.revision), (&mut applied, begun));
                let left = applied.count();
                (found.known().map(|config| config.entries.keys().copied().collect::<Vec<_>>()), left)
            };
            let altered = config_with(&changed);
            let others = Some(vec![Ordinal(0), Ordinal(2)]);
            assert_eq!(seen(&altered), (others.clone(), vec![]), "{changed}");
            assert_eq!(seen(&altered), (others.clone(), vec![]), "{changed}");
            assert_eq!(seen(&altered), (others, vec!["ConfigMap c-config".to_owned()]), "{changed}");
            // No member is worked by what another client writes each time.
            assert_eq!(seen(&altered), (None, vec![]), "{changed}");
        }
    }

    #[test]
    fn a_budget_that_selects_others_is_not_current() {
        let (spec, fields) = (plain(), json!({"f:selector": {}}));
        let applied = budgets::manifest(&spec, 2);
        let is_current = |found: &PodDisruptionBudget| kubernetes::budget(found, &spec).is_current;
        assert!(is_current(&serde_json::from_value(applied.object.clone()).unwrap()));
        let more = json!([{"key": "a", "operator": "Exists"}]);
        for (place, value) in
            [("/spec/selector/matchLabels/x", json!("y")), ("/spec/selector/matchExpressions", more)]
        {
            assert!(!is_current(&changed(&applied, &fields, place, value)), "{place}");
        }
        let (fields, place) =
            (json!({"f:unhealthyPodEvictionPolicy": {}}), "/spec/unhealthyPodEvictionPolicy");
        assert!(!is_current(&changed(&applied, &fields, place, json!("IfHealthyBudget"))));
    }
}
