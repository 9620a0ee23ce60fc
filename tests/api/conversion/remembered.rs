//! What the old version cannot say, in its annotations: how much there is room for, and how long they count.

use gatehouse::api::lens::memory::PREFIX;
use kit::bed::Bed;
use kit::objects::Ask;
use serde_json::{Value, json};

use super::{new, rewrite_warned};

/// What all annotations of an object may weigh, as the API server has it.
const LIMIT: usize = 256 * 1024;

/// What the annotations of an object weigh.
fn weight(object: &Value) -> usize {
    let annotations = object["metadata"]["annotations"].as_object().expect("annotations");
    annotations.iter().map(|(key, value)| key.len() + value.as_str().expect("a text").len()).sum()
}

pub fn an_object_is_accepted_as_long_as_the_old_version_can_carry_it(bed: &Bed) {
    let namespace = bed.namespace();
    // A quote has two bytes in JSON, and one among those of an annotation. One in a memory has two there.
    let object = |name: &str, quotes: usize| {
        let mut object = new(name);
        object["metadata"]["annotations"] = json!({"example.org/notes": "\"".repeat(quotes)});
        object["spec"]["target"]["create"]["command"] = json!(vec!["\"".repeat(1000); 20]);
        object
    };
    let shown =
        |name: &str| bed.objects.at(&namespace.path(&format!("tdsets.v1alpha1.gatehouse.dev/{name}")));
    let is_dropped =
        |object: &Value| object["metadata"]["annotations"].get(format!("{PREFIX}dropped")).is_some();
    namespace.create(&object("small", 0));
    let small = shown("small");
    let marker = format!("{PREFIX}dropped").len() + "true".len();
    let most = LIMIT - marker - weight(&small);
    assert!(most > LIMIT / 2 && !is_dropped(&small), "{most} more");

    let refused = bed.objects.one(Ask::create(&object("large", most + 1), &namespace.name));
    let refusal = refused.expect_err("one more is refused");
    assert!(refusal.message.contains("does not fit into annotations of 256 KiB"), "{:.500}", refusal.message);
    namespace.create(&object("large", most));
    let large = shown("large");
    assert!(!is_dropped(&large));
    assert_eq!(weight(&large), LIMIT - marker);
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
