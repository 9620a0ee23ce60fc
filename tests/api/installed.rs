//! What gatehouse writes when it installs itself, and how a control plane gets rid of it.

use std::sync::LazyLock;

use gatehouse::kinds::KINDS;
use kit::bed::Bed;
use kit::deploy::deploy;
use kit::objects::{Ask, of};
use kit::wait::eventually;
use serde_json::json;

pub const SECRET: &str = "/api/v1/namespaces/gatehouse-system/secrets/gatehouse-ca";
pub const ETCDCLUSTERS: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/etcdclusters.gatehouse.dev";
pub const TDSETS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tdsets.gatehouse.dev";
pub const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gatehouse";
pub const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gatehouse";
pub const CONFIGURATIONS: [&str; 2] = [MUTATING, VALIDATING];
/// Where replicas agree on who leads.
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/gatehouse-system/leases/gatehouse";
/// What the guard of each replica looks at.
pub static GUARDED: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let definitions = KINDS.iter().map(|kind| &*definition(kind.names().plural).leak());
    definitions.chain(CONFIGURATIONS).collect()
});
/// All that is installed.
pub static WRITTEN: LazyLock<Vec<&str>> = LazyLock::new(|| [&[SECRET][..], &GUARDED[..]].concat());

/// Where the definition of a kind is.
pub fn definition(plural: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.gatehouse.dev")
}

/// Waits until the API server asks the gate about objects in this namespace.
#[track_caller]
pub fn until_guarded(bed: &Bed, namespace: &str) {
    eventually(|| {
        let unsupported = json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster",
            "metadata": {"name": "asked"}, "spec": {"version": "3.4.1"}});
        let path = of("v1", namespace, "etcdclusters") + "?dryRun=All";
        match bed.objects.one(Ask::post(path, unsupported)) {
            Err(refusal) if refusal.message.contains("spec.version") => Ok(()),
            Err(refusal) => Err(refusal.message),
            Ok(_) => Err("the gate is not asked".to_owned()),
        }
    });
}

/// Has the API server serve our kinds without a gate, stored in that version, as a test in this namespace sees.
pub fn apply_definitions(bed: &Bed, namespace: &str, stored: &str) {
    for kind in KINDS {
        let mut definition = kind.definition();
        for version in &mut definition.spec.versions {
            version.storage = version.name == stored;
            version.deprecation_warning =
                version.deprecated.unwrap_or_default().then(|| format!("stored as {stored}"));
        }
        let mut object = json!(definition);
        object["apiVersion"] = "apiextensions.k8s.io/v1".into();
        object["kind"] = "CustomResourceDefinition".into();
        bed.objects.must(Ask::apply(&object, "", ""));
        bed.until_established(definition.metadata.name.as_deref().expect("a name"));
        // A definition is served as it is written a moment after that.
        let place = of("v1alpha1", namespace, kind.names().plural);
        eventually(|| match bed.objects.warned(Ask::get(&*place)) {
            (Ok(_), warnings) if warnings == [format!("stored as {stored}")] => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

/// Takes away what gates of earlier tests, which have ended, have left: their objects, what they installed, and who
/// led.
pub fn clear(bed: &Bed) {
    for path in CONFIGURATIONS.into_iter().chain([SECRET, LEASE]) {
        bed.objects.if_there(Ask::delete(path));
    }
    for kind in KINDS {
        let plural = kind.names().plural;
        let all = format!("/apis/gatehouse.dev/v1/{plural}");
        eventually(|| remove_objects(bed, &all));
        let definition = format!("{plural}.gatehouse.dev");
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}");
        bed.objects.if_there(Ask::delete(path));
        bed.objects.until_gone(&format!("customresourcedefinition/{definition}"), "");
        // The API server goes on to serve it for a moment, and what is applied next could be taken for served by that.
        eventually(|| match bed.objects.if_there(Ask::get(&*all)) {
            None => Ok(()),
            Some(_) => Err(format!("{all} is still served")),
        });
    }
    bed.grant();
}

/// Applies the definitions as they are shipped, and waits until the API server serves them.
pub fn apply_shipped_definitions(bed: &Bed) {
    let definitions = deploy().join("crds");
    bed.kubectl(&["apply", "--server-side", "-k", &definitions.to_string_lossy()]).ok();
    for kind in KINDS {
        let all = format!("/apis/gatehouse.dev/v1/{}", kind.names().plural);
        eventually(|| bed.objects.one(Ask::get(&*all)).map(drop).map_err(|refusal| refusal.message));
    }
}

/// Deletes all objects there, without what would keep them; whether none is left.
fn remove_objects(bed: &Bed, all: &str) -> Result<(), String> {
    let Some(list) = bed.objects.if_there(Ask::get(all)) else { return Ok(()) };
    let items = list["items"].as_array().cloned().unwrap_or_default();
    for object in &items {
        let (plural, metadata) = (all.rsplit('/').next().unwrap_or_default(), &object["metadata"]);
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let path = format!("{}/{}", of("v1", text("namespace"), plural), text("name"));
        // A webhook is asked for a moment after its configuration has gone.
        let unkept = bed.objects.one(Ask::patch(
            &*path,
            json!({"metadata": {"finalizers": null}, "spec": {"deletionProtection": null}}),
        ));
        match unkept.and_then(|_| bed.objects.one(Ask::delete(&*path))) {
            Err(refusal) if refusal.code != 404 => return Err(refusal.message),
            _ => {}
        }
    }
    if items.is_empty() { Ok(()) } else { Err(format!("{} objects at {all}", items.len())) }
}
