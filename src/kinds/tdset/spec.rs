//! What a TDSet asks for, resolved once. Pure.
//!
//! Guarantees: an absent field has its meaning here, and nothing below gives it another; a timetable that is here is
//! valid, and a TDSet with faults has none.
//! Assumes: the faults are those that the gate finds, so that an object is valid for both or for neither.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use super::observation::ObjectKey;
use crate::api::field::FieldError;
use crate::api::identity::identity;
use crate::api::pod::PullPolicy;
use crate::api::reference::ConfigMapKey;
use crate::kinds::tdset::api::ramp::Ramp;
use crate::kinds::tdset::api::schedule::{Schedule, Source};
use crate::kinds::tdset::api::v1::{
    AutoscalerKind, BoundsOnDeletion, ControllerPolicy, Create, DatesFrom, ManualScalePolicy, Reference,
    TDSet, TDSetSpec, TDSetStatus, UnreadableDates,
};

/// Longest time between two looks. Timers count another clock than the wall's; at half a thousandth of difference,
/// the most that clocks are slewed by, ten minutes are off by a third of a second.
const LONGEST_SLEEP: Duration = Duration::from_mins(10);

/// A TDSet, as far as it asks for something.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Who asks: without labels and annotations.
    pub metadata: ObjectMeta,
    /// The digest of its annotations. They have to do with its faults.
    annotations: u64,
    /// The workload.
    pub target: Target,
    /// The autoscaler that has the count.
    pub autoscaler: Option<Autoscaler>,
    /// Whether the count is left alone.
    pub is_suspended: bool,
    /// What happens to a count that another client wrote.
    pub manual_scale_policy: ManualScalePolicy,
    /// What happens to objects that another controller owns.
    pub controller_policy: ControllerPolicy,
    /// What dates are that cannot be read.
    pub on_unreadable_dates: UnreadableDates,
    /// Longest time between two looks at the workload.
    pub resync: Duration,
    /// Where dates of the timetable come from.
    pub dates: Vec<DatesSource>,
    /// Which count holds when; the faults of the object where it has some.
    pub timetable: Result<Timetable, Vec<FieldError>>,
}

/// The workload.
#[derive(Clone, Debug)]
pub enum Target {
    /// A Deployment that is made, with its Service.
    Create(Box<Create>),
    /// One that another client made.
    Reference(Reference),
}

/// The autoscaler that has the count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscaler {
    /// What it is.
    pub kind: AutoscalerKind,
    /// Its name.
    pub name: String,
    /// The bounds that it is left with when the TDSet is deleted; none: it is left as it is.
    pub on_deletion: Option<BoundsOnDeletion>,
}

/// Where the dates of an exception come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatesSource {
    /// The exception.
    pub exception: String,
    /// The ConfigMap.
    pub config_map: String,
    /// The key in it.
    pub key: String,
}

/// Which count holds when.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// The counts.
    pub schedule: Schedule,
    /// How fast the count moves.
    pub ramp: Ramp,
    /// The upper bounds of the autoscaler that go with a window or an exception.
    maxima: HashMap<Source, i32>,
    /// The upper bound at all other times; none: it is left alone.
    max_replicas: Option<i32>,
}

impl Timetable {
    /// The upper bound that the autoscaler is to have while `source` decides; none: it is left alone.
    #[must_use]
    pub fn max_replicas(&self, source: &Source) -> Option<i32> {
        self.maxima.get(source).copied().or(self.max_replicas)
    }
}

identity!(Spec);

impl Spec {
    /// What `tdset` asks for, which has these faults.
    #[must_use]
    pub fn resolve(tdset: &TDSet, faults: Vec<FieldError>) -> Self {
        let spec = &tdset.spec;
        let timetable = if faults.is_empty() { timetable(spec) } else { Err(faults) };
        let minutes = spec.resync_minutes.and_then(|minutes| u64::try_from(minutes).ok());
        Self {
            metadata: identity(&tdset.metadata),
            annotations: annotations(&tdset.metadata),
            target: target(spec),
            autoscaler: spec.autoscaler.as_ref().map(|autoscaler| Autoscaler {
                kind: autoscaler.kind.unwrap_or_default(),
                name: autoscaler.name.clone(),
                on_deletion: autoscaler.on_deletion.clone(),
            }),
            is_suspended: spec.is_suspended(),
            manual_scale_policy: spec.manual_scale_policy.unwrap_or_default(),
            controller_policy: spec.controller_policy.unwrap_or_default(),
            on_unreadable_dates: spec.on_unreadable_dates.unwrap_or_default(),
            resync: minutes.map_or(LONGEST_SLEEP, Duration::from_mins).min(LONGEST_SLEEP),
            dates: dates(spec),
            timetable,
        }
    }

    /// Whether it is what the TDSet of that metadata asks for.
    #[must_use]
    pub fn is_of(&self, metadata: &ObjectMeta) -> bool {
        let ObjectMeta { uid, generation, deletion_timestamp, finalizers, .. } = &self.metadata;
        (uid, generation) == (&metadata.uid, &metadata.generation)
            && (deletion_timestamp, finalizers) == (&metadata.deletion_timestamp, &metadata.finalizers)
            && self.annotations == annotations(metadata)
    }

    /// Whether it has changed since that status was written.
    #[must_use]
    pub fn is_edited(&self, status: &TDSetStatus) -> bool {
        status.observed_generation != self.metadata.generation
    }

    /// The workload that is to be made.
    #[must_use]
    pub fn create(&self) -> Option<&Create> {
        match &self.target {
            Target::Create(create) => Some(create),
            Target::Reference(_) => None,
        }
    }

    /// The workload that another client made.
    #[must_use]
    pub const fn reference(&self) -> Option<&Reference> {
        match &self.target {
            Target::Create(_) => None,
            Target::Reference(reference) => Some(reference),
        }
    }

    /// The count that a workload of another owner is left with when the TDSet is deleted; none: it is left as it is, as
    /// it is where an autoscaler has the count.
    #[must_use]
    pub fn replicas_on_deletion(&self) -> Option<i32> {
        self.reference().filter(|_| self.autoscaler.is_none())?.replicas_on_deletion
    }

    /// The bounds that the autoscaler is left with when the TDSet is deleted; none: it is left as it is.
    #[must_use]
    pub fn bounds_on_deletion(&self) -> Option<&BoundsOnDeletion> {
        self.autoscaler.as_ref()?.on_deletion.as_ref()
    }

    /// Whether something is left behind in a stated way, so that its deletion has to wait for that.
    #[must_use]
    pub fn leaves_something(&self) -> bool {
        self.replicas_on_deletion().is_some() || self.bounds_on_deletion().is_some()
    }

    /// Whether a count of another owner stands until the timetable changes next.
    #[must_use]
    pub fn keeps_manual_counts(&self) -> bool {
        self.manual_scale_policy == ManualScalePolicy::KeepUntilNextTransition
    }

    /// The autoscaler, as one object among all.
    #[must_use]
    pub fn autoscaler_key(&self) -> Option<ObjectKey> {
        let Autoscaler { kind, name, .. } = self.autoscaler.as_ref()?;
        Some(ObjectKey::autoscaler(*kind, self.namespace(), name))
    }

    /// The workload, whatever its version.
    #[must_use]
    pub fn workload(&self) -> ObjectKey {
        workload(self.reference(), self.namespace(), self.name())
    }
}

/// The identity of an object and of its state.
fn identity(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        generation: metadata.generation,
        resource_version: metadata.resource_version.clone(),
        creation_timestamp: metadata.creation_timestamp.clone(),
        deletion_timestamp: metadata.deletion_timestamp.clone(),
        finalizers: metadata.finalizers.clone(),
        ..ObjectMeta::default()
    }
}

fn annotations(metadata: &ObjectMeta) -> u64 {
    let mut hasher = DefaultHasher::new();
    metadata.annotations.hash(&mut hasher);
    hasher.finish()
}

/// Everything that a TDSet refers to: the workload, the autoscaler, the ConfigMaps with its dates.
#[must_use]
pub fn subjects(tdset: &TDSet) -> BTreeSet<ObjectKey> {
    let (namespace, name) = (tdset.namespace().unwrap_or_default(), tdset.name_any());
    let autoscaler = tdset.spec.autoscaler.as_ref();
    let autoscaler = autoscaler.map(|autoscaler| {
        ObjectKey::autoscaler(autoscaler.kind.unwrap_or_default(), &namespace, &autoscaler.name)
    });
    let dates = dates(&tdset.spec).into_iter();
    let dates = dates.map(|dates| ObjectKey::config_map(&namespace, &dates.config_map));
    let workload = workload(tdset.spec.target.reference.as_ref(), &namespace, &name);
    [workload].into_iter().chain(autoscaler).chain(dates).collect()
}

/// Whether a TDSet makes its workload.
#[must_use]
pub const fn makes(tdset: &TDSet) -> bool {
    tdset.spec.target.create.is_some()
}

fn workload(reference: Option<&Reference>, namespace: &str, name: &str) -> ObjectKey {
    match reference {
        Some(Reference { api_version, kind, name, .. }) => {
            ObjectKey::referred(api_version, kind, namespace, name)
        }
        None => ObjectKey::new("apps", "Deployment", namespace, name),
    }
}

/// One of the two is given, where the object has no faults.
fn target(spec: &TDSetSpec) -> Target {
    if let Some(reference) = &spec.target.reference {
        return Target::Reference(reference.clone());
    }
    let mut create = spec.target.create.clone().unwrap_or_default();
    create.image_pull_policy.get_or_insert(PullPolicy::IfNotPresent);
    Target::Create(create)
}

fn dates(spec: &TDSetSpec) -> Vec<DatesSource> {
    let sources = spec.exceptions().iter().filter_map(|exception| {
        let DatesFrom { config_map_key_ref: ConfigMapKey { name, key } } = exception.dates_from.clone()?;
        Some(DatesSource { exception: exception.name.clone(), config_map: name, key })
    });
    sources.collect()
}

fn timetable(spec: &TDSetSpec) -> Result<Timetable, Vec<FieldError>> {
    let of_windows = spec
        .windows()
        .iter()
        .filter_map(|window| Some((Source::Window(window.name.as_str().into()), window.max_replicas?)));
    let of_exceptions = spec.exceptions().iter().filter_map(|exception| {
        Some((Source::Exception(exception.name.as_str().into()), exception.max_replicas?))
    });
    Ok(Timetable {
        schedule: Schedule::parse(spec)?,
        ramp: Ramp::parse(spec.ramp.as_ref())?,
        maxima: of_windows.chain(of_exceptions).collect(),
        max_replicas: spec.autoscaler.as_ref().and_then(|autoscaler| autoscaler.max_replicas),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::field::{Path, Reason};

    fn tdset(spec: &Value) -> TDSet {
        let object = json!({
            "apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
            "metadata": {"name": "shop", "namespace": "a", "uid": "1"}, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_absent_field_has_its_meaning() {
        let create = json!({"image": "shop:1", "port": 80});
        let spec = Spec::resolve(
            &tdset(&json!({"defaultReplicas": 2, "timeZone": "Etc/UTC", "target": {"create": create}})),
            vec![],
        );
        assert!(!spec.is_suspended && !spec.keeps_manual_counts());
        assert_eq!(spec.resync, LONGEST_SLEEP);
        assert_eq!(spec.create().unwrap().image_pull_policy, Some(PullPolicy::IfNotPresent));
        assert_eq!(spec.workload(), ObjectKey::new("apps", "Deployment", "a", "shop"));
        assert_eq!((spec.leaves_something(), &spec.autoscaler), (false, &None));
        assert_eq!(spec.timetable.unwrap().max_replicas(&Source::Default), None);
    }

    #[test]
    fn an_upper_bound_is_that_of_the_window_or_else_that_of_the_spec() {
        let reference =
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "replicasOnDeletion": 3});
        let windows = json!([
            {"name": "day", "from": "08:00", "to": "18:00", "replicas": 2, "maxReplicas": 9},
            {"name": "night", "from": "20:00", "to": "04:00", "replicas": 1},
        ]);
        let object = tdset(&json!({
            "defaultReplicas": 1, "timeZone": "Etc/UTC", "windows": windows, "resyncMinutes": 5,
            "target": {"ref": reference},
            "autoscaler": {"kind": "HorizontalPodAutoscaler", "name": "db", "maxReplicas": 5},
        }));
        let spec = Spec::resolve(&object, vec![]);
        let timetable = spec.timetable.as_ref().unwrap();
        for (source, most) in [
            (Source::Default, 5),
            (Source::Window("day".into()), 9),
            (Source::Window("night".into()), 5),
            (Source::Exception("day".into()), 5),
        ] {
            assert_eq!(timetable.max_replicas(&source), Some(most), "{source:?}");
        }
        assert_eq!((spec.resync, spec.replicas_on_deletion()), (Duration::from_mins(5), None));
        assert!(subjects(&object).contains(&spec.workload()));
        assert!(subjects(&object).contains(&ObjectKey::new(
            "autoscaling",
            "HorizontalPodAutoscaler",
            "a",
            "db"
        )));
        assert_eq!(
            spec.autoscaler_key(),
            Some(ObjectKey::new("autoscaling", "HorizontalPodAutoscaler", "a", "db"))
        );
    }

    #[test]
    fn an_object_with_faults_has_no_timetable_and_still_what_it_refers_to() {
        let reference =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "replicasOnDeletion": 0});
        let object = tdset(&json!({"defaultReplicas": 1, "target": {"ref": reference}}));
        let fault = FieldError::new(Path::spec().at("timeZone"), Reason::Required, "is missing");
        let spec = Spec::resolve(&object, vec![fault.clone()]);
        assert_eq!(spec.timetable.clone().unwrap_err(), [fault]);
        assert_eq!(spec.replicas_on_deletion(), Some(0));
        assert_eq!(spec.workload().name, "web");
    }
}
