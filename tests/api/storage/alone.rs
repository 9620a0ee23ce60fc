//! The command and the leader, each without the other.

use gatehouse::kinds::KINDS;
use kit::bed::Bed;
use kit::objects::{Ask, http_get};
use kit::wait::eventually;
use serde_json::json;

use super::ours::{leading, tdset};
use super::widgets::{Widgets, run};
use crate::installed::{self, LEASE, WRITTEN};

/// A definition of others is migrated where no definition, webhook or lease of gatehouse is.
pub fn nothing_of_gatehouse_has_to_be_there(bed: &Bed) {
    let _turn = bed.turn();
    installed::clear(bed);
    let widgets = Widgets::stored_as_v1alpha1(bed, "without", true);
    widgets.make(5);
    widgets.store_as_v1();
    for path in WRITTEN.iter().copied().chain([LEASE]) {
        assert_eq!(bed.objects.if_there(Ask::get(path)), None, "{path}");
    }
    let ran = run(bed, &["migrate", &widgets.name, "--to", "v1", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.stored_versions()), (0, json!(["v1"])));
}

/// A leader with `--migrate-storage false` works, and leaves the definitions to the command.
pub fn a_leader_leaves_what_is_stored_where_it_is_told_to(bed: &Bed) {
    let _turn = bed.turn();
    installed::clear(bed);
    let namespace = bed.namespace();
    let mut command = leading(bed);
    command.args(["--migrate-storage", "false"]);
    let gate = bed.start_gate(&command).unwrap_or_else(|error| panic!("{error}"));
    gate.logs("leading");
    gate.logs("installed");
    installed::until_guarded(bed, &namespace.name);
    // As where v1alpha1 was the storage version before.
    let both = json!(["v1alpha1", "v1"]);
    for plural in KINDS.iter().map(|kind| kind.names().plural) {
        let status = installed::definition(plural) + "/status";
        bed.objects.must(Ask::patch(status, json!({"status": {"storedVersions": both}})));
    }
    // What it does about a change of now comes later than what it would do about those.
    let late = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "late"},
        "spec": tdset()});
    eventually(|| bed.objects.one(Ask::create(&late, &namespace.name)).map_err(|refusal| refusal.message));
    namespace.until("tdset/late", "{.status.observedGeneration}", "1");
    for plural in KINDS.iter().map(|kind| kind.names().plural) {
        let definition = bed.objects.at(&installed::definition(plural));
        assert_eq!(definition["status"]["storedVersions"], both, "{plural}");
    }
    let begun = gate.log().first("migrates");
    assert!(begun.is_none(), "{begun:?}");
    let page = http_get(gate.health, "/metrics");
    let shown = page.lines().find(|line| line.starts_with("gatehouse_storage_older_versions{"));
    assert_eq!(shown, None, "it does not know");
    assert!(gate.into_program().stop(), "it ends well");

    // The same without that.
    let gate = bed.start_gate(&leading(bed)).unwrap_or_else(|error| panic!("{error}"));
    gate.logs("migrates");
}
