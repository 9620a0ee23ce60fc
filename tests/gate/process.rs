//! The program itself: started, asked, ended.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Authority, install_provider, within};

struct Running {
    child: Child,
    serving: Value,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
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
        let leaf = authority.leaf();
        let (chain, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        std::fs::write(&chain, leaf.chain_pem).unwrap();
        std::fs::write(&key, leaf.key_pem).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_gatehouse"))
            .args([
                "serve",
                "--webhook-only",
                "--listen",
                "127.0.0.1:0",
                "--health-listen",
                "127.0.0.1:0",
            ])
            .args([
                "--tls-cert".as_ref(),
                chain.as_os_str(),
                "--tls-key".as_ref(),
                key.as_os_str(),
            ])
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
        Self {
            child,
            serving,
            lines,
        }
    }

    /// Its exit code, once it has ended. The clients of the test live on meanwhile.
    async fn end(mut self) -> Option<i32> {
        let ended = tokio::task::spawn_blocking(move || self.child.wait().unwrap().code());
        within(ended).await.unwrap()
    }

    fn terminate(&self) {
        let sent = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }
}

#[tokio::test]
async fn the_program_says_where_it_serves_answers_and_ends_well() {
    install_provider();
    let authority = Authority::new();
    let running = Running::start(&authority, &["--drain-delay", "0s"]);
    let url = format!(
        "https://{}/validate",
        running.serving["address"].as_str().unwrap()
    );
    let client = authority.client();
    let answer = client
        .post(url)
        .header("content-type", "application/json")
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let ready = format!("http://{}/readyz", running.serving["health"].as_str().unwrap());
    let ready = reqwest::get(ready).await.unwrap();
    assert_eq!(ready.status(), 200);
    let body = ready.text().await.unwrap();
    for name in ["certificate", "gate", "health"] {
        assert!(body.contains(&format!("[+]{name} ok")), "{body}");
    }
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
    let draining = running
        .lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("\"draining\""));
    assert!(draining.is_some());
    running.terminate();
    assert_eq!(running.end().await, Some(1));
}

#[test]
fn a_wrong_command_line_has_an_exit_code_of_its_own() {
    let ran = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_gatehouse"))
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = ran(&["serve", "--webhook-only"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--tls-cert"), "{said}");
    assert_eq!(ran(&["serve", "--drain-delay", "soon"]).0, Some(2));
    let absent = [
        "serve",
        "--webhook-only",
        "--tls-cert",
        "/absent.crt",
        "--tls-key",
        "/absent.key",
    ];
    let (code, said) = ran(&absent);
    assert_eq!(code, Some(1));
    assert!(said.contains("error: failed to read /absent.crt: "), "{said}");
}
