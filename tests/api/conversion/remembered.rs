//! What the old version cannot say, in its annotations: how much there is room for, and how long they count.

use gatehouse::api::Version;
use gatehouse::api::lens::memory::PREFIX;
use gatehouse::kinds::KINDS;
use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::{new, rewrite_warned};

/// What all annotations of an object may weigh, as the API server has it.
const LIMIT: usize = 256 * 1024;

/// What the annotations of an object weigh.
fn weight(object: &Value) -> usize {
    let annotations = object["metadata"]["annotations"].as_object().expect("annotations");
    annotations.iter().map(|(key, value)| key.len() + value.as_str().expect("a text").len()).sum()
}

/// What says that there was no room.
const NO_ROOM: &str = "does not fit into annotations of 256 KiB";

/// The annotation that says so, and what it weighs.
const MARKER: (&str, usize) = ("conversion.gatehouse.dev/dropped", 32 + "true".len());

/// A quote has two bytes in JSON, and one among those of an annotation. One in a memory has two there.
fn noted(name: &str, quotes: usize) -> Value {
    let mut object = new(name);
    object["metadata"]["annotations"] = json!({"example.org/notes": "\"".repeat(quotes)});
    object["spec"]["target"]["create"]["command"] = json!(vec!["\"".repeat(1000); 20]);
    object
}

fn is_dropped(object: &Value) -> bool {
    object["metadata"]["annotations"].get(MARKER.0).is_some()
}

/// Makes an object, as the old version shows it before any operator has written a status.
fn made(namespace: &Namespace, object: &Value) -> Value {
    let made = namespace.bed.objects.must(Ask::create(object, &namespace.name));
    let kind = KINDS.iter().find(|kind| made["kind"] == kind.names().kind).expect("a kind of ours");
    kind.lens().convert(made, Version::V1, Version::V1Alpha1)
}

/// With how many quotes an object just fits.
fn most(namespace: &Namespace) -> usize {
    let small = made(namespace, &noted("small", 0));
    let most = LIMIT - MARKER.1 - weight(&small);
    assert!(most > LIMIT / 2 && !is_dropped(&small), "{most} more");
    most
}

pub fn an_object_is_accepted_as_long_as_the_old_version_can_carry_it(bed: &Bed) {
    let namespace = bed.namespace();
    assert_eq!(MARKER, (&*format!("{PREFIX}dropped"), MARKER.0.len() + "true".len()));
    let most = most(&namespace);
    let refused = bed.objects.one(Ask::create(&noted("large", most + 1), &namespace.name));
    let Err(refusal) = refused else { panic!("one more is taken") };
    assert!(refusal.message.contains(NO_ROOM), "{:.500}", refusal.message);
    let large = made(&namespace, &noted("large", most));
    assert!(!is_dropped(&large));
    assert_eq!(weight(&large), LIMIT - MARKER.1);
}

/// Its status grows, which nothing judges. What is written of it by the old version would lose all that this cannot say,
/// whatever else the write is about.
pub fn an_object_that_the_old_version_can_no_longer_carry_is_written_as_v1_only(bed: &Bed) {
    let namespace = bed.namespace();
    made(&namespace, &noted("large", most(&namespace)));
    let hub = namespace.path("tdset/large");
    let spoke = namespace.path("tdsets.v1alpha1.gatehouse.dev/large");
    eventually(|| {
        // The operator's first status has what the old version has no field for.
        if is_dropped(&bed.objects.at(&spoke)) { Ok(()) } else { Err("it is carried".to_owned()) }
    });
    let before = bed.objects.at(&hub);
    let patches = [
        json!({"spec": {"defaultReplica": 3}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"finalizers": ["example.org/a"]}}),
        json!({}),
        // The marker goes, and with it all that says that there is more.
        json!({"metadata": {"annotations": null}}),
        json!({"metadata": {"annotations": null}, "spec": {"defaultReplica": 3}}),
        json!({"metadata": {"annotations": {MARKER.0: null, "example.org/notes": null}}}),
        json!([{"op": "remove", "path": "/metadata/annotations"}]),
        json!([{"op": "replace", "path": "/metadata/annotations", "value": {"example.org/a": "b"}}]),
    ];
    let mut manifest = bed.objects.at(&spoke);
    manifest["metadata"] = json!({"name": "large"});
    manifest.as_object_mut().expect("an object").remove("status");
    let writes = [Ask::put(spoke.clone(), manifest.clone()), Ask::apply(&manifest, &namespace.name, "")];
    for write in patches.into_iter().map(|edit| Ask::patch(spoke.clone(), edit)).chain(writes) {
        let outcome = eventually(|| {
            let mut write = write.clone();
            if write.method == "PUT" {
                let read = bed.objects.at(&spoke)["metadata"]["resourceVersion"].take();
                write.body["metadata"]["resourceVersion"] = read;
            }
            match bed.objects.one(write) {
                // The operator has written its status in between.
                Err(refusal) if refusal.code == 409 => Err(refusal.message),
                outcome => Ok(outcome),
            }
        });
        let Err(refusal) = outcome else { panic!("{} {} is taken", write.method, write.body) };
        assert!(
            refusal.message.contains(NO_ROOM),
            "{} {}: {:.500}",
            write.method,
            write.body,
            refusal.message
        );
    }
    let now = bed.objects.at(&hub);
    for part in ["/spec", "/metadata/labels", "/metadata/finalizers", "/metadata/generation"] {
        assert_eq!(now.pointer(part), before.pointer(part), "{part}");
    }
    bed.objects.must(Ask::patch(hub.clone(), json!({"spec": {"defaultReplicas": 3}})));
    assert_eq!(bed.objects.at(&hub)["spec"]["timeZone"], "Europe/Berlin");
}

pub fn a_late_manifest_of_the_old_version_changes_nothing_that_it_cannot_show(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&new("late"));
    let (hub, spoke) = (namespace.path("tdset/late"), namespace.path("tdsets.v1alpha1.gatehouse.dev/late"));
    let manifest = bed.objects.at(&spoke);
    let put = || {
        let (_, _, warnings) = rewrite_warned(&namespace, &spoke, |edited| {
            let read = edited["metadata"]["resourceVersion"].take();
            *edited = manifest.clone();
            edited["metadata"]["resourceVersion"] = read;
        });
        warnings.iter().any(|one| one.contains("are read at creation alone"))
    };
    assert!(!put(), "it is as it was exported");
    namespace.change("tdset/late", &json!({"spec": {"timeZone": "Asia/Tokyo"}}));
    assert!(put(), "its author is warned");
    assert_eq!(bed.objects.at(&hub)["spec"]["timeZone"], "Asia/Tokyo");
}
