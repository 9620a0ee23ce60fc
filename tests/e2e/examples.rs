//! The manifests below `examples`, as users apply them.

use gatehouse::kinds::KINDS;
use kit::call::Call;
use kit::wait::{PATIENCE, eventually, timeout};

use crate::cluster::{Bed, Namespace};
use crate::databasemigration::claim;
use crate::installation::idle;
use crate::release::Way;
use crate::root;

pub fn every_example_is_applied_and_worked(bed: &Bed, way: Way) {
    bed.deployed(way);
    let namespace = bed.namespace("temp");
    let folders = KINDS.iter().map(|kind| kind.names().kind.to_lowercase());
    let folders = folders.filter(|kind| kind != "databasemigration");
    let folders: Vec<_> = folders.map(|kind| root().join("examples").join(kind)).collect();
    for folder in &folders {
        bed.kubectl(&["apply", "--recursive", "-f", &folder.to_string_lossy()]).ok();
    }
    let ancestors = root().join("examples/ancestors");
    let words = ["convert", "--explicit", "-f", &ancestors.to_string_lossy()];
    let converted = Call::gatehouse(kit::gatehouse!(), &words).ok();
    bed.kubectl(&["apply"]).input(converted.clone()).ok();
    for (namespace, name) in [("default", "shop"), ("default", "hello-world"), ("temp", "tdset-hello-world")]
    {
        eventually(|| {
            let deployment = bed.get(&format!("deployment/{name}"), namespace)?;
            let tdset = bed.get(&format!("tdset/{name}"), namespace)?;
            let (has, scheduled) = (&deployment["spec"]["replicas"], &tdset["status"]["scheduledReplicas"]);
            let why = || format!("{namespace}/{name} has {has} replicas, and {scheduled} by its status");
            if has == scheduled { Ok(()) } else { Err(why()) }
        });
    }
    a_service_that_is_not_wanted_any_more_goes(&namespace);
    migrations_are_taken_and_a_file_is_migrated(bed, &namespace);

    let lifted = r#"--patch={"spec":{"deletionProtection":false}}"#;
    bed.kubectl(&["patch", "etcdcluster", "production", "--type=merge", lifted]).ok();
    for folder in &folders {
        bed.kubectl(&["delete", "--recursive", "-f", &folder.to_string_lossy()]).ok();
    }
    bed.kubectl(&["delete"]).input(converted).ok();
}

fn a_service_that_is_not_wanted_any_more_goes(namespace: &Namespace<'_>) {
    let mut object = idle("quiet");
    namespace.apply(&object);
    eventually(|| namespace.get("service/quiet"));
    object["spec"]["target"]["create"].as_object_mut().expect("an object").remove("servicePort");
    namespace.apply(&object);
    namespace.until_gone("service/quiet");
}

/// The servers of the examples are not there. What needs no server is applied, and taken back.
fn migrations_are_taken_and_a_file_is_migrated(bed: &Bed, namespace: &Namespace<'_>) {
    let folder = root().join("examples/databasemigration");
    bed.kubectl(&["apply", "--dry-run=server", "--recursive", "-f", &folder.to_string_lossy()]).ok();
    claim(namespace, "notes");
    namespace.kubectl(&["apply", "-f", &folder.join("sqlite.yaml").to_string_lossy()]).ok();
    let ready = ["wait", "--for=condition=Ready", "databasemigration/notes", &timeout(PATIENCE)];
    namespace.kubectl(&ready).ok();
    let notes = namespace.get("databasemigration/notes").expect("it is there");
    assert_eq!(notes["status"]["appliedCount"], 1, "{}", notes["status"]);
    namespace.kubectl(&["delete", "databasemigration", "notes", &timeout(PATIENCE)]).ok();
}
