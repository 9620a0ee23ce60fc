//! Rights that are taken away while replicas run.

use kit::bed::Bed;
use kit::objects::Ask;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::parts::may;
use super::removal::CLUSTER_ROLE;
use super::{House, LASTING, metric};
use crate::installed::MUTATING;

/// Which release wrote an object last.
const INSTALLED_BY: &str = "gatehouse.dev/installed-by";

/// Takes the right to patch definitions from gatehouse, until it is dropped.
struct WithoutDefinitions<'a>(&'a Bed);

impl<'a> WithoutDefinitions<'a> {
    fn begin(bed: &'a Bed) -> Self {
        let mut rules = bed.objects.at(CLUSTER_ROLE)["rules"].clone();
        let all: &mut Vec<Value> = rules.as_array_mut().expect("rules");
        for rule in all.iter_mut().filter(|rule| rule["apiGroups"] == json!(["apiextensions.k8s.io"])) {
            rule["verbs"].as_array_mut().expect("verbs").retain(|verb| verb != "patch");
        }
        // A rule needs a verb.
        all.retain(|rule| rule["verbs"] != json!([]));
        bed.objects.must(Ask::patch(CLUSTER_ROLE, json!({"rules": rules})));
        let patch = json!({"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "verb": "patch",
            "name": "tdsets.gatehouse.dev"});
        eventually(|| if may(bed, "gatehouse", &patch) { Err("it may patch definitions") } else { Ok(()) });
        Self(bed)
    }
}

impl Drop for WithoutDefinitions<'_> {
    fn drop(&mut self) {
        self.0.grant();
    }
}

pub fn a_leader_that_cannot_install_works_by_what_its_release_has_installed(bed: &Bed) {
    let house = House::begin(bed);
    let mut replicas = house.replicas(&[LASTING; 2]);
    house.tdset("shop", &json!({}));
    house.until_replicas("shop", 1);
    let fewer = WithoutDefinitions::begin(bed);
    assert!(replicas.remove(0).into_program().stop(), "it ends well");
    replicas[0].logs("failed to install as the leader");
    house.works("shop", 3);
    let said = "the definitions are as this release has written them: works although it cannot install";
    replicas[0].logs(said);
    eventually(|| match metric(&replicas[0], "gatehouse_installation_failing") {
        Some(1) => Ok(()),
        other => Err(format!("it fails: {other:?}")),
    });

    // It goes on trying while it works: what another release wrote is written by the installation of a leader alone.
    bed.objects.must(Ask::patch(MUTATING, json!({"metadata": {"annotations": {INSTALLED_BY: "0.0.1"}}})));
    drop(fewer);
    eventually(|| match bed.objects.at(MUTATING)["metadata"]["annotations"][INSTALLED_BY].as_str() {
        Some(env!("CARGO_PKG_VERSION")) => Ok(()),
        other => Err(format!("installed by {other:?}")),
    });
    eventually(|| match metric(&replicas[0], "gatehouse_installation_failing") {
        Some(0) => Ok(()),
        other => Err(format!("it fails: {other:?}")),
    });
    house.works("shop", 2);
}
