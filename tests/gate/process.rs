//! The program itself: started, asked, ended.

use std::process::Command;

use crate::program::Served;

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
    let (status, body) = program.readiness().await;
    assert_eq!(status, 503);
    assert!(body.contains("[-]certificate not ready: no certificate yet"), "{body}");
    program.mount();
    assert!(program.ready().await.contains("[+]certificate ok"));
}
