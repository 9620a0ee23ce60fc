//! What docs/installing.md has users write.

use std::fs;

use kit::deploy::{deploy, deployment, objects, outcome};
use kit::examples::in_page;
use serde_json::{Value, json};

/// The kustomization of the page, of what is here.
fn built() -> Vec<Value> {
    let [mut kustomization] =
        in_page("installing.md", "Install with kubectl").try_into().expect("one kustomization");
    // kustomize takes no absolute paths.
    let folder = tempfile::tempdir_in(deploy().parent().expect("the repository")).expect("a folder");
    for list in ["resources", "components"] {
        for path in kustomization[list].as_array_mut().expect("a list") {
            *path = json!(path.as_str().expect("a path").replace("path/to/", "../"));
        }
    }
    fs::write(folder.path().join("kustomization.yaml"), kustomization.to_string()).expect("a file");
    let built = outcome("kustomize", &["build", folder.path().to_str().expect("UTF-8")], "");
    objects(&built.unwrap_or_else(|error| panic!("{error}")))
}

/// Guards, Jobs and pods that wait run the image that `GATEHOUSE_IMAGE` names.
#[test]
fn another_image_is_that_of_jobs_and_guards_too() {
    let built = built();
    let container = &deployment(&built)["spec"]["template"]["spec"]["containers"][0];
    let image = container["image"].as_str().expect("an image");
    assert!(image.starts_with("registry.example.org/gatehouse:"), "{image}");
    let env = container["env"].as_array().expect("a list").iter();
    let of_jobs: Vec<_> = env.filter(|variable| variable["name"] == "GATEHOUSE_IMAGE").collect();
    assert_eq!(of_jobs, [&json!({"name": "GATEHOUSE_IMAGE", "value": image})]);
}
