//! One version, that of the binary.

use kit::deploy::{Rendered, chart, deployment, everything, helm, kind, name, objects};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_chart_has_the_version_of_the_binary() {
    let chart = objects(&std::fs::read_to_string(chart().join("Chart.yaml")).unwrap()).remove(0);
    assert_eq!(chart["version"], VERSION);
    assert_eq!(chart["appVersion"], VERSION);
}

#[test]
fn every_object_and_every_pod_is_labelled_with_it() {
    for Rendered { source, objects, .. } in everything() {
        // The definitions alone are what `gatehouse crds` prints, and `more` is an object of the user.
        for object in objects.iter().filter(|object| source != "crds" && name(object) != "more") {
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/version"], VERSION, "{source}: {}", name(object));
            if kind(object) == "Deployment" {
                let labels = &object["spec"]["template"]["metadata"]["labels"];
                assert_eq!(labels["app.kubernetes.io/version"], VERSION, "{source}: pods");
            }
        }
    }
}

#[test]
fn the_image_is_that_of_the_version_unless_a_tag_or_digest_says_otherwise() {
    let image = |values: &[&str]| {
        let objects = helm(values);
        deployment(&objects)["spec"]["template"]["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(image(&[]), format!("gatehouse.dev/gatehouse:{VERSION}"));
    assert_eq!(image(&["image.tag=edge"]), "gatehouse.dev/gatehouse:edge");
    let digest = format!("sha256:{}", "0".repeat(64));
    let values = ["image.tag=edge".to_owned(), format!("image.digest={digest}")];
    assert_eq!(image(&[&values[0], &values[1]]), format!("gatehouse.dev/gatehouse@{digest}"));
}
