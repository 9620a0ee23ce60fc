//! Several replicas of one installation, also with different settings, as in a rolling update of a value.

use kit::bed::Bed;
use kit::objects::Ask;
use serde_json::{Value, json};

use super::{Life, until};
use crate::installed::{CONFIGURATIONS, GUARDED, SECRET, TDSETS, VALIDATING, WRITTEN};
use crate::leader::LASTING;

pub fn two_replicas_agree_and_rest(bed: &Bed) {
    let life = Life::begin_empty(bed);
    let one = life.spawn(0, 0);
    // Behind one address, as replicas of a Deployment are behind one Service. Started at the same time.
    let other = life.spawn(0, one.address.port());
    for gate in [&one, &other] {
        gate.logs("installed");
    }
    life.until_guarded();
    let bundles = life.bundles();
    assert!(!bundles[0].is_empty() && bundles.iter().all(|bundle| *bundle == bundles[0]), "one authority");
    assert_eq!(life.at(SECRET)["data"]["ca-bundle.crt"], bundles[0]);
    let settled = life.are_left_alone(&life.versions(&WRITTEN), &[&one, &other]);

    life.patch(TDSETS, json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}}));
    until("it is put back", || life.bundles() == bundles);
    life.until_looked_at(&[&one, &other]);
    let changes = life.changes_since(TDSETS, &settled[TDSETS]);
    assert!(
        (2..=3).contains(&changes.len()),
        "one write wipes it, and one of each puts it back: {changes:?}"
    );
}

/// The settings that are noted on an object.
fn noted(object: &Value) -> Value {
    let note = object["metadata"]["annotations"]["gatehouse.dev/installed-with"].as_str().expect("a note");
    serde_json::from_str(note).expect("a note in JSON")
}

/// Whether the definition serves the old version, and the setting that is noted on it.
fn served(life: &Life) -> (bool, Value) {
    let definition = life.at(TDSETS);
    let versions = definition["spec"]["versions"].as_array().expect("versions");
    let old = versions.iter().find(|version| version["name"] == "v1alpha1").expect("it stays");
    (old["served"] == true, noted(&definition)["servedVersions"].clone())
}

/// The namespaces whose objects are validated, and those that are noted; none for all.
fn validated(life: &Life) -> (Value, Value) {
    let configuration = life.at(VALIDATING);
    let selector = &configuration["webhooks"][0]["namespaceSelector"];
    (selector["matchExpressions"][0]["values"].clone(), noted(&configuration)["namespaces"].clone())
}

pub fn replicas_with_other_settings_do_not_undo_each_other(bed: &Bed) {
    let life = Life::begin_empty(bed);
    // Who leads changes only where this test has it change.
    let one = life.spawn_with(LASTING, None, 0, 0);
    one.logs("leading");
    one.logs("installed");
    let namespace = life.namespace.name.as_str();
    let options = [LASTING, &["--served-versions", "v1", "--watch-namespaces", namespace]].concat();
    let other = life.spawn_with(&options, None, 0, one.address.port());
    other.logs("installed");
    let generations = || {
        let generation = |path: &&str| life.at(path)["metadata"]["generation"].as_i64().expect("a number");
        GUARDED.iter().map(generation).collect::<Vec<_>>()
    };
    let before = generations();
    life.until_looked_at(&[&one, &other]);
    assert_eq!(generations(), before, "they write to and fro");
    let as_led = ((true, json!("v1,v1alpha1")), (Value::Null, json!([])));
    assert_eq!((served(&life), validated(&life)), as_led, "the settings of the one that leads");

    // Each of them puts right what differs from that.
    life.patch(TDSETS, json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}}));
    until("it is put back", || life.bundles().iter().all(|bundle| !bundle.is_empty()));
    life.until_looked_at(&[&one, &other]);
    let changes: i64 = generations().iter().zip(&before).map(|(now, before)| now - before).sum();
    assert_eq!(changes, 2, "one wipes it and one puts it back");
    for path in CONFIGURATIONS {
        let mut configuration = life.at(path);
        configuration["webhooks"][0]["namespaceSelector"] = json!({"matchLabels": {"gate": "open"}});
        bed.objects.must(Ask::put(path, configuration));
    }
    until("they are put back", || {
        CONFIGURATIONS.iter().all(|path| life.at(path)["webhooks"][0]["namespaceSelector"] == json!({}))
    });
    life.until_looked_at(&[&one, &other]);
    assert_eq!((served(&life), validated(&life)), as_led);

    // The next leader settles it.
    assert!(one.into_program().stop(), "it ends well");
    other.logs("leading");
    let settled = ((false, json!("v1")), (json!([namespace]), json!([namespace])));
    until("its settings are in force", || (served(&life), validated(&life)) == settled);
}

/// Where API servers ask for each object that is guarded.
fn ports(life: &Life) -> Vec<String> {
    let url = |path: &&str| {
        let object = life.at(path);
        let (hook, conversion) = ("/webhooks/0", "/spec/conversion/webhook");
        let client = object.pointer(hook).or_else(|| object.pointer(conversion)).expect("a webhook");
        let url = client["clientConfig"]["url"].as_str().expect("a URL").to_owned();
        url.rsplit(':').next().and_then(|rest| rest.split('/').next()).expect("a port").to_owned()
    };
    GUARDED.iter().map(url).collect()
}

pub fn an_address_that_does_not_answer_is_given_up_for_one_that_does(bed: &Bed) {
    let life = Life::begin_empty(bed);
    let one = life.spawn_with(LASTING, None, 0, 0);
    one.logs("leading");
    one.logs("installed");
    let other = life.spawn_with(LASTING, None, 0, 0);
    other.logs("installed");
    life.until_looked_at(&[&one, &other]);
    let at = |port: u16| vec![port.to_string(); GUARDED.len()];
    assert_eq!(ports(&life), at(one.address.port()), "as long as that answers");

    // The Lease is still that one's.
    one.into_program().kill();
    until("the other's address is installed", || ports(&life) == at(other.address.port()));
    life.until_guarded();
    life.use_both_versions("after");
    let lines = other.log().from_the_start()();
    assert!(lines.iter().all(|line| line["message"] != "leading"), "it does not lead");
}
