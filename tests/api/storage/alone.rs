//! Where the command and the leader do without each other, on the oldest version: a cluster that has nothing of
//! gatehouse, and a leader that is told to leave what is stored alone.

use kit::bed::Bed;
use kit::objects::{Ask, http_get};
use kit::program::Log;
use kit::wait::eventually;
use serde_json::json;

use super::ours::{KINDS, are_all_v1, is_migrated, leading, made_as_v1alpha1, tdset};
use super::widgets::{Widgets, run};
use crate::corpus::{self, bare};
use crate::installed::{self, LEASE, WRITTEN};

pub fn the_leader_moves_our_objects_unless_it_is_told_not_to(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let bed = &bare.bed;
    nothing_of_gatehouse_is_needed(bed);
    let namespace = made_as_v1alpha1(bed);
    let mut command = leading(bed);
    let gate = bed.start_gate(&command).unwrap_or_else(|error| panic!("{error}"));
    for plural in KINDS {
        eventually(|| if is_migrated(bed, plural) { Ok(()) } else { Err(format!("{plural} are not")) });
    }
    are_all_v1(&namespace);
    assert!(gate.into_program().stop(), "it ends well");

    // As where v1alpha1 was the storage version for a moment.
    let both = json!(["v1alpha1", "v1"]);
    for plural in KINDS {
        let status = installed::definition(plural) + "/status";
        bed.objects.must(Ask::patch(status, json!({"status": {"storedVersions": both}})));
    }
    command.args(["--migrate-storage", "false"]);
    let gate = bed.start_gate(&command).unwrap_or_else(|error| panic!("{error}"));
    gate.logs("leading");
    // It works, and would have begun with the definitions.
    let late = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "metadata": {"name": "late"},
        "spec": tdset()});
    eventually(|| bed.objects.one(Ask::create(&late, &namespace.name)).map_err(|refusal| refusal.message));
    namespace.until("tdset/late", "{.status.observedGeneration}", "1");
    for plural in KINDS {
        let definition = bed.objects.at(&installed::definition(plural));
        assert_eq!(definition["status"]["storedVersions"], both, "{plural}");
    }
    let begun = Log::of(gate.log().path()).first("migrates");
    assert!(begun.is_none(), "{begun:?}");
    let page = http_get(gate.health, "/metrics");
    let shown = page.lines().find(|line| line.starts_with("gatehouse_storage_older_versions{"));
    assert_eq!(shown, None, "it does not know");
    drop(gate);
    installed::clear(bed);
    corpus::without_gate(bare);
}

/// A definition of others is migrated where no definition, webhook or lease of gatehouse is.
fn nothing_of_gatehouse_is_needed(bed: &Bed) {
    installed::clear(bed);
    let widgets = Widgets::stored_as_v1alpha1(bed, "without", true);
    widgets.make(5);
    widgets.store_as_v1();
    for path in WRITTEN.into_iter().chain([LEASE]) {
        assert_eq!(bed.objects.if_there(Ask::get(path)), None, "{path}");
    }
    let ran = run(bed, &["migrate", &widgets.name, "--to", "v1", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.stored_versions()), (0, json!(["v1"])));
}
