//! Where the programs and images are that `make e2e` builds. Never builds anything: what is missing is named, with
//! what to run.

use std::path::PathBuf;
use std::process::Command;

use crate::root;

/// The folder of a family of programs.
pub fn folder(family: &str) -> PathBuf {
    let output = Command::new(root().join("tools/build.sh")).args(["--print", family]).output();
    let output = output.expect("tools/build.sh runs");
    let folder = String::from_utf8(output.stdout).expect("a path");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(folder.trim())
}

/// The image that `make image` packed.
pub fn image() -> PathBuf {
    let image = root().join("target/image/gatehouse.tar");
    assert!(image.is_file(), "{} is missing: run `make image`", image.display());
    image
}
