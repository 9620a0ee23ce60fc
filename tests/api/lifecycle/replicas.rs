//! Several replicas of one installation, also with different settings, as in a rolling update of a value.

use kit::bed::Bed;
use serde_json::json;

use super::{Life, until};
use crate::installed::{SECRET, TDSETS, WRITTEN};
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

/// Whether the definition serves the old version, and the setting of the gate that wrote it last.
fn served(life: &Life) -> (bool, String) {
    let definition = life.at(TDSETS);
    let versions = definition["spec"]["versions"].as_array().expect("versions");
    let old = versions.iter().find(|version| version["name"] == "v1alpha1").expect("it stays");
    let setting = definition["metadata"]["annotations"]["gatehouse.dev/served-versions"].as_str();
    (old["served"] == true, setting.unwrap_or_default().to_owned())
}

pub fn replicas_with_other_settings_do_not_undo_each_other(bed: &Bed) {
    let life = Life::begin_empty(bed);
    // Who leads changes only where this test has it change.
    let one = life.spawn_with(LASTING, None, 0, 0);
    one.logs("leading");
    one.logs("installed");
    let options = [LASTING, &["--served-versions", "v1"]].concat();
    let other = life.spawn_with(&options, None, 0, one.address.port());
    other.logs("installed");
    let generation = || life.at(TDSETS)["metadata"]["generation"].as_i64().expect("a number");
    let before = generation();
    life.until_looked_at(&[&one, &other]);
    // The leader may have been about to install.
    let writes = generation() - before;
    assert!((0..=1).contains(&writes), "{writes} writes, while each has looked twice: {:?}", served(&life));

    // Each of them puts right what is its own.
    let (is_served, setting) = served(&life);
    assert_eq!(setting, if is_served { "v1,v1alpha1" } else { "v1" });
    life.patch(TDSETS, json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}}));
    until("it is put back", || life.bundles().iter().all(|bundle| !bundle.is_empty()));
    life.until_looked_at(&[&one, &other]);
    let changes = generation() - before - writes;
    assert_eq!(changes, 2, "one wipes it and one puts it back");

    // The next leader settles it.
    assert!(one.into_program().stop(), "it ends well");
    other.logs("leading");
    until("its setting is in force", || served(&life) == (false, "v1".to_owned()));
}
