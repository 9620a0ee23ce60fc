//! What becomes of reviews while the log is not read.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Stdio};

use kit::program::Program;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::mount;
use crate::support::{Authority, install_provider, within};

/// A gate whose log is a pipe. Dropped, it is killed.
struct Piped {
    authority: Authority,
    process: Child,
    log: BufReader<ChildStderr>,
    address: SocketAddr,
    health: SocketAddr,
    _folder: TempDir,
}

impl Drop for Piped {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// The next line with that message.
fn logged(log: &mut BufReader<ChildStderr>, message: &str) -> Value {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "it has not logged {message:?}");
        match serde_json::from_str::<Value>(&line) {
            Ok(line) if line["message"] == message => return line,
            _ => {}
        }
    }
}

impl Piped {
    /// Starts one that logs as much as it can.
    fn start() -> Self {
        install_provider();
        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        mount(folder.path(), &authority);
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (chain, key) = (path("tls.crt"), path("tls.key"));
        let ports = ["serve", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"];
        let words =
            [&ports[..], &["--webhook-only", "--tls-cert", &chain, "--tls-key", &key, "--drain-delay", "0s"]];
        let mut command = Program::gatehouse(kit::gatehouse!(), &words.concat());
        command.env("GATEHOUSE_LOG", "trace").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let serving = logged(&mut log, "serving");
        let address = |field: &str| serving[field].as_str().unwrap().parse().unwrap();
        Self {
            authority,
            process,
            log,
            address: address("address"),
            health: address("health"),
            _folder: folder,
        }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let response = within(reqwest::get(format!("http://{}{path}", self.health))).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Lines that were dropped so far.
    async fn dropped(&self) -> u64 {
        let (_, page) = self.get("/metrics").await;
        let count = page.lines().find_map(|line| line.strip_prefix("gatehouse_log_lines_dropped_total "));
        count.unwrap_or_else(|| panic!("not counted in\n{page}")).parse().unwrap()
    }
}

#[tokio::test]
async fn an_unread_log_holds_up_no_review_and_says_later_what_is_missing() {
    let mut gate = Piped::start();
    while gate.get("/readyz").await.0 != 200 {}
    let url = format!("https://{}/validate", gate.address);
    // From here on nothing reads the pipe: it is full first, and then what waits behind it.
    while gate.dropped().await == 0 {
        for _ in 0..20 {
            // A connection of its own: the handshake is what most lines are about.
            let ask = gate
                .authority
                .client()
                .post(&url)
                .header("content-type", "application/json")
                .body("{}")
                .send();
            assert_eq!(within(ask).await.unwrap().status(), 200);
        }
    }
    let told = logged(&mut gate.log, "log lines were dropped, since standard error did not take them");
    assert!(told["lines"].as_u64() > Some(0), "{told}");
}
