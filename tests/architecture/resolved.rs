//! What an object asks for is read as it was written in one file of each kind: below it nothing gives an absent field
//! another meaning.

use std::collections::BTreeSet;

use gatehouse::kinds::KINDS;

use super::names::{self, Name};
use super::sources::{Source, below};

/// What an object as it is written is called where it is read, beside the name of its folder.
const OBJECTS: [&str; 3] = ["cluster.spec", "object.spec", "watched.spec"];

/// Parts of a spec that builders read as they were written, and why an absent field of them gets no meaning there. A part
/// that no builder reads any more has to leave the list.
const PARTS: [(&str, &str, &str); 6] = [
    ("DatabaseMigration", "KeyReference", "no field of it has a default"),
    ("EtcdCluster", "Options", "an absent option is left to etcd"),
    ("EtcdCluster", "Pod", "an absent setting is left to Kubernetes"),
    ("EtcdCluster", "Retention", "an absent limit is no limit"),
    ("TDSet", "Create", "an absent setting is left to Kubernetes"),
    ("TDSet", "Pod", "an absent setting is left to Kubernetes"),
];

/// Where a spec is read as it was written, outside of the file that resolves it.
fn raw(folder: &str, spec: &str, files: &[Source]) -> Vec<String> {
    let kind = folder.rsplit('/').next().unwrap_or_default();
    let resolver = format!("{folder}/spec.rs");
    // The gate validates what was written.
    let gate = format!("{folder}/api");
    let is_below = |file: &&Source| !file.path.ends_with(&resolver) && !file.path.starts_with(&gate);
    let code = files.iter().filter(|file| !file.is_unit_test()).filter(is_below);
    let found = code.flat_map(|file| {
        let path = file.path.display();
        let names = names::of(&file.text).into_iter();
        let types = names.filter(|name| name.parts().iter().any(|part| part == spec));
        let types = types.map(|name| name.to_string());
        let objects = OBJECTS.map(str::to_owned).into_iter().chain([format!("{kind}.spec")]);
        let fields = objects.filter(|object| is_read(&file.text, object));
        types.chain(fields).map(|what| format!("{path}: {what}")).collect::<Vec<_>>()
    });
    found.collect()
}

/// Whether code, and not a test at its end, reads a field of what is called that.
fn is_read(text: &str, object: &str) -> bool {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut places = code.match_indices(object);
    places.any(|(at, _)| !code[..at].ends_with(|before: char| before.is_alphanumeric()))
}

/// Structs of the wire that builders name, beside the object as a whole and its status, and parts that none names.
fn parts(folder: &str, kind: &str, files: &[Source], listed: &[&str]) -> Vec<String> {
    let wire = files.iter().filter(|file| file.path.starts_with(format!("{folder}/api")));
    let wire = wire.filter(|file| file.path.iter().any(|part| part == "v1" || part == "v1.rs"));
    let wire = wire.filter(|file| !file.path.ends_with("status.rs"));
    let declared = wire.flat_map(|file| file.text.split("pub struct ").skip(1));
    let structs: BTreeSet<_> = declared.filter_map(|rest| rest.split([' ', '(', '<', ';']).next()).collect();
    let spec = files.iter().find(|file| file.path.ends_with(format!("{folder}/spec.rs")));
    let given_on = spec.map(|spec| names::given_on(&spec.text)).unwrap_or_default();
    let is_part = |name: &&str| structs.contains(name) && *name != kind;
    let named = |name: &Name| {
        let is_of_spec =
            |part: &str| given_on.get(part).is_some_and(|path| path.iter().any(|part| part == "v1"));
        let mut steps =
            name.parts().windows(3).filter_map(|steps| match [&*steps[0], &*steps[1], &*steps[2]] {
                ["api", "v1", part] | [_, "spec", part] if steps[1] == "v1" || is_of_spec(part) => {
                    Some(part.to_owned())
                }
                _ => None,
            });
        steps.next().filter(|part| is_part(&part.as_str()))
    };
    let builds = |file: &&Source| {
        let below = file.path.strip_prefix(folder).unwrap_or(&file.path).to_string_lossy().into_owned();
        !file.is_unit_test() && ["observe", "plan", "resources"].iter().any(|part| below.starts_with(part))
    };
    let mut idle: BTreeSet<_> = listed.iter().copied().collect();
    let mut found = BTreeSet::new();
    for file in files.iter().filter(builds) {
        for part in names::of(&file.text).iter().filter_map(named) {
            if !listed.contains(&part.as_str()) {
                found.insert(format!("{}: {part}", file.path.display()));
            }
            idle.remove(part.as_str());
        }
    }
    found.into_iter().chain(idle.into_iter().map(|part| format!("{part}: no builder reads it"))).collect()
}

#[test]
fn a_spec_is_read_as_it_was_written_in_one_file_alone() {
    for kind in KINDS {
        let kind = kind.names().kind;
        let folder = format!("src/kinds/{}", kind.to_lowercase());
        let files = below(&[&folder]);
        assert!(files.iter().any(|file| file.path.ends_with(format!("{folder}/spec.rs"))), "{folder}");
        assert_eq!(raw(&folder, &format!("{kind}Spec"), &files), [""; 0]);
        let listed = PARTS.iter().filter(|(of, ..)| *of == kind).map(|(_, part, _)| *part);
        assert_eq!(parts(&folder, kind, &files, &listed.collect::<Vec<_>>()), [""; 0]);
    }
}

#[test]
fn a_raw_read_is_found() {
    let told = |path: &str, text: &str| raw("src/kinds/x", "XSpec", &[Source::planted(path, text)]);
    let read = "fn f(cluster: &X) -> i32 { cluster.spec.replicas.unwrap_or(1) }";
    assert_eq!(told("src/kinds/x/plan.rs", read), ["src/kinds/x/plan.rs: cluster.spec"]);
    assert_eq!(told("src/kinds/x/plan.rs", &read.replace("cluster", "x")), ["src/kinds/x/plan.rs: x.spec"]);
    assert_eq!(told("src/kinds/x/spec.rs", read), [""; 0]);
    assert_eq!(told("src/kinds/x/plan/tests.rs", read), [""; 0]);
    let named = "use crate::api::x::v1::XSpec; fn f(spec: &XSpec) {}";
    assert!(!told("src/kinds/x/plan.rs", named).is_empty());
}

#[test]
fn a_part_of_a_spec_that_a_builder_reads_is_found() {
    let wire = Source::planted(
        "src/kinds/x/api/v1.rs",
        "pub struct X { a: A } pub struct Part { a: Option<A> } pub struct Other(A); pub enum Word { A }",
    );
    let status = Source::planted("src/kinds/x/api/v1/status.rs", "pub struct XStatus { a: A }");
    let spec =
        Source::planted("src/kinds/x/spec.rs", "pub use crate::kinds::x::api::v1::Other; pub struct Own;");
    let files = |path: &str, text: &str| {
        let builder = Source::planted(path, text);
        [&wire, &status, &spec, &builder]
            .map(|file| Source::planted(&file.path.to_string_lossy(), &file.text))
    };
    let found =
        |path: &str, text: &str, listed: &[&str]| parts("src/kinds/x", "X", &files(path, text), listed);
    let path = "src/kinds/x/resources/a.rs";
    let text = "use crate::kinds::x::api::v1; use v1::{X, XStatus, Word}; fn f(part: &v1::Part) {}";
    assert_eq!(found(path, text, &[]), ["src/kinds/x/resources/a.rs: Part"]);
    assert_eq!(found(path, text, &["Part"]), [""; 0]);
    assert_eq!(found("src/kinds/x/metrics.rs", text, &["Part"]), ["Part: no builder reads it"]);
    let through = "use crate::kinds::x::spec::{Other, Own}; use k8s_openapi::api::core::v1::Part;";
    assert_eq!(found("src/kinds/x/plan.rs", through, &[]), ["src/kinds/x/plan.rs: Other"]);
}
