//! An upgrade by Helm, where the chart installs the definitions, from a chart whose definitions store v1alpha1.

use std::fs;
use std::path::{Path, PathBuf};

use kit::bed::{Bed, NAMESPACE};
use kit::deploy::{chart, name, objects, outcome, variant};
use kit::objects::{Ask, collection_of};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::ours::{KINDS, in_etcd, tdset};
use super::widgets::run;
use crate::corpus;
use crate::corpus::bare::{self, Bare};
use crate::installed;

/// So many objects.
const COUNT: usize = 5;

pub fn an_upgrade_by_helm_leaves_objects_that_the_command_moves(bed: &Bed) {
    let bare = bare::beside(bed);
    let _turn = bare.turn_of_one();
    let bed = &bare.bed;
    installed::clear(bed);
    // helm takes nothing over that it has not made.
    for object in variant("default") {
        bed.objects.if_there(Ask::delete(format!("{}/{}", collection_of(object, "default"), name(object))));
    }
    // Nothing is at the gate of the chart: it is asked about objects of another namespace alone, and by no policy.
    let (guarded, namespace) = (bed.namespace(), bed.namespace());
    let values = values(bare, &guarded.name);
    let helm = |words: &[&str], chart: Option<&Path>| {
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let mut all: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        all.extend(
            chart.map(|chart| vec![text(chart), "--values".to_owned(), text(&values)]).into_iter().flatten(),
        );
        all.extend(["--namespace", NAMESPACE, "--kubeconfig"].map(str::to_owned));
        all.push(text(bed.cluster.kubeconfig()));
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        outcome("helm", &all, "").unwrap_or_else(|error| panic!("{error}"));
    };

    helm(&["install", "gatehouse"], Some(&chart_of_before(bed.cluster.folder())));
    for number in 0..COUNT {
        let object = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet",
            "metadata": {"name": format!("shop-{number}")}, "spec": tdset()});
        eventually(|| {
            bed.objects.one(Ask::create(&object, &namespace.name)).map_err(|refusal| refusal.message)
        });
    }
    helm(&["upgrade", "gatehouse"], Some(&chart()));
    let stored =
        |plural: &str| bed.objects.at(&installed::definition(plural))["status"]["storedVersions"].clone();
    for plural in KINDS {
        eventually(|| match stored(plural) {
            stored if stored == json!(["v1alpha1", "v1"]) => Ok(()),
            stored => Err(format!("{plural}: {stored}")),
        });
    }
    assert_eq!(in_etcd(bed, "v1alpha1").len(), COUNT);

    // What converts is not where the chart says.
    for definition in bare.definitions() {
        let mut way = json!(definition.spec.conversion)["webhook"]["clientConfig"].take();
        way["service"] = Value::Null;
        let path = installed::definition(&definition.spec.names.plural);
        let change = json!({"spec": {"conversion": {"webhook": {"clientConfig": way}}}});
        bed.objects.must(Ask::patch(path, change));
    }
    let converted = namespace.path("tdset/shop-0");
    eventually(|| match bed.objects.read(&converted)? {
        read if read["spec"]["windows"].is_array() => Ok(()),
        read => Err(read.to_string()),
    });
    let ran = run(bed, &["migrate", "--all", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((in_etcd(bed, "v1alpha1").len(), in_etcd(bed, "v1").len()), (0, COUNT));
    for plural in KINDS {
        assert_eq!(stored(plural), json!(["v1"]), "{plural}");
    }
    helm(&["uninstall", "gatehouse"], None);
    installed::clear(bed);
    corpus::without_gate(bare);
}

/// Values by which the chart installs the definitions, and has the gate asked about objects of that namespace.
fn values(bare: &Bare, namespace: &str) -> PathBuf {
    let authority = bare.definitions().remove(0).spec.conversion.and_then(|conversion| conversion.webhook);
    let authority = authority.and_then(|webhook| webhook.client_config?.ca_bundle).expect("an authority");
    let path = bare.bed.cluster.folder().join("values-of-the-chart.json");
    let set = json!({"installedBy": "chart", "watchNamespaces": [namespace],
        "policies": {"authorship": false, "deletionProtection": false},
        "certificates": {"source": "secret", "caBundle": String::from_utf8(authority.0).expect("PEM")}});
    fs::write(&path, set.to_string()).expect("a file");
    path
}

/// The chart as it may have been when the definitions stored v1alpha1.
fn chart_of_before(folder: &Path) -> PathBuf {
    let to = folder.join("chart-of-before");
    copy(&chart(), &to);
    for plural in KINDS {
        let path = to.join(format!("files/{plural}.yaml"));
        let mut definition = objects(&fs::read_to_string(&path).expect("a definition")).remove(0);
        for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
            let is_stored = version["name"] == "v1alpha1";
            version["storage"] = is_stored.into();
        }
        fs::write(&path, definition.to_string()).expect("a file");
    }
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a file");
        }
    }
}
