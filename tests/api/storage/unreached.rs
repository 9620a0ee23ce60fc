//! A migration whose API server goes away and comes back.

use std::fs;

use kit::bed::Bed;
use kit::wait::{PATIENCE, eventually};
use serde_json::json;

use super::moving::{has_left, started};
use super::way::by_another_way;
use super::widgets::Widgets;

pub fn an_api_server_that_goes_away_is_waited_for(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "unreached", false);
    widgets.make(60);
    widgets.store_as_v1();
    let (kubeconfig, way) = by_another_way(bed, bed.cluster.kubeconfig(), "kubeconfig-that-is-cut");
    let migrator = started(&widgets, &kubeconfig);
    let log = migrator.log().path().to_owned();
    way.pass_until(10, PATIENCE, || has_left(&widgets, 50));
    way.cut();
    // So often that an object which fails by itself would have been given up.
    eventually(|| match way.refused() {
        refused if refused > 5 => Ok(()),
        refused => Err(format!("it has tried {refused} times")),
    });
    let said = fs::read_to_string(&log).expect("a log");
    assert!(said.contains("waiting for the API server: "), "{said}");
    let left = widgets.in_etcd("v1alpha1").len();
    assert_ne!(left, 0, "it was cut before its end");
    way.open();
    way.mend();
    let code = migrator.code();
    let said = fs::read_to_string(&log).expect("a log");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.stored_versions()), (0, json!(["v1"])), "{said}");
}
