//! Our definitions without the old version, as a later release may have them, and with it again.

use std::fs;

use gatehouse::kinds::KINDS;
use kit::bed::{Bed, Namespace};
use kit::call::Call;
use kit::objects::{Ask, Refusal, of};
use kit::program::Gate;
use kit::root;
use kit::wait::eventually;
use serde_json::json;

use super::helm::Releases;
use super::ours::{self, in_etcd, made_as_v1alpha1, on_bare, tdset, until_converted};
use super::service::{applied, managers_of, manifest};
use super::widgets::{held_back, run};
use crate::installed;

pub fn v1alpha1_is_removed_from_our_definitions_and_comes_back(bed: &Bed) {
    on_bare(bed, is_removed_and_comes_back);
}

fn is_removed_and_comes_back(bed: &Bed) {
    let namespace = made_as_v1alpha1(bed);
    let gate = gate_that_serves(&namespace, "v1,v1alpha1");
    until_converted(&namespace);
    applied(&namespace, "v1alpha1", &tdset()).expect("it is served");
    let file = bed.cluster.folder().join("shop.yaml");
    fs::write(&file, manifest("shop")).expect("a file");
    let warned = namespace.kubectl(&["apply", "-f", &file.to_string_lossy()]).warnings();
    let deprecated = "gatehouse.dev/v1alpha1 TDSet is deprecated; use gatehouse.dev/v1: gatehouse convert -f FILE \
                      rewrites a manifest";
    assert!(warned.contains(documented(deprecated)), "{warned}");
    let releases = Releases::installed(&namespace);
    let refusal = define_without_v1alpha1(bed).expect_err("objects may be stored in it");
    assert!(
        refusal
            .message
            .contains("v1alpha1 was previously a storage version, and must remain in spec.versions"),
        "{}",
        refusal.message
    );

    // As docs/storage-migration.md says: migrated, not served, without managed fields.
    let definitions = ours::definitions();
    let migrate = || {
        let words = ["migrate", "--to", "v1", "--grace", "0s"].into_iter();
        let ran = run(bed, &words.chain(definitions.iter().map(String::as_str)).collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    migrate();
    assert_eq!(in_etcd(bed, "v1alpha1"), [""; 0]);
    drop(gate);
    let gate = gate_that_serves(&namespace, "v1");
    let old = of("v1alpha1", &namespace.name, "tdsets");
    eventually(|| match bed.objects.one(Ask::get(&*old)) {
        Err(refusal) if refusal.code == 404 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(held_back(bed, "tdsets.gatehouse.dev", "v1alpha1"), json!(["ManagedFields"]));
    migrate();
    for definition in &definitions {
        assert_eq!(held_back(bed, definition, "v1alpha1"), json!([]), "{definition}");
    }

    let address = gate.address.to_string();
    drop(gate);
    define_without_v1alpha1(bed).unwrap_or_else(|refusal| panic!("{}", refusal.message));
    until_removed(&namespace);
    let gate = gate_that_installs_nothing(&namespace, &address);
    is_worked_by_v1_alone(&namespace);
    is_told_what_helps(&namespace);
    releases.are_upgraded_where_they_were_in_time();

    drop(gate);
    let _gate = gate_that_serves(&namespace, "v1,v1alpha1");
    let back = eventually(|| bed.objects.read(&format!("{old}/shop-3")));
    assert_eq!(back["spec"], tdset(), "as it was written");
    let back = eventually(|| applied(&namespace, "v1alpha1", &tdset()));
    assert_eq!(back["spec"], tdset());
    releases.are_upgraded_where_it_is_served_again();
    namespace.kubectl(&["apply", "-f", &file.to_string_lossy()]).ok();
    assert_eq!(in_etcd(bed, "v1alpha1"), [""; 0], "nothing is stored in it");
}

/// A gate that judges and works this namespace alone: such a one migrates nothing by itself.
fn gate_that_serves(namespace: &Namespace, versions: &str) -> Gate {
    let words = ["--watch-namespaces", &namespace.name, "--served-versions", versions];
    namespace.bed.install(&words).unwrap_or_else(|error| panic!("{error}"))
}

/// The same where the API server asks for it, beside definitions that others see to.
fn gate_that_installs_nothing(namespace: &Namespace, address: &str) -> Gate {
    let words = ["--watch-namespaces", &namespace.name, "--install", "false"];
    let words = [&words[..], &["--webhook-url", "https://127.0.0.1:0"]].concat();
    let command = namespace.bed.serve_at("gatehouse", address, &words);
    let gate = namespace.bed.start_gate(&command).unwrap_or_else(|error| panic!("{error}"));
    installed::until_guarded(namespace.bed, &namespace.name);
    gate
}

/// What the API server answers to a client that reads v1 once it serves the definitions without the old version.
const ALONE: &str = "it is alone";

/// Writes our definitions as a release that does not know the old version.
fn define_without_v1alpha1(bed: &Bed) -> Result<(), Refusal> {
    for kind in KINDS {
        let mut definition = kind.definition();
        definition.spec.versions.retain(|version| version.name == "v1");
        for version in &mut definition.spec.versions {
            (version.deprecated, version.deprecation_warning) = (Some(true), Some(ALONE.to_owned()));
        }
        let mut object = json!(definition);
        object["apiVersion"] = "apiextensions.k8s.io/v1".into();
        object["kind"] = "CustomResourceDefinition".into();
        bed.objects.one(Ask::apply(&object, "", ""))?;
    }
    Ok(())
}

/// Waits until it serves them so. An unserved version and one that is not there look the same.
fn until_removed(namespace: &Namespace) {
    for kind in KINDS {
        let place = of("v1", &namespace.name, kind.names().plural);
        eventually(|| match namespace.bed.objects.warned(Ask::get(&*place)) {
            (Ok(_), warnings) if warnings == [ALONE] => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

/// Managers, users and controllers go on.
fn is_worked_by_v1_alone(namespace: &Namespace) {
    let bed = namespace.bed;
    // Who applied by the old version owns what it applies by the new one. What it leaves out in that very apply stays.
    let whole = namespace.get("tdsets", "applied")["spec"].clone();
    let mut fewer = whole.clone();
    fewer.as_object_mut().expect("an object").remove("windows");
    let stays = applied(namespace, "v1", &fewer).expect("it goes on");
    assert_eq!(stays["spec"]["windows"], whole["windows"]);
    applied(namespace, "v1", &whole).expect("it owns them again");
    let after = applied(namespace, "v1", &fewer).expect("it gives them up");
    assert!(after["spec"]["windows"].as_array().is_none_or(Vec::is_empty), "{after}");
    assert_eq!(managers_of(&after, "team"), ["gatehouse.dev/v1"]);
    bed.objects.until("tdset/applied", &namespace.name, |found| {
        let (seen, wanted) = (&found["status"]["observedGeneration"], &after["metadata"]["generation"]);
        if seen == wanted { Ok(()) } else { Err(format!("{seen} of {wanted}")) }
    });
    // An object not written since it was moved takes an edit, with the gate asked.
    namespace.change("tdset/shop-5", &json!({"spec": {"defaultReplicas": 1}}));
    let wrong = Ask::patch(namespace.path("tdset/shop-5"), json!({"spec": {"timeZone": "Europe/Utopia"}}));
    let refusal = bed.objects.one(wrong).expect_err("the gate knows no such zone");
    assert!(refusal.fields.contains("spec.timeZone"), "{}", refusal.message);
    namespace.change("etcdcluster/main-5", &json!({"spec": {"paused": true}}));
}

/// A manifest of the old version gets its message from kubectl alone, and the documentation quotes it correctly.
fn is_told_what_helps(namespace: &Namespace) {
    let bed = namespace.bed;
    let folder = bed.cluster.folder();
    let apply = |cache: &str| {
        let mut command = bed.cluster.kubectl();
        command.args(["--namespace", &namespace.name, "apply", "-f", "shop.yaml"]);
        command.args(["--cache-dir", &folder.join(cache).to_string_lossy()]).current_dir(folder);
        Call::new(command).fails()
    };
    let known = "Error from server (NotFound): error when creating \"shop.yaml\": the server could not find the \
                 requested resource";
    let told = apply("kubectl-cache");
    assert!(told.contains(documented(known)), "{told}");
    let unknown = "error: resource mapping not found for name: \"shop\" namespace: \"\" from \"shop.yaml\": no \
                   matches for kind \"TDSet\" in version \"gatehouse.dev/v1alpha1\"\nensure CRDs are installed first";
    let told = apply("cache-without-v1alpha1");
    assert!(told.contains(documented(unknown)), "{told}");

    documented("Rewrite the manifest with `gatehouse convert -f shop.yaml`");
    let file = folder.join("shop.yaml");
    let converted = Call::gatehouse(&bed.program, &["convert", "-f", &file.to_string_lossy()]).ok();
    let before = namespace.get("tdsets", "shop");
    namespace.kubectl(&["apply"]).input(converted).ok();
    let after = namespace.get("tdsets", "shop");
    assert_eq!(after["spec"], before["spec"]);
}

/// A sentence that docs/storage-migration.md has, wherever its lines end.
pub fn documented(sentence: &str) -> &str {
    let page = fs::read_to_string(root().join("docs/storage-migration.md")).expect("the page");
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        in_one_line(&page).contains(&in_one_line(sentence)),
        "docs/storage-migration.md does not say: {sentence}"
    );
    sentence
}
