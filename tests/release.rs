//! A release as `tools/release.sh` packs and publishes it, pulled from a registry on this machine and verified by the
//! programs that users have: crane, helm, cosign.
//!
//! Guarantees: packing and publishing are those of `make release` and `make publish`; the registry is crane's own.
//! Assumes: `tools/build.sh release` and gpg.
//! Never: compiles gatehouse. Packing reads nothing of a program, and takes a small one of the tools in its place.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kit::call::Call;
use kit::deploy::{deployment, objects};
use kit::ports::free_port;
use kit::root;
use kit::wait::eventually;
use serde_json::Value;
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn tool(name: &str) -> PathBuf {
    let mut print = Command::new(root().join("tools/build.sh"));
    print.args(["--print", name]);
    Path::new(Call::new(print).ok().trim()).join(name)
}

/// A tool with these words.
fn call(name: &str, words: &[&str]) -> Call {
    let mut command = Command::new(tool(name));
    command.args(words).env("COSIGN_PASSWORD", "");
    Call::new(command)
}

/// A registry that ends with its test.
struct Registry {
    process: Child,
    /// Host, port and folder.
    name: String,
}

impl Registry {
    fn start(folder: &Path) -> Self {
        let address = format!("127.0.0.1:{}", free_port().unwrap());
        fs::create_dir(folder).unwrap();
        let mut serve = Command::new(tool("crane"));
        serve.args(["registry", "serve", "--address", &address, "--disk"]).arg(folder);
        let process = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually(|| std::net::TcpStream::connect(&address));
        Self { process, name: format!("{address}/team") }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It has ended already where it did not start.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What `make release` packs: a program for each architecture.
fn parts() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for architecture in ["amd64", "arm64"] {
        let rootfs = folder.path().join("parts").join(architecture).join("rootfs");
        fs::create_dir_all(rootfs.join("etc")).unwrap();
        fs::copy(tool("gojq"), rootfs.join("gatehouse")).unwrap();
        fs::write(rootfs.join("etc/architecture"), architecture).unwrap();
    }
    let crates = r#"{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}"#;
    for architecture in ["amd64", "arm64"] {
        fs::write(folder.path().join(format!("parts/{architecture}.cdx.json")), crates).unwrap();
    }
    folder
}

fn release(folder: &Path, registry: &str, words: &[&str]) -> Command {
    let mut command = Command::new(root().join("tools/release.sh"));
    command.args(words).arg(VERSION).env("FOLDER", folder).env("REGISTRY", registry);
    command.env("DOWNLOADS", "https://downloads.example.org/v1").env_remove("CHART_KEY");
    command
}

fn pack(folder: &Path, registry: &str) {
    Call::new(release(folder, registry, &["pack"])).ok();
}

fn sums(folder: &Path) -> String {
    fs::read_to_string(folder.join("files/SHA256SUMS")).unwrap()
}

#[test]
fn the_same_parts_give_the_same_files_in_every_folder_and_at_every_time() {
    let (one, other) = (parts(), parts());
    for path in ["parts/amd64/rootfs/gatehouse", "parts/arm64/rootfs/etc"] {
        let touched = Command::new("touch").args(["-d", "@1"]).arg(other.path().join(path)).status().unwrap();
        assert!(touched.success());
    }
    for folder in [&one, &other] {
        pack(folder.path(), "registry.example.org/team");
    }
    assert_eq!(sums(one.path()), sums(other.path()));
    let provenance =
        |folder: &TempDir| fs::read_to_string(folder.path().join("files/provenance.json")).unwrap();
    assert_eq!(provenance(&one), provenance(&other));
    for file in ["image.tar", "linux-amd64.tar.gz", "linux-arm64.tar.gz", "linux-amd64.cdx.json"] {
        assert!(sums(one.path()).contains(&format!("  gatehouse-{VERSION}-{file}\n")), "{file}");
    }
    let krew = objects(&fs::read_to_string(one.path().join("files/krew.yaml")).unwrap()).remove(0);
    for platform in krew["spec"]["platforms"].as_array().unwrap() {
        let (uri, sum) = (platform["uri"].as_str().unwrap(), platform["sha256"].as_str().unwrap());
        let line = format!("{sum}  {}\n", uri.rsplit('/').next().unwrap());
        assert!(sums(one.path()).contains(&line), "{line}");
    }
}

#[test]
fn another_version_than_that_of_the_program_is_refused() {
    let mut make = Command::new(root().join("tools/release.sh"));
    make.args(["make", "9.9.9"]).env("REGISTRY", "registry.example.org/team");
    let why = Call::new(make).fails();
    assert!(why.contains(&format!("the version 9.9.9 is not {VERSION}, which Cargo.toml has")), "{why}");
}

/// A key of cosign in this folder, by the name of its files.
fn key(folder: &Path, name: &str) -> (String, String) {
    let prefix = folder.join(name).to_str().unwrap().to_owned();
    call("cosign", &["generate-key-pair", "--output-key-prefix", &prefix]).ok();
    (format!("{prefix}.key"), format!("{prefix}.pub"))
}

/// gpg with a home of its own.
fn gpg(home: &Path, words: &[&str]) {
    let mut command = Command::new("gpg");
    command.args(["--batch", "--quiet"]).args(words).env("GNUPGHOME", home);
    Call::new(command).ok();
}

/// A key of gpg, and the file that helm reads the public part from.
fn chart_key(home: &Path) -> PathBuf {
    fs::create_dir(home).unwrap();
    let ring = home.join("public.gpg");
    gpg(home, &["--passphrase", "", "--quick-generate-key", "releases@example.org", "rsa2048", "sign"]);
    gpg(home, &["--output", ring.to_str().unwrap(), "--export", "releases@example.org"]);
    ring
}

#[test]
fn a_release_is_pulled_by_digest_and_verified() {
    let folder = parts();
    let registry = Registry::start(&folder.path().join("registry"));
    let (secret, public) = key(folder.path(), "ours");
    let ring = chart_key(&folder.path().join("gpg"));
    pack(folder.path(), &registry.name);
    let mut publish = release(folder.path(), &registry.name, &["publish"]);
    publish.env("KEY", &secret).env("COSIGN_PASSWORD", "");
    publish.env("CHART_KEY", "releases@example.org").env("GNUPGHOME", folder.path().join("gpg"));
    let published = Call::new(publish).ok();

    let chart = chart_of(&folder, &registry, &ring);
    let image = image_of(&chart);
    assert!(image.starts_with(&format!("{}/gatehouse@sha256:", registry.name)), "{image}");
    let install = objects(&fs::read_to_string(folder.path().join("files/install.yaml")).unwrap());
    assert_eq!(deployment(&install)["spec"]["template"]["spec"]["containers"][0]["image"], image);
    holds_a_program_for_each_architecture(&folder, &image);

    let chart =
        published.lines().find_map(|line| line.strip_prefix("pushed: ").filter(|at| at.contains("charts")));
    let (_, other) = key(folder.path(), "theirs");
    for signed in [image.as_str(), chart.unwrap()] {
        verify(&["verify"], &public, signed).ok();
        verify(&["verify"], &other, signed).fails();
    }
    verify(&["verify-attestation", "--type", "slsaprovenance1"], &public, &image).ok();
    let digest = call("crane", &["digest", "--insecure", "--platform", "linux/arm64", &image]).ok();
    let arm64 = format!("{}/gatehouse@{}", registry.name, digest.trim());
    verify(&["verify-attestation", "--type", "cyclonedx"], &public, &arm64).ok();
    sums_are_signed(folder.path(), &public);
}

/// The chart, pulled and verified by helm.
fn chart_of(folder: &TempDir, registry: &Registry, ring: &Path) -> PathBuf {
    let reference = format!("oci://{}/charts/gatehouse", registry.name);
    let (ring, into) = (ring.to_str().unwrap(), folder.path().join("pulled"));
    fs::create_dir(&into).unwrap();
    let place =
        ["--version", VERSION, "--plain-http", "--verify", "--keyring", ring, "-d", into.to_str().unwrap()];
    call("helm", &[&["pull", &reference][..], &place].concat()).ok();
    into.join(format!("gatehouse-{VERSION}.tgz"))
}

/// The image that the chart installs with its values as they are.
fn image_of(chart: &Path) -> String {
    let words = ["template", "gatehouse", chart.to_str().unwrap(), "--kube-version", "1.34.0"];
    let rendered = objects(&call("helm", &words).ok());
    deployment(&rendered)["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
}

fn holds_a_program_for_each_architecture(folder: &TempDir, image: &str) {
    call("crane", &["validate", "--insecure", "--remote", image]).ok();
    for architecture in ["amd64", "arm64"] {
        let (platform, file) = (format!("linux/{architecture}"), folder.path().join(architecture));
        call("crane", &["export", "--insecure", "--platform", &platform, image, file.to_str().unwrap()]).ok();
        let content = |path: &str| {
            let tar = Command::new("tar").args(["-xOf", file.to_str().unwrap(), path]).output().unwrap();
            tar.stdout
        };
        assert_eq!(content("etc/architecture"), architecture.as_bytes());
        assert!(content("gatehouse") == fs::read(tool("gojq")).unwrap(), "{architecture}: another program");
        let config = call("crane", &["config", "--insecure", "--platform", &platform, image]).ok();
        let config: Value = serde_json::from_str(&config).unwrap();
        assert_eq!(config["architecture"], architecture);
        assert_eq!(config["config"]["Labels"]["org.opencontainers.image.version"], VERSION);
    }
}

fn verify(words: &[&str], public: &str, signed: &str) -> Call {
    let options = ["--key", public, "--insecure-ignore-tlog=true", "--allow-http-registry", signed];
    call("cosign", &[words, &options].concat())
}

fn sums_are_signed(folder: &Path, public: &str) {
    let sums = folder.join("files/SHA256SUMS");
    let bundle = folder.join("files/SHA256SUMS.sigstore.json");
    let words = ["verify-blob", "--key", public, "--insecure-ignore-tlog=true", "--bundle"];
    let verified =
        || call("cosign", &[&words[..], &[bundle.to_str().unwrap(), sums.to_str().unwrap()]].concat());
    verified().ok();
    fs::write(&sums, "changed\n").unwrap();
    verified().fails();
}
