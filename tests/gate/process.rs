//! The program itself: started, asked, ended.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Authority, install_provider, within};

struct Running {
    child: Child,
    folder: TempDir,
    serving: Value,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

/// Puts a certificate where a Secret would be mounted: the key first, so that the pair is never half there.
fn mount(folder: &Path, authority: &Authority) {
    let leaf = authority.leaf();
    std::fs::write(folder.join("tls.key"), leaf.key_pem).unwrap();
    std::fs::write(folder.join("tls.crt"), leaf.chain_pem).unwrap();
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(authority: &Authority, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        mount(folder.path(), authority);
        Self::in_folder(folder, more)
    }

    fn in_folder(folder: TempDir, more: &[&str]) -> Self {
        let (chain, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_gatehouse"))
            .args(["serve", "--webhook-only", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"])
            .args(["--tls-cert".as_ref(), chain.as_os_str(), "--tls-key".as_ref(), key.as_os_str()])
            .args(more)
            .env_remove("GATEHOUSE_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let serving = lines
            .by_ref()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .find(|line| line["message"] == "serving")
            .unwrap();
        Self { child, folder, serving, lines }
    }

    async fn readiness(&self) -> (u16, String) {
        let url = format!("http://{}/readyz", self.serving["health"].as_str().unwrap());
        let response = reqwest::get(url).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// What `/readyz` says once it is ready.
    async fn ready(&self) -> String {
        within(async {
            loop {
                let (status, body) = self.readiness().await;
                if status == 200 {
                    return body;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
    }

    /// Its exit code, once it has ended. The clients of the test live on meanwhile.
    async fn end(mut self) -> Option<i32> {
        let ended = tokio::task::spawn_blocking(move || self.child.wait().unwrap().code());
        within(ended).await.unwrap()
    }

    fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

#[tokio::test]
async fn the_program_says_where_it_serves_answers_and_ends_well() {
    install_provider();
    let authority = Authority::new();
    let running = Running::start(&authority, &["--drain-delay", "0s"]);
    let body = running.ready().await;
    for name in ["certificate", "gate", "health"] {
        assert!(body.contains(&format!("[+]{name} ok")), "{body}");
    }
    let url = format!("https://{}/validate", running.serving["address"].as_str().unwrap());
    let client = authority.client();
    let answer = client.post(url).header("content-type", "application/json").body("{}").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    drop(answer);
    drop(client);
    running.terminate();
    assert_eq!(running.end().await, Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_with_a_failure() {
    install_provider();
    let authority = Authority::new();
    let mut running = Running::start(&authority, &["--drain-delay", "1h"]);
    running.terminate();
    let draining = running.lines.by_ref().map(Result::unwrap).find(|line| line.contains("\"draining\""));
    assert!(draining.is_some());
    running.terminate();
    assert_eq!(running.end().await, Some(1));
}

#[test]
fn a_wrong_command_line_has_an_exit_code_of_its_own() {
    let ran = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_gatehouse")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = ran(&["serve", "--webhook-only"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--tls-cert"), "{said}");
    assert_eq!(ran(&["serve", "--drain-delay", "soon"]).0, Some(2));
}

#[tokio::test]
async fn without_its_certificate_it_waits_and_says_so() {
    install_provider();
    let authority = Authority::new();
    let running = Running::in_folder(tempfile::tempdir().unwrap(), &[]);
    let (status, body) = running.readiness().await;
    assert_eq!(status, 503);
    assert!(body.contains("[-]certificate not ready: no certificate yet"), "{body}");
    mount(running.folder.path(), &authority);
    assert!(running.ready().await.contains("[+]certificate ok"));
}
