//! What an object asks for is read as it was written in one file of each kind: below it nothing gives an absent field
//! another meaning.

use gatehouse::kinds::KINDS;

use super::names;
use super::sources::{Source, below};

/// What an object as it is written is called where it is read, beside the name of its folder.
const OBJECTS: [&str; 3] = ["cluster.spec", "object.spec", "watched.spec"];

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

#[test]
fn a_spec_is_read_as_it_was_written_in_one_file_alone() {
    for kind in KINDS {
        let kind = kind.names().kind;
        let folder = format!("src/kinds/{}", kind.to_lowercase());
        let files = below(&[&folder]);
        assert!(files.iter().any(|file| file.path.ends_with(format!("{folder}/spec.rs"))), "{folder}");
        assert_eq!(raw(&folder, &format!("{kind}Spec"), &files), [""; 0]);
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
