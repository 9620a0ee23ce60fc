//! Edits of EtcdClusters as the cluster tier makes them one after the other, held against the gate that has to let them
//! in; and what calls two clusters alike.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::collections::{BTreeMap, BTreeSet};

use gatehouse::kinds::etcdcluster::api::validate::validate;
use kit::chains::chain::{Chain, Pace, chain, patch};
use kit::chains::compare::{KINDS, differences, snapshot};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Edits of a chain, as the cluster tier has them.
const LENGTH: usize = 6;

/// A chain by these numbers, which begin again when they have ended.
fn drawn(numbers: &[u64], length: usize) -> Chain {
    let mut numbers = numbers.iter().copied().cycle();
    chain(&mut || numbers.next().unwrap(), length)
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any::<u64>(), 64)
}

/// The object while its members run `runs`.
fn object(spec: &Value, runs: &Value) -> Value {
    let minor = runs.as_str().unwrap().rsplit_once('.').unwrap().0;
    json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster",
        "metadata": {"name": "main", "annotations": {"gatehouse.dev/allow-downgrade": "true"}},
        "spec": spec, "status": {"version": runs, "clusterVersion": minor},
    })
}

fn is_pause(spec: &Value) -> bool {
    spec["paused"] == true
}

/// How chains are drawn.
mod properties {
    use proptest::test_runner::{Config, RngSeed};

    /// The same chains in each run, unless `PROPTEST_RNG_SEED` chooses others.
    pub fn config() -> Config {
        let config = Config::default();
        let rng_seed = if config.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { config.rng_seed };
        Config { rng_seed, ..config }
    }
}

proptest! {
    #![proptest_config(properties::config())]
    #[test]
    fn the_gate_lets_each_edit_in(numbers in numbers(), length in 3_usize..12) {
        let chain = drawn(&numbers, length);
        prop_assert_eq!(chain.edits.len(), length, "{}", chain);
        let mut runs = chain.first["version"].clone();
        let first = validate(&object(&chain.first, &runs), None);
        prop_assert!(first.errors.is_empty(), "{}: {:?}", chain, first);
        let mut before = &chain.first;
        for edit in &chain.edits {
            let validation = validate(&object(&edit.spec, &runs), Some(&object(before, &runs)));
            prop_assert!(validation.errors.is_empty(), "{}: {}: {:?}", chain, edit, validation);
            prop_assert_ne!(&edit.spec, before, "{}: {} changes nothing", &chain, edit);
            if edit.pace == Pace::Settles && edit.spec["replicas"] != 0 {
                runs = edit.spec["version"].clone();
            }
            before = &edit.spec;
        }
    }

    #[test]
    fn a_chain_ends_with_members_that_work(numbers in numbers(), length in 3_usize..12) {
        let chain = drawn(&numbers, length);
        let (edit, spec) = (chain.edits.last().unwrap(), chain.last());
        prop_assert!(edit.pace == Pace::Settles && spec["replicas"] != 0 && !is_pause(spec), "{chain}");
    }

    #[test]
    fn what_breaks_a_cluster_that_works_is_set_back(numbers in numbers(), length in 3_usize..12) {
        let chain = drawn(&numbers, length);
        let breaks: Vec<_> = (0..length).filter(|at| chain.edits[*at].pace == Pace::Breaks).collect();
        prop_assert_eq!(breaks.len(), 1, "{}", chain);
        let at = breaks[0];
        let before = at.checked_sub(1).map_or(&chain.first, |before| {
            assert_eq!(chain.edits[before].pace, Pace::Settles, "{chain}");
            &chain.edits[before].spec
        });
        prop_assert!(before["replicas"] != 0 && !is_pause(before), "{}", chain);
        prop_assert_eq!(&chain.edits[at + 1].spec, before, "{}", &chain);
        prop_assert_eq!(chain.edits[at + 1].pace, Pace::Settles);
    }

    #[test]
    fn a_patch_makes_one_spec_of_another(numbers in numbers()) {
        let chain = drawn(&numbers, LENGTH);
        let mut spec = chain.first.clone();
        for edit in &chain.edits {
            let patch = patch(&spec, &edit.spec);
            json_patch::merge(&mut spec, &patch);
            prop_assert_eq!(&spec, &edit.spec, "{}", patch);
        }
    }
}

/// Numbers that are far from each other, of a small one.
fn scattered(seed: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..64).map(|_| next()).collect()
}

#[test]
fn a_hundred_chains_reach_what_they_are_about() {
    let chains: Vec<_> = (0..100).map(|seed| drawn(&scattered(seed), LENGTH)).collect();
    let edits: Vec<_> = chains.iter().flat_map(|chain| &chain.edits).collect();
    let words: BTreeSet<_> = edits.iter().map(|edit| edit.what.split(' ').next().unwrap()).collect();
    for word in ["replicas", "version", "paused", "storage.size", "options.extra", "pod.labels"] {
        assert!(words.contains(word), "{word} in {words:?}");
    }
    for count in 0..4 {
        assert!(edits.iter().any(|edit| edit.what == format!("replicas {count}")), "{count} members");
    }
    let versions: BTreeSet<_> =
        edits.iter().filter(|edit| edit.what.starts_with("version")).map(|edit| &edit.what).collect();
    assert_eq!(versions.len(), 3, "{versions:?}");
    let hurried = edits.iter().filter(|edit| matches!(edit.pace, Pace::Hurries(_))).count();
    assert!(hurried > 50, "{hurried} of {} edits come before the end of another", edits.len());
    let broken: BTreeSet<_> =
        edits.iter().filter(|edit| edit.pace == Pace::Breaks).map(|edit| &edit.what).collect();
    assert_eq!(broken.len(), 10, "{broken:?}");
}

/// A cluster of a namespace, with a uid of its own and what there is of it.
fn cluster(namespace: &str, uid: &str, id: &str) -> (Value, BTreeMap<&'static str, Vec<Value>>) {
    let template = format!("3.6.16-{uid}{uid}{uid}{uid}");
    let object = json!({
        "metadata": {"name": "main", "namespace": namespace, "uid": format!("uid-{uid}"), "generation": 3},
        "spec": {"replicas": 1},
        "status": {
            "members": [{"name": "main-0", "id": id, "role": "Voter", "healthy": true, "dbSize": uid.len()}],
            "conditions": [{"type": "Progressing", "status": "False", "reason": "UpToDate", "message": "no change is under way",
                "lastTransitionTime": uid}],
        },
    });
    let entry =
        json!({"purpose": "Run", "member": id, "volume": format!("claim-{uid}"), "template": template});
    let metadata = |name: &str, own: &str| {
        json!({"name": name, "uid": format!("{own}-{uid}"), "annotations": {"gatehouse.dev/applied-hash": uid},
            "ownerReferences": [{"name": "main", "uid": format!("uid-{uid}")}]})
    };
    let flags = format!(
        "name: \"main-0\"\ninitial-cluster: \"{uid}\"\nclient-transport-security:\n  cert-file: \"a\"\n"
    );
    let mut pod = metadata("main-0", "pod");
    pod["annotations"]["gatehouse.dev/template"] = json!(template);
    let objects = BTreeMap::from([
        (
            "configmaps",
            vec![json!({"metadata": metadata("main-config", "config"),
                "data": {"main-0.json": entry.to_string(), "main-0.yaml": flags}})],
        ),
        (
            "statefulsets",
            vec![json!({"metadata": metadata("main", "set"), "spec": {"replicas": 1,
                "template": {"metadata": {"annotations": {"gatehouse.dev/template": template}}},
                "volumeClaimTemplates": [{"spec": {"resources": uid}}]}})],
        ),
        (
            "persistentvolumeclaims",
            vec![json!({"metadata": metadata("data-main-0", "claim"), "spec": {"size": 2}})],
        ),
        ("pods", vec![json!({"metadata": pod, "spec": {"url": format!("http://main-0.{namespace}")}})]),
        ("secrets", vec![json!({"metadata": metadata("main-ca", "secret"), "data": {"ca.crt": uid}})]),
        (
            "services",
            vec![
                json!({"metadata": metadata("main", "service"), "spec": {"clusterIP": "None"}}),
                json!({"metadata": metadata("main-client", "service"), "spec": {"clusterIP": uid}}),
            ],
        ),
    ]);
    (object, objects)
}

fn found(change: impl FnOnce(&mut Value, &mut BTreeMap<&'static str, Vec<Value>>)) -> Vec<String> {
    let (left, objects) = cluster("ns-one", "aaaa", "1f");
    assert!(objects.keys().all(|kind| KINDS.contains(kind)), "{KINDS:?}");
    let left = snapshot(&left, &objects);
    let (mut right, mut objects) = cluster("ns-other", "bbbb", "2e");
    change(&mut right, &mut objects);
    differences(&left, &snapshot(&right, &objects))
}

#[test]
fn clusters_are_alike_but_for_what_is_their_own() {
    assert_eq!(found(|_, _| {}), Vec::<String>::new());
}

#[test]
fn whatever_else_differs_is_found() {
    type Change = fn(&mut Value, &mut BTreeMap<&'static str, Vec<Value>>);
    let changes: [(&str, Change); 12] = [
        ("/etcdcluster/status/conditions/0/reason", |cluster, _| {
            cluster["status"]["conditions"][0]["reason"] = json!("Restarting");
        }),
        ("/etcdcluster/status/members/0/role", |cluster, _| {
            cluster["status"]["members"][0]["role"] = json!("Learner");
        }),
        ("/etcdcluster/status/operation", |cluster, _| {
            cluster["status"]["operation"] = json!({"type": "Upgrade"});
        }),
        ("/statefulsets/main/spec/replicas", |_, objects| {
            objects.get_mut("statefulsets").unwrap()[0]["spec"]["replicas"] = json!(2);
        }),
        ("/pods/main-0/metadata/annotations/gatehouse.dev/template", |_, objects| {
            let annotations = &mut objects.get_mut("pods").unwrap()[0]["metadata"]["annotations"];
            annotations["gatehouse.dev/template"] = json!("3.6.16-0123456789abcdef");
        }),
        ("/pods/main-0/spec/nodeSelector", |_, objects| {
            objects.get_mut("pods").unwrap()[0]["spec"]["nodeSelector"] = json!({"a": "b"});
        }),
        ("/pods/main-1", |_, objects| {
            objects.get_mut("pods").unwrap().push(json!({"metadata": {"name": "main-1"}}));
        }),
        ("/persistentvolumeclaims/data-main-0/spec/size", |_, objects| {
            objects.get_mut("persistentvolumeclaims").unwrap()[0]["spec"]["size"] = json!(1);
        }),
        ("/configmaps/main-config/data/main-0.json/purpose", |_, objects| {
            let data = &mut objects.get_mut("configmaps").unwrap()[0]["data"]["main-0.json"];
            *data = json!(data.as_str().unwrap().replace("Run", "Join"));
        }),
        ("/configmaps/main-config/data/main-0.yaml/quota-backend-bytes", |_, objects| {
            let data = &mut objects.get_mut("configmaps").unwrap()[0]["data"]["main-0.yaml"];
            *data = json!(format!("{}quota-backend-bytes: 1\n", data.as_str().unwrap()));
        }),
        ("/services/main/spec/clusterIP", |_, objects| {
            objects.get_mut("services").unwrap()[0]["spec"]["clusterIP"] = json!("10.0.0.1");
        }),
        ("/secrets/main-ca/data", |_, objects| {
            objects.get_mut("secrets").unwrap()[0]["data"] = json!({"ca.crt": "", "ca.key": ""});
        }),
    ];
    for (path, change) in changes {
        let found = found(change);
        assert!(found.len() == 1 && found[0].starts_with(&format!("{path}: ")), "{path}: {found:?}");
    }
}
