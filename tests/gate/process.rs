//! The program itself: started, asked, ended.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio::net::TcpStream;

use crate::program::{self, Served};
use crate::support::{Authority, Connection, install_provider, within};

#[tokio::test]
async fn the_program_says_where_it_serves_answers_and_ends_well() {
    let program = Served::start(&["--drain-delay", "0s"]);
    let body = program.ready().await;
    for name in ["certificate", "gate", "health"] {
        assert!(body.contains(&format!("[+]{name} ok")), "{body}");
    }
    let url = program.url("/validate");
    let client = program.authority.client();
    let answer = client.post(url).header("content-type", "application/json").body("{}").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    drop(answer);
    drop(client);
    program.gate.terminate();
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_with_a_failure() {
    let program = Served::start(&["--drain-delay", "1h"]);
    program.gate.terminate();
    program.gate.logs("draining");
    program.gate.terminate();
    assert_eq!(program.end().await, Some(1));
}

#[test]
fn a_wrong_command_line_has_an_exit_code_of_its_own() {
    let ran = |arguments: &[&str]| {
        let output = Command::new(kit::gatehouse!()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = ran(&["serve", "--webhook-only"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--tls-cert"), "{said}");
    assert_eq!(ran(&["serve", "--drain-delay", "soon"]).0, Some(2));
}

#[tokio::test]
async fn without_its_certificate_it_waits_and_says_so() {
    let program = Served::without_certificate();
    // Who calls already waits too: no write fails since a replica has just started.
    let socket = TcpStream::connect(program.gate.address).await.unwrap();
    let mut early = std::pin::pin!(program.authority.secure(socket, &["http/1.1"]));
    assert!((&mut early).now_or_never().is_none());
    let (status, body) = program.readiness().await;
    assert_eq!(status, 503);
    assert!(body.contains("[-]certificate not ready: no certificate yet"), "{body}");
    program.mount();
    let answer = Connection(early.await).ask("/validate", &crate::hostile::sound()).await;
    assert_eq!(answer.status, 200);
    assert!(program.ready().await.contains("[+]certificate ok"));
}

/// A process that ends with what holds it.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Where it serves, as soon as its log says so.
fn serving(process: &mut Killed) -> SocketAddr {
    let log = BufReader::new(process.0.stderr.take().unwrap()).lines();
    let lines = log.map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    let mut addresses = lines.filter(|line| line["message"] == "serving");
    addresses.next().unwrap()["address"].as_str().unwrap().parse().unwrap()
}

/// The status of the first review that is answered: none where nothing serves yet.
async fn first(authority: &Authority, address: SocketAddr, review: &str) -> Option<u16> {
    let socket = TcpStream::connect(address).await.ok()?;
    socket.set_nodelay(true).unwrap();
    let mut connection = Connection(authority.try_secure(socket, &["http/1.1"]).await.ok()?);
    Some(connection.ask("/validate", review).await.status)
}

/// With a certificate that is there. The clients of a replica that starts wait for no more than that.
#[tokio::test]
async fn how_long_a_start_takes_is_told() {
    install_provider();
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    program::mount(folder.path(), &authority);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let review = crate::hostile::sound();
    let mut times = Vec::new();
    for _ in 0..15 {
        let (chain, key) = (path("tls.crt"), path("tls.key"));
        let words = ["serve", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"];
        let words = [&words[..], &["--webhook-only", "--tls-cert", &chain, "--tls-key", &key]].concat();
        let mut command = kit::program::Program::gatehouse(&program::program(), &words);
        command.env("GATEHOUSE_LOG", "info").stdin(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        let mut process = Killed(command.spawn().unwrap());
        let gate = serving(&mut process);
        let status = within(async {
            loop {
                if let Some(status) = first(&authority, gate, &review).await {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        assert_eq!(status.await, 200);
        times.push(begun.elapsed());
    }
    times.sort();
    let ms = |index: usize| times[index].as_secs_f64() * 1000.0;
    println!(
        "figure: a start takes {:.1} ms until a review is answered, {:.1} to {:.1}",
        ms(7),
        ms(0),
        ms(14)
    );
}
