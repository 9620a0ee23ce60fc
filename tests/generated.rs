//! What is committed below `deploy/` is what the binary generates, and fits where it has to.

use std::fs;
use std::path::Path;

use gatehouse::cli::manifests;
use gatehouse::kinds::KINDS;

/// What all annotations of an object may weigh together, in bytes (apimachinery, `TotalAnnotationSizeLimitB`).
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

#[test]
fn what_is_committed_is_what_is_generated() {
    for file in manifests::generated().unwrap() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(&file.path);
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == file.content, "{} is not current: run `make gen`", path.display());
    }
}

#[test]
fn generating_twice_gives_the_same() {
    assert_eq!(manifests::generated().unwrap(), manifests::generated().unwrap());
}

#[test]
fn a_definition_fits_in_the_annotation_that_client_side_apply_writes() {
    for kind in KINDS {
        let size = serde_json::to_string(&kind.definition()).unwrap().len();
        let names = kind.names();
        assert!(size < ANNOTATIONS_LIMIT, "{}: {size} bytes of {ANNOTATIONS_LIMIT}", names.kind);
    }
}
