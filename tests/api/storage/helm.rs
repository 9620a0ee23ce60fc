//! Releases of Helm, which keeps the manifests of the last one and reads them again to compare.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use kit::bed::Namespace;
use kit::call::Call;
use kit::deploy::tool;

use super::removed::documented;
use super::service::manifest;

/// Releases of one object each, of which one is upgraded to `v1` while `v1alpha1` is served.
pub struct Releases<'a> {
    namespace: &'a Namespace<'a>,
}

impl<'a> Releases<'a> {
    /// Both are installed with manifests of `v1alpha1`.
    pub fn installed(namespace: &'a Namespace) -> Self {
        let releases = Self { namespace };
        for name in ["late", "in-time"] {
            releases.run("install", name, &manifest(name)).unwrap_or_else(|error| panic!("{error}"));
        }
        releases
            .run("upgrade", "in-time", &releases.converted("in-time"))
            .unwrap_or_else(|error| panic!("{error}"));
        releases
    }

    /// The version is gone.
    pub fn are_upgraded_where_they_were_in_time(&self) {
        let before = self.namespace.get("tdsets", "in-time");
        let more = self.converted("in-time").replace("metadata:", "metadata:\n  labels:\n    colour: red");
        self.run("upgrade", "in-time", &more).unwrap_or_else(|error| panic!("{error}"));
        let after = self.namespace.get("tdsets", "in-time");
        assert_eq!(
            (&after["spec"], after["metadata"]["labels"]["colour"].as_str()),
            (&before["spec"], Some("red"))
        );

        let told = self
            .run("upgrade", "late", &self.converted("late"))
            .expect_err("its last manifests are not read");
        for sentence in [
            "unable to build kubernetes objects from current release manifest",
            "no matches for kind \"TDSet\" in version \"gatehouse.dev/v1alpha1\"",
        ] {
            assert!(told.contains(documented(sentence)), "{told}");
        }
    }

    /// It is served again.
    pub fn are_upgraded_where_it_is_served_again(&self) {
        self.run("upgrade", "late", &self.converted("late")).unwrap_or_else(|error| panic!("{error}"));
    }

    fn folder(&self) -> PathBuf {
        self.namespace.bed.cluster.folder().join(format!("chart-{}", self.namespace.name))
    }

    /// The manifest by `v1`, as `gatehouse convert` writes it.
    fn converted(&self, name: &str) -> String {
        let file = self.folder().join(format!("{name}.yaml"));
        fs::write(&file, manifest(name)).expect("a file");
        Call::gatehouse(&self.namespace.bed.program, &["convert", "-f", &file.to_string_lossy()]).ok()
    }

    /// Installs or upgrades a release of a chart with that manifest.
    fn run(&self, verb: &str, name: &str, manifest: &str) -> Result<String, String> {
        let chart = self.folder();
        fs::create_dir_all(chart.join("templates")).expect("a folder");
        fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 0.1.0\n").expect("a file");
        fs::write(chart.join("templates/tdset.yaml"), manifest).expect("a file");
        let mut helm = Command::new(tool("helm").join("helm"));
        helm.args([verb, name]).arg(&chart).args(["--namespace", &self.namespace.name]);
        helm.arg("--kubeconfig").arg(self.namespace.bed.cluster.kubeconfig());
        // What versions there are is asked each time: helm keeps the answer for hours.
        let cache = tempfile::tempdir().expect("a folder");
        helm.env("KUBECACHEDIR", cache.path());
        Call::new(helm).run()
    }
}
