//! The program itself, started with a certificate of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::program::{Gate, Program};
use tempfile::TempDir;

use crate::support::{Authority, install_provider, within};

/// A process that serves. Dropped, it is killed.
pub struct Served {
    pub authority: Authority,
    /// The process, which has its log and its certificate in the folder.
    pub gate: Gate,
    folder: TempDir,
}

impl Served {
    pub fn start(more: &[&str]) -> Self {
        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        mount(folder.path(), &authority);
        Self::of(authority, folder, more)
    }

    /// Another program that becomes it.
    pub fn of_program(program: &Path, more: &[&str]) -> Self {
        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        mount(folder.path(), &authority);
        Self::run(program, authority, folder, more)
    }

    pub fn without_certificate() -> Self {
        Self::of(Authority::new(), tempfile::tempdir().unwrap(), &[])
    }

    fn of(authority: Authority, folder: TempDir, more: &[&str]) -> Self {
        Self::run(&program(), authority, folder, more)
    }

    fn run(program: &Path, authority: Authority, folder: TempDir, more: &[&str]) -> Self {
        install_provider();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (chain, key, log) = (path("tls.crt"), path("tls.key"), folder.path().join("log"));
        let words = [&["--webhook-only", "--tls-cert", &chain, "--tls-key", &key], more].concat();
        let gate = Gate::start(program, &words, None, &log).unwrap();
        Self { authority, gate, folder }
    }

    /// Puts the certificate where it is looked for.
    pub fn mount(&self) {
        mount(self.folder.path(), &self.authority);
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.gate.address)
    }

    pub async fn readiness(&self) -> (u16, String) {
        let response = reqwest::get(format!("http://{}/readyz", self.gate.health)).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// The page of metrics.
    pub async fn metrics(&self) -> String {
        let response = reqwest::get(format!("http://{}/metrics", self.gate.health)).await.unwrap();
        response.text().await.unwrap()
    }

    /// What `/readyz` says once it is ready.
    pub async fn ready(&self) -> String {
        within(async {
            loop {
                let (status, body) = self.readiness().await;
                if status == 200 {
                    return body;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }

    /// Its exit code, once it has ended. The clients of the test live on meanwhile.
    pub async fn end(self) -> Option<i32> {
        within(tokio::task::spawn_blocking(|| Program::code(self.gate.into_program()))).await.unwrap()
    }
}

/// Another program than that of this build, whose figures are asked for.
fn given() -> Option<PathBuf> {
    std::env::var_os("GATEHOUSE_PROGRAM").map(PathBuf::from)
}

/// Whether it is another one: optimized, as what ships is.
pub fn is_given() -> bool {
    given().is_some()
}

/// The program that is asked.
pub fn program() -> PathBuf {
    given().unwrap_or_else(|| kit::gatehouse!().to_owned())
}

/// Puts a certificate where a Secret would be mounted: the key first, so that the pair is never half there.
pub fn mount(folder: &Path, authority: &Authority) {
    let leaf = authority.leaf();
    std::fs::write(folder.join("tls.key"), leaf.key_pem).unwrap();
    std::fs::write(folder.join("tls.crt"), leaf.chain_pem).unwrap();
}
