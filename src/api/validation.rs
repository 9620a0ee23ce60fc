//! Validation of objects: the gate, the command line and the controllers call this one, so that they agree.
//!
//! Guarantees: every error of an object at once, those of its structure and those of its meaning, with the paths of the
//! version that its author wrote. An update is validated by what it changes: an error that the stored object has as
//! well is a warning, so that an object stored before a rule existed still takes labels, status and the removal of
//! finalizers, also while it is being deleted. What changes then is validated as ever: controllers still go by it.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::field::{FieldError, Path, Reason, Segment, Validation};
use super::lens::memory;
use super::{Kind, Version};

/// An object, and the version that it is written in.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The version of `object`.
    pub version: Version,
    /// The whole object.
    pub object: &'a Value,
}

/// A creation or an update, to be validated.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// What is to be stored.
    pub new: Written<'a>,
    /// What is stored, on update.
    pub old: Option<Written<'a>>,
    /// The version that the author wrote, in whose paths faults are reported; the API server may have converted since.
    pub author: Version,
    /// The present.
    pub now: Timestamp,
}

/// Validates a creation or an update of a `kind`.
#[must_use]
pub fn validate(kind: &dyn Kind, change: &Change) -> Validation {
    validated(kind, change, Some(change.now))
}

/// As [`validate`], without the warnings about what is sound: they are worked out only where they are shown.
#[must_use]
pub fn errors(kind: &dyn Kind, change: &Change) -> Validation {
    validated(kind, change, None)
}

fn validated(kind: &dyn Kind, change: &Change, now: Option<Timestamp>) -> Validation {
    let old = change.old.map(|old| hub(kind, old));
    let Found { mut validation, whole } = found(kind, change.new, old.as_deref(), change.author, now);
    if let (Some(written), Some(old)) = (change.old, &old)
        && !validation.accepted()
    {
        // Where something is missing, or there are too many faults to look for more, the rest could not be validated:
        // then what is edited has to be made whole.
        let untouched = || hub(kind, change.new).get("spec") == old.get("spec");
        if whole || untouched() {
            // Not as if it were new: what may no longer be made may well be there, and excuses nothing then.
            let mut known = found(kind, written, Some(old), change.author, None).validation;
            if change.new.version != Version::V1 {
                // What was read without it is not stored without it for all that.
                known.errors.retain(|fault| !fault.detail.starts_with(DOES_NOT_FIT));
            }
            ratchet(&mut validation, &known);
        }
    }
    if validation.errors.len() > MOST_FAULTS {
        validation.errors.truncate(MOST_FAULTS);
        validation.warn(format!("more than {MOST_FAULTS} errors: the others are not shown"));
    }
    validation
}

/// More faults than these do not help, and make an answer that is larger than the question.
const MOST_FAULTS: usize = 100;

/// Validates an object that is stored, as a change that changes nothing, but without forgiving what was there before:
/// so the controllers meet an object that was stored before a rule existed.
#[must_use]
pub fn stored(kind: &dyn Kind, object: Written) -> Validation {
    found(kind, object, Some(&hub(kind, object)), object.version, None).validation
}

/// The object in the hub's version.
#[must_use]
pub fn hub<'a>(kind: &dyn Kind, written: Written<'a>) -> Cow<'a, Value> {
    match written.version {
        Version::V1 => Cow::Borrowed(written.object),
        version @ Version::V1Alpha1 => {
            Cow::Owned(kind.lens().convert(written.object.clone(), version, Version::V1))
        }
    }
}

/// What was found in an object.
struct Found {
    validation: Validation,
    /// All of it could be validated: nothing was missing that the meaning of the rest depends on.
    whole: bool,
}

/// All that is wrong with an object, in its author's paths; where that is too much, as much as shows that it is.
fn found(
    kind: &dyn Kind,
    new: Written,
    old: Option<&Value>,
    author: Version,
    now: Option<Timestamp>,
) -> Found {
    let mut object = hub(kind, new);
    let of_hub = schema_faults(kind, Version::V1, &object);
    let whole = of_hub.is_empty() || of_hub.len() <= MOST_FAULTS && repair(&mut object, &of_hub);
    // What its schema refuses could take any amount of memory there: only what is sound is converted.
    let fits = if whole { fits(kind, new, &object) } else { None };
    let meant = if whole { kind.validate(&object, old, now) } else { Validation::default() };

    let mut faults = match new.version {
        Version::V1Alpha1 => schema_faults(kind, new.version, new.object),
        Version::V1 => Vec::new(),
    };
    for stage in [of_hub, fits.into_iter().collect(), meant.errors] {
        let room = (MOST_FAULTS + 1).saturating_sub(faults.len());
        let stage = stage.into_iter().map(|fault| in_authors_paths(kind, fault, author));
        let news: Vec<_> = stage.filter(|fault| !covered(&faults, &fault.path)).take(room).collect();
        faults.extend(news);
    }
    let whole = whole && faults.len() <= MOST_FAULTS;
    Found { validation: Validation { errors: faults, warnings: meant.warnings }, whole }
}

/// What only the hub can say has to fit into the annotations that carry it through the spoke; or else a write through
/// the spoke would lose it. An object that was read without it cannot be written.
fn fits(kind: &dyn Kind, written: Written, hub: &Value) -> Option<FieldError> {
    if written.version == Version::V1 && weight(hub) < SURELY_FITS {
        return None;
    }
    let lost = |object: &Value| object.pointer("/metadata/annotations").is_some_and(memory::is_dropped);
    let shown = match written.version {
        Version::V1Alpha1 => Cow::Borrowed(written.object),
        version @ Version::V1 => Cow::Owned(kind.lens().convert(hub.clone(), version, Version::V1Alpha1)),
    };
    let detail = match hub.pointer("/metadata/annotations").and_then(|all| all.get(LAST_APPLIED)) {
        Some(_) => Cow::Owned(format!("{DOES_NOT_FIT}; {BY_APPLY}")),
        None => Cow::Borrowed(DOES_NOT_FIT),
    };
    lost(&shown).then(|| FieldError::new(Path::spec(), Reason::TooLong, detail))
}

/// The annotation in which `kubectl apply` keeps what it applied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What to do where that makes an object too large.
pub const BY_APPLY: &str =
    "kubectl apply puts a copy of the object into one of them: use kubectl apply --server-side";

/// Why an object cannot be written by v1alpha1, or made as one that v1alpha1 could not show.
const DOES_NOT_FIT: &str =
    "what v1alpha1 cannot say does not fit into annotations of 256 KiB in all, by which it is kept there";

/// An object lighter than this has annotations that fit, however its text is escaped.
const SURELY_FITS: usize = 32 * 1024;

/// About how long an object's text is, in bytes, without writing it.
fn weight(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + 4 + weight(value)).sum(),
        Value::Array(items) => items.iter().map(|item| 1 + weight(item)).sum(),
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// An earlier stage refused this field, or one below it: a second complaint about one value does not help.
fn covered(faults: &[FieldError], path: &Path) -> bool {
    faults.iter().any(|fault| fault.path.segments().starts_with(path.segments()))
}

fn schema_faults(kind: &dyn Kind, version: Version, object: &Value) -> Vec<FieldError> {
    kind.schemas().of(version).faults(object, MOST_FAULTS + 1)
}

/// Takes out of an object what its schema refuses, so that the rest can be validated too. False where something that
/// has to be there is missing: then there is nothing to decode. An object of which nothing is taken stays the one that it
/// is.
fn repair(object: &mut Cow<Value>, faults: &[FieldError]) -> bool {
    faults.iter().all(|fault| match fault.reason {
        Reason::Required => false,
        Reason::TypeInvalid | Reason::NotSupported | Reason::TooMany => {
            remove(object.to_mut(), fault.path.segments())
        }
        _ => true,
    })
}

/// Removes a field, and leaves the others in no order; false where it is the item of a list, whose removal would shift
/// the others.
fn remove(value: &mut Value, path: &[Segment]) -> bool {
    let Some((step, rest)) = path.split_first() else { return false };
    match (step, rest.is_empty()) {
        (Segment::Field(name), true) => {
            value.as_object_mut().is_some_and(|fields| fields.remove(name.as_ref()).is_some())
        }
        (Segment::Key(name), true) => {
            value.as_object_mut().is_some_and(|fields| fields.remove(name).is_some())
        }
        (Segment::Index(_), true) => false,
        (Segment::Field(name), false) => {
            value.get_mut(name.as_ref()).is_some_and(|child| remove(child, rest))
        }
        (Segment::Key(name), false) => value.get_mut(name).is_some_and(|child| remove(child, rest)),
        (Segment::Index(index), false) => value.get_mut(index).is_some_and(|child| remove(child, rest)),
    }
}

/// An error of the hub version, in the terms of the author's version.
fn in_authors_paths(kind: &dyn Kind, fault: FieldError, author: Version) -> FieldError {
    let Some(table) = kind.lens().table(author) else { return fault };
    let missing = || table.path_into(&fault.path).filter(|_| fault.reason == Reason::Required);
    match table.path(&fault.path).or_else(missing) {
        Some(path) => FieldError { path, ..fault },
        None => FieldError {
            detail: format!("{}: {}", fault.path, fault.detail),
            path: Path::metadata().at("annotations").key(memory::key(&pointer(&fault.path)).0),
            ..fault
        },
    }
}

/// The field of a list item lies with its list: that is what one annotation holds.
fn pointer(path: &Path) -> String {
    let named = path.segments().iter().map_while(|segment| match segment {
        Segment::Field(name) => Some(name.as_ref()),
        Segment::Index(_) | Segment::Key(_) => None,
    });
    named.fold(String::new(), |pointer, name| pointer + "/" + name)
}

/// Turns faults that the stored object has as well into warnings, one for one.
fn ratchet(validation: &mut Validation, stored: &Validation) {
    let mut known: HashMap<_, usize> = HashMap::new();
    for fault in &stored.errors {
        *known.entry(identity(fault)).or_default() += 1;
    }
    let (tolerated, kept): (Vec<_>, Vec<_>) =
        std::mem::take(&mut validation.errors).into_iter().partition(|fault| {
            known.get_mut(&identity(fault)).filter(|left| **left > 0).map(|left| *left -= 1).is_some()
        });
    validation.errors = kept;
    for fault in tolerated {
        validation.warn(format!("unchanged and still invalid: {fault}"));
    }
}

/// A fault wherever in its list it lies: removing an item moves the others.
fn identity(fault: &FieldError) -> (Vec<Segment>, String) {
    let named = fault.path.segments().iter().filter(|step| !matches!(step, Segment::Index(_)));
    let steps = named.cloned().collect();
    (steps, fault.message())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::etcdcluster::api::EtcdClusterKind;

    fn cluster(spec: &Value) -> Value {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster", "metadata": {"name": "a"}, "spec": spec})
    }

    fn validated(new: &Value, old: Option<&Value>, author: Version) -> Validation {
        let written = |object| Written { version: Version::V1, object };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        validate(&EtcdClusterKind, &Change { new: written(new), old: old.map(written), author, now })
    }

    fn fields(validation: &Validation) -> Vec<String> {
        validation.errors.iter().map(|fault| fault.path.to_string()).collect()
    }

    #[test]
    fn what_a_schema_refuses_hides_nothing_of_what_is_wrong_besides() {
        let spec = json!({"replicas": "three", "version": "v3.6.16", "tls": {"mode": "Maybe"}});
        let validation = validated(&cluster(&spec), None, Version::V1);
        assert_eq!(fields(&validation), ["spec.replicas", "spec.tls.mode", "spec.version"]);
    }

    #[test]
    fn an_integer_beyond_its_format_is_named_and_hides_nothing() {
        let term = json!({"weight": 3_000_000_000_u64, "podAffinityTerm": {"topologyKey": "a"}});
        let affinity = json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}});
        let spec = json!({"replicas": 3_000_000_000_u64, "version": "2.0.0", "pod": {"affinity": affinity}});
        let validation = validated(&cluster(&spec), None, Version::V1);
        let weight = "spec.pod.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: \
             3000000000: must be an integer from -2147483648 to 2147483647";
        let replicas = "spec.replicas: Invalid value: 3000000000: must be an integer from 0 to 7";
        let told: Vec<_> = validation.errors.iter().map(ToString::to_string).collect();
        assert_eq!(told[..2], [weight, replicas]);
        assert_eq!(fields(&validation)[2..], ["spec.version"]);
    }

    #[test]
    fn what_was_stored_wrong_warns_and_what_is_new_is_refused() {
        let stored = cluster(&json!({"version": "2.0.0", "replicas": 3}));
        let mut edited = stored.clone();
        edited["metadata"]["labels"] = json!({"colour": "red"});
        let validation = validated(&edited, Some(&stored), Version::V1);
        assert!(validation.accepted(), "{validation:?}");
        assert!(
            validation.warnings.iter().any(|one| one.as_str().contains("spec.version")),
            "{validation:?}"
        );
        edited["spec"]["replicas"] = json!(12);
        assert_eq!(fields(&validated(&edited, Some(&stored), Version::V1)), ["spec.replicas"]);
    }

    #[test]
    fn one_stored_fault_excuses_one_fault() {
        let tdset = |names: &[&str]| {
            let exception =
                |name: &&str| json!({"name": name, "dates": ["2030-01-01"], "skipWindows": ["gone"]});
            let exceptions: Vec<_> = names.iter().map(exception).collect();
            json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"},
                "spec": {"defaultReplicas": 1, "timeZone": "Etc/UTC", "exceptions": exceptions,
                    "target": {"create": {"image": "a", "port": 80}}}})
        };
        let (stored, edited) = (tdset(&["x"]), tdset(&["x", "y"]));
        let written = |object| Written { version: Version::V1, object };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let change = Change { new: written(&edited), old: Some(written(&stored)), author: Version::V1, now };
        let validation = validate(&crate::kinds::tdset::api::TDSetKind, &change);
        assert_eq!(fields(&validation), ["spec.exceptions[1].skipWindows[0]"]);
        assert!(
            validation.warnings.iter().any(|one| one.as_str().contains("still invalid")),
            "{validation:?}"
        );
    }

    #[test]
    fn what_is_no_fault_of_the_stored_object_excuses_none() {
        let tdset = |times: &[&str]| {
            let window = |time: &&str| json!({"name": format!("w{}", &time[..2]), "from": time, "to": time, "replicas": 1});
            let windows: Vec<_> = times.iter().map(window).collect();
            json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"},
                "spec": {"defaultReplicas": 1, "timeZone": "Etc/UTC", "windows": windows,
                    "target": {"create": {"image": "a", "port": 80}}}})
        };
        // A window of no length may stay, and no other one may come.
        let (stored, edited) = (tdset(&["08:00"]), tdset(&["08:00", "09:00"]));
        let written = |object| Written { version: Version::V1, object };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let change = Change { new: written(&edited), old: Some(written(&stored)), author: Version::V1, now };
        let validation = validate(&crate::kinds::tdset::api::TDSetKind, &change);
        assert_eq!(fields(&validation), ["spec.windows[1].to"]);
    }

    #[test]
    fn an_object_that_lacks_something_takes_labels_and_no_other_nonsense() {
        let spec = json!({"backup": {"destination": {"persistentVolumeClaim": {}}}});
        let stored = cluster(&spec);
        let mut edited = stored.clone();
        edited["metadata"]["labels"] = json!({"colour": "red"});
        assert!(validated(&edited, Some(&stored), Version::V1).accepted());
        edited["spec"]["version"] = json!("2.0.0");
        assert!(!validated(&edited, Some(&stored), Version::V1).accepted());
    }

    #[test]
    fn what_the_old_version_could_not_carry_is_refused() {
        let mut object = cluster(&json!({"replicas": 3, "tls": {"mode": "Automatic"}}));
        assert!(validated(&object, None, Version::V1).accepted());
        object["metadata"]["annotations"] = json!({"example.org/notes": "x".repeat(262_100)});
        let validation = validated(&object, None, Version::V1);
        assert!(validation.errors.iter().any(|fault| fault.message().contains("256 KiB")), "{validation:?}");
    }

    #[test]
    fn an_answer_is_bounded() {
        let extra: serde_json::Map<_, _> =
            (0..5000).map(|index| (format!("no-such-{index}"), json!("x"))).collect();
        let validation = validated(&cluster(&json!({"options": {"extra": extra}})), None, Version::V1);
        assert!((1..=MOST_FAULTS).contains(&validation.errors.len()), "{}", validation.errors.len());
    }

    #[test]
    fn an_object_that_is_being_deleted_lets_go_and_takes_no_nonsense() {
        let mut stored = cluster(&json!({"replicas": 12}));
        stored["metadata"]["finalizers"] = json!(["example.com/kept"]);
        stored["metadata"]["deletionTimestamp"] = json!("2026-11-21T12:00:00Z");
        assert_eq!(fields(&validated(&stored, None, Version::V1)), ["spec.replicas"]);
        let mut released = stored.clone();
        released["metadata"]["finalizers"] = json!([]);
        assert!(validated(&released, Some(&stored), Version::V1).accepted());
        released["spec"]["version"] = json!("2.0.0");
        assert_eq!(fields(&validated(&released, Some(&stored), Version::V1)), ["spec.version"]);
    }

    #[test]
    fn an_author_of_the_old_version_gets_the_annotation_of_what_it_cannot_say() {
        let spec = json!({"replicas": 12, "tls": {"mode": "Maybe"}});
        let validation = validated(&cluster(&spec), None, Version::V1Alpha1);
        let annotation = "metadata.annotations[conversion.gatehouse.dev/spec.tls.mode]";
        assert_eq!(fields(&validation), ["spec.size", annotation]);
        assert!(validation.errors[1].message().contains("spec.tls.mode"), "{validation:?}");
    }
}
