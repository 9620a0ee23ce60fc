//! The program against envelopes that no API server sends: whoever reaches its port may.
//!
//! Each gets an answer with a clear message, with the uid of its request where it showed one; none is allowed; the
//! process answers a sane request afterwards, and its memory stays bounded.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts its own tasks"
)]

#[path = "gate/support.rs"]
#[expect(dead_code, reason = "these tests share the clients of the gate's tests, not all of its scripts")]
mod support;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::future::join_all;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use support::{Authority, Connection, install_provider, within};
use tempfile::TempDir;
use tokio::net::TcpStream;

const UID: &str = "5f0c2a57-9f6f-4e4a-8b62-0c7f6a2d9f3e";
const ADMISSION_LIMIT: usize = 8 << 20;
const CONVERSION_LIMIT: usize = 32 << 20;

/// The program with a certificate of its own. Dropped, it is killed.
struct Program {
    child: Child,
    authority: Authority,
    client: reqwest::Client,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    async fn start() -> Self {
        install_provider();
        let authority = Authority::new();
        let leaf = authority.leaf();
        let folder = tempfile::tempdir().unwrap();
        let (chain, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        std::fs::write(&key, leaf.key_pem).unwrap();
        std::fs::write(&chain, leaf.chain_pem).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_gatehouse"))
            .args(["serve", "--webhook-only", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"])
            .args(["--tls-cert".as_ref(), chain.as_os_str(), "--tls-key".as_ref(), key.as_os_str()])
            .args(["--log-format", "json"])
            .env_remove("GATEHOUSE_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let serving: Value = lines
            .by_ref()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .find(|line| line["message"] == "serving")
            .unwrap();
        // Its log goes nowhere, but it has to go.
        std::thread::spawn(move || lines.for_each(drop));
        let address = |name: &str| serving[name].as_str().unwrap().parse().unwrap();
        let (address, health): (SocketAddr, SocketAddr) = (address("address"), address("health"));
        let client = authority.client();
        within(async {
            let url = format!("http://{health}/readyz");
            while reqwest::get(&url).await.unwrap().status() != 200 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        Self { child, authority, client, address, _folder: folder }
    }

    /// Posts a body as JSON; the review that answers.
    async fn ask(&self, path: &str, body: impl Into<Vec<u8>>) -> Value {
        self.ask_with(path, &[("content-type", "application/json")], body).await
    }

    async fn ask_with(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Value {
        let mut request = self.client.post(format!("https://{}{path}", self.address)).body(body.into());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = within(request.send()).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        serde_json::from_str(&within(response.text()).await.unwrap()).unwrap()
    }

    /// It still tells right from wrong.
    async fn is_sane(&self) {
        let right = self.ask("/validate", admission(&cluster(3)).to_string()).await;
        assert_eq!(right["response"]["allowed"], true, "{right}");
        let wrong = self.ask("/validate", admission(&cluster(9)).to_string()).await;
        assert_eq!(wrong["response"]["allowed"], false, "{wrong}");
        let converted = self.ask("/convert", conversion(&[cluster(3)], "v1alpha1").to_string()).await;
        assert_eq!(converted["response"]["result"]["status"], "Success", "{converted}");
    }

    /// A line of its status in bytes: `VmRSS` is what it has now, `VmHWM` the most that it had.
    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

fn cluster(replicas: u32) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1", "kind": "EtcdCluster",
        "metadata": {"name": "a", "namespace": "b"}, "spec": {"replicas": replicas, "version": "3.6.16"}})
}

fn old_cluster(name: &str) -> Value {
    json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "EtcdCluster",
        "metadata": {"name": name, "namespace": "b"}, "spec": {"size": 3}})
}

fn admission(object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or("EtcdCluster");
    let kind = json!({"group": "gatehouse.dev", "version": "v1", "kind": kind});
    let resource = json!({"group": "gatehouse.dev", "version": "v1", "resource": "etcdclusters"});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": UID,
        "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": "a", "namespace": "b", "operation": "CREATE", "userInfo": {"username": "eve"}, "object": object}})
}

fn conversion(objects: &[Value], to: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": UID, "desiredAPIVersion": format!("gatehouse.dev/{to}"), "objects": objects}})
}

/// A refusal: its code, its message and its uid.
#[track_caller]
fn refusal(path: &str, answer: &Value) -> (u64, String, String) {
    let response = &answer["response"];
    let status = if path.starts_with("/convert") {
        assert_eq!(response["result"]["status"], "Failure", "{answer:.500}");
        assert_eq!(response["convertedObjects"], json!([]));
        &response["result"]
    } else {
        assert_eq!(response["allowed"], false, "{answer:.500}");
        assert!(response.get("patch").is_none());
        &response["status"]
    };
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (status["code"].as_u64().expect("a code"), text(&status["message"]), text(&response["uid"]))
}

/// A review that was changed: what was done, the text, what the refusal says, and whether its uid could be seen.
type Spoilt<'a> = (&'a str, String, &'a str, bool);

/// What is no review of that `version` and `kind` any more.
fn spoilt<'a>(review: &Value, version: &'a str, kind: &'a str) -> Vec<Spoilt<'a>> {
    let text = review.to_string();
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let uid = format!("\"uid\":\"{UID}\"");
    let with = |field: &str, value: Option<Value>| {
        let mut review = review.clone();
        let fields = review.as_object_mut().unwrap();
        match value {
            Some(value) => fields.insert(field.to_owned(), value),
            None => fields.shift_remove(field),
        };
        review.to_string()
    };
    let two_requests = change("\"request\":", "\"request\":{},\"request\":");
    vec![
        ("nothing", String::new(), "the body is empty", false),
        ("a number", "5".to_owned(), "unable to read", false),
        ("null", "null".to_owned(), "unable to read", false),
        ("a text", "\"x\"".to_owned(), "unable to read", false),
        ("a list", format!("[{text}]"), "unable to read", true),
        ("an empty object", "{}".to_owned(), kind, false),
        ("half", text[..text.len() / 2].to_owned(), "unable to read", true),
        ("more behind", format!("{text}{{}}"), "unable to read", true),
        ("yaml", "apiVersion: v1\nkind: List\n".to_owned(), "unable to read", false),
        ("form", "uid=5&a=b".to_owned(), "unable to read", false),
        ("an older version", change(version, &version.replace("/v1", "/v1beta1")), "v1beta1", true),
        ("another kind", change(kind, "PodReview"), "\"PodReview\"", true),
        ("a long kind", change(kind, &"K".repeat(1 << 20)), "KKKK", true),
        ("no kind", with("kind", None), kind, true),
        ("no version", with("apiVersion", None), version, true),
        ("no request", with("request", None), "has no request", false),
        ("a request of null", with("request", Some(Value::Null)), "has no request", false),
        ("a request of a list", with("request", Some(json!([]))), "unable to read the request", false),
        ("a request of nothing", with("request", Some(json!({}))), "has no uid", false),
        ("a uid of nothing", change(&uid, "\"uid\":\"\""), "has no uid", false),
        ("a uid of a number", change(&uid, "\"uid\":5"), "has no uid", false),
        ("two uids", change(&uid, &format!("{uid},\"uid\":\"other\"")), "duplicate field \"uid\"", true),
        ("two requests", two_requests, "duplicate field", true),
    ]
}

#[tokio::test]
async fn an_envelope_that_is_none_is_refused_with_the_reason() {
    let program = Program::start().await;
    for (path, review, version, kind) in [
        ("/mutate", admission(&cluster(3)), "admission.k8s.io/v1", "AdmissionReview"),
        ("/validate", admission(&cluster(3)), "admission.k8s.io/v1", "AdmissionReview"),
        ("/convert", conversion(&[cluster(3)], "v1alpha1"), "apiextensions.k8s.io/v1", "ConversionReview"),
    ] {
        for (what, body, says, seen) in spoilt(&review, version, kind) {
            let (code, message, uid) = refusal(path, &program.ask(path, body).await);
            assert_eq!(code, 400, "{path}: {what}: {message}");
            assert!(message.contains(says), "{path}: {what}: {message}");
            assert!(message.len() < 400, "{path}: {what} is told at length: {} bytes", message.len());
            assert_eq!(uid, if seen { UID } else { "" }, "{path}: {what}");
        }
    }
    program.is_sane().await;
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_with_the_field() {
    let program = Program::start().await;
    let change = |pointer: &str, value: Value| {
        let mut review = admission(&cluster(3));
        *review.pointer_mut(pointer).unwrap() = value;
        review.to_string()
    };
    let update = change("/request/operation", "UPDATE".into());
    for path in ["/mutate", "/validate"] {
        for (body, says) in [
            (change("/request/operation", "EXPLODE".into()), "unknown operation \"EXPLODE\""),
            (change("/request/operation", Value::Null), "request.operation"),
            (change("/request/kind", Value::Null), "kind"),
            (change("/request/kind/kind", "Pod".into()), "unknown kind \"Pod\""),
            (change("/request/kind/group", "apps".into()), "unknown kind"),
            (change("/request/kind/version", "v2".into()), "v2"),
            (change("/request/object", Value::Null), "has no object"),
            (change("/request/object", "x".into()), "request.object is no object"),
            (change("/request/object", json!([1, 2])), "request.object is no object"),
            (update.clone(), "has no oldObject"),
        ] {
            let (code, message, uid) = refusal(path, &program.ask(path, body).await);
            assert_eq!((code, uid.as_str()), (400, UID), "{message}");
            assert!(message.contains(says), "{says}: {message}");
        }
    }
    let change = |pointer: &str, value: Value| {
        let mut review = conversion(&[cluster(3), old_cluster("c")], "v1alpha1");
        *review.pointer_mut(pointer).unwrap() = value;
        review.to_string()
    };
    for (body, says) in [
        (change("/request/desiredAPIVersion", Value::Null), "desiredAPIVersion"),
        (change("/request/desiredAPIVersion", "gatehouse.dev/v9".into()), "gatehouse.dev/v9"),
        (change("/request/objects", json!({})), "unable to read objects"),
        (change("/request/objects", "x".into()), "unable to read objects"),
        (change("/request/objects/1", Value::Null), "objects[1]"),
        (change("/request/objects/1", json!([])), "objects[1]"),
        (change("/request/objects/1", json!({})), "objects[1]"),
        (change("/request/objects/1/kind", "Pod".into()), "objects[1]: Pod b/c: unknown kind \"Pod\""),
        (
            change("/request/objects/1/apiVersion", "v2".into()),
            "objects[1]: EtcdCluster b/c: unknown version \"v2\"",
        ),
    ] {
        let (code, message, uid) = refusal("/convert", &program.ask("/convert", body).await);
        assert_eq!((code, uid.as_str()), (400, UID), "{message}");
        assert!(message.contains(says), "{says}: {message}");
    }
    program.is_sane().await;
}

#[tokio::test]
async fn a_review_cut_off_anywhere_is_refused_with_its_uid_once_that_was_there() {
    let program = Program::start().await;
    for (path, text) in [
        ("/mutate", admission(&cluster(3)).to_string()),
        ("/validate", admission(&cluster(3)).to_string()),
        ("/convert", conversion(&[cluster(3), old_cluster("c")], "v1").to_string()),
    ] {
        let shown = text.find(UID).unwrap() + UID.len();
        for length in (0..text.len()).step_by(7) {
            let (code, message, uid) = refusal(path, &program.ask(path, &text.as_bytes()[..length]).await);
            assert_eq!(code, 400, "{path} of {length} bytes: {message}");
            if length >= shown {
                assert_eq!(uid, UID, "{path} of {length} bytes");
            }
        }
    }
    program.is_sane().await;
}

#[tokio::test]
async fn what_is_no_plain_json_is_refused() {
    let program = Program::start().await;
    let plain = ("content-type", "application/json");
    for (path, text) in [
        ("/mutate", admission(&cluster(3)).to_string()),
        ("/validate", admission(&cluster(3)).to_string()),
        ("/convert", conversion(&[cluster(3)], "v1alpha1").to_string()),
    ] {
        for (headers, says) in [
            (vec![plain, ("content-encoding", "gzip")], "unsupported Content-Encoding \"gzip\""),
            (vec![("content-type", "application/yaml")], "unsupported Content-Type \"application/yaml\""),
            (vec![("content-type", "text/plain")], "unsupported Content-Type \"text/plain\""),
            (vec![], "unsupported Content-Type"),
        ] {
            let answer = program.ask_with(path, &headers, text.clone()).await;
            let (code, message, uid) = refusal(path, &answer);
            assert_eq!((code, uid.as_str()), (415, UID), "{message}");
            assert!(message.contains(says), "{message}");
        }
        // The beginning of a gzip stream, and a byte that no UTF-8 has, inside of a text.
        let (code, message, _) = refusal(path, &program.ask(path, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).await);
        assert_eq!(code, 400);
        assert!(message.contains("not UTF-8"), "{message}");
        let mut bytes = text.into_bytes();
        let at = bytes.windows(6).position(|window| window == b"\"name\"").unwrap();
        bytes[at + 2] = 0xff;
        let (code, message, uid) = refusal(path, &program.ask(path, bytes).await);
        assert_eq!((code, uid.as_str()), (400, UID), "{message}");
        assert!(message.contains("not UTF-8"), "{message}");
        // UTF-16 and a byte order mark are no JSON either.
        let marked = [b"\xef\xbb\xbf", admission(&cluster(3)).to_string().as_bytes()].concat();
        refusal(path, &program.ask(path, marked).await);
    }
    program.is_sane().await;
}

/// `{"a":{"a":…` or `[[…`, `depth` levels of it.
fn nested(open: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + "1" + &close.repeat(depth)
}

#[tokio::test]
async fn depth_overflows_nothing() {
    let program = Program::start().await;
    for depth in [100, 127, 200, 10_000, 500_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = nested(open, close, depth);
            let object = format!(
                r#"{{"apiVersion":"gatehouse.dev/v1","kind":"EtcdCluster","metadata":{{"name":"a"}},"spec":{deep}}}"#
            );
            let mut frame = admission(&json!("HERE")).to_string();
            frame = frame.replace("\"HERE\"", &object);
            for path in ["/mutate", "/validate"] {
                let answer = program.ask(path, frame.clone()).await;
                if depth >= 200 {
                    let (code, message, uid) = refusal(path, &answer);
                    assert_eq!((code, uid.as_str()), (400, UID), "{message}");
                    assert!(message.contains("recursion limit"), "{message}");
                } else if open == "[" {
                    assert_eq!(answer["response"]["allowed"], false, "a spec that is a list");
                }
            }
            // A conversion never fails on content: what is too deep for any schema stays as it came.
            let frame = conversion(&[json!("HERE")], "v1alpha1").to_string().replace("\"HERE\"", &object);
            let path = format!("https://{}/convert", program.address);
            let request = program.client.post(path).header("content-type", "application/json").body(frame);
            let text = within(within(request.send()).await.unwrap().text()).await.unwrap();
            assert!(text.contains("\"status\":\"Success\""), "{text:.300}");
            assert!(text.contains("gatehouse.dev/v1alpha1"), "{text:.300}");
            if depth >= 200 {
                assert!(text.contains(&deep), "{text:.300}");
            }
            // The same without an end, and in place of the envelope.
            for path in ["/mutate", "/validate", "/convert"] {
                refusal(path, &program.ask(path, deep.clone()).await);
                refusal(path, &program.ask(path, open.repeat(depth)).await);
            }
        }
    }
    program.is_sane().await;
}

#[tokio::test]
async fn keys_that_come_twice_are_refused() {
    let program = Program::start().await;
    let review = admission(&cluster(3)).to_string();
    for (from, to, says) in [
        ("\"spec\":{", "\"spec\":{\"replicas\":9},\"spec\":{", "duplicate field \"spec\""),
        ("\"replicas\":3", "\"replicas\":9,\"replicas\":3", "duplicate field \"replicas\""),
        ("\"operation\":", "\"operation\":\"DELETE\",\"operation\":", "duplicate field \"operation\""),
        ("\"replicas\":3", "\"replic\\u0061s\":9,\"replicas\":3", "duplicate field \"replicas\""),
    ] {
        assert!(review.contains(from));
        for path in ["/mutate", "/validate"] {
            let (code, message, uid) = refusal(path, &program.ask(path, review.replacen(from, to, 1)).await);
            assert_eq!((code, uid.as_str()), (400, UID), "{message}");
            assert!(message.contains(says), "{message}");
        }
    }
    program.is_sane().await;
}

#[tokio::test]
async fn numbers_beyond_all_bounds_are_never_allowed() {
    let program = Program::start().await;
    let review = admission(&cluster(3)).to_string();
    let digits = "9".repeat(100_000);
    let numbers = [
        "1e400",
        "-1e400",
        "99999999999999999999",
        "18446744073709551616",
        "3.0000001",
        "1e2",
        "NaN",
        "Infinity",
        "0x3",
        "03",
        "-",
        "+3",
        "3.",
        ".3",
        &digits,
        "9007199254740993",
        "2147483648",
    ];
    for number in numbers {
        for path in ["/mutate", "/validate"] {
            let body = review.replacen("\"replicas\":3", &format!("\"replicas\":{number}"), 1);
            let answer = program.ask(path, body).await;
            let (code, message, uid) = refusal(path, &answer);
            assert!([400, 422].contains(&code), "{number:.40}: {code}");
            assert_eq!(uid, UID, "{number:.40}");
            let told = message.contains("spec.replicas") || message.contains("line 1 column");
            assert!(told && message.len() < 1000, "{number:.40}: {message:.1000}");
        }
    }
    program.is_sane().await;
}

/// An object with that loss annotation.
fn remembering(field: &str, text: &str) -> Value {
    let mut object = old_cluster("bomb");
    object["metadata"]["annotations"] = json!({format!("conversion.gatehouse.dev/{field}"): text});
    object
}

/// Fields and what annotations forge of them.
fn forgeries() -> Vec<(String, String)> {
    let items = (0..40).fold("{}".to_owned(), |inner, _| {
        format!(r#"{{"items":[{{"shown":"a","was":{{}},"rows":{{"/spec/windows":{inner}}}}}]}}"#)
    });
    let wide = (0..50_000).map(|index| format!(r#""k{index}":{{}},"#)).collect::<Vec<_>>().concat();
    vec![
        ("spec.tls".to_owned(), nested("[", "]", 100_000)),
        ("spec.tls".to_owned(), nested("[", "]", 100)),
        ("spec.podTemplate".to_owned(), nested("{\"a\":", "}", 100_000)),
        ("spec.podTemplate".to_owned(), nested("{\"a\":", "}", 120)),
        ("spec.podTemplate".to_owned(), "{\"a\":".repeat(1000)),
        ("spec.windows".to_owned(), items.clone()),
        ("spec.backup.schedule".to_owned(), items),
        ("spec".to_owned(), "[1,2,3]".to_owned()),
        ("spec".to_owned(), "5".to_owned()),
        ("spec.replicas".to_owned(), "99".to_owned()),
        ("spec.options".to_owned(), format!("{{{wide}\"extra\":5}}")),
        ("metadata.name".to_owned(), "\"other\"".to_owned()),
        ("apiVersion".to_owned(), "\"v9\"".to_owned()),
        ("kind".to_owned(), "\"Pod\"".to_owned()),
        ("dropped".to_owned(), "true".to_owned()),
        (String::new(), "{}".to_owned()),
        ("...".to_owned(), "{}".to_owned()),
        ("a-b".to_owned(), "{}".to_owned()),
        ("a-b".to_owned(), r#"{"":5}"#.to_owned()),
        ("a-b".to_owned(), r#"{"/kind":"Pod","/metadata/name":"other"}"#.to_owned()),
        ("a-b".to_owned(), format!(r#"{{"{}":5}}"#, "/a".repeat(100_000))),
        ("a-b".to_owned(), format!(r#"{{"/spec{}":5}}"#, "/".repeat(100_000))),
        ("a.".repeat(100_000), "5".to_owned()),
        ("spec.tls".to_owned(), "\u{0}\u{ffff}".to_owned()),
    ]
}

#[tokio::test]
async fn a_forged_memory_of_a_conversion_harms_nobody() {
    let program = Program::start().await;
    for (field, text) in forgeries() {
        let body = conversion(&[remembering(&field, &text)], "v1").to_string();
        let answer = program.ask("/convert", body).await;
        assert_eq!(answer["response"]["result"]["status"], "Success", "{field:.100}: {text:.100}");
        let object = &answer["response"]["convertedObjects"][0];
        assert_eq!(object["apiVersion"], "gatehouse.dev/v1", "{field:.100}: {text:.100}");
        assert_eq!(object["kind"], "EtcdCluster", "{field:.100}: {text:.100}");
        assert_eq!(object["metadata"]["name"], "bomb", "{field:.100}: {text:.100}");
        assert_eq!(object["spec"]["replicas"], 3, "what the old version shows wins");
        for path in ["/mutate", "/validate"] {
            let mut review = admission(&remembering(&field, &text));
            review["request"]["kind"]["version"] = "v1alpha1".into();
            review["request"]["requestKind"]["version"] = "v1alpha1".into();
            let answer = program.ask(path, review.to_string()).await;
            assert_eq!(answer["response"]["uid"], UID, "{field:.100}: {text:.100}");
        }
    }
    program.is_sane().await;
}

/// A sound object of about `size` bytes.
fn large_cluster(size: usize) -> Value {
    let mut object = cluster(3);
    let variables = (0..50).map(|index| json!({"name": format!("V{index}"), "value": "x".repeat(size / 50)}));
    object["spec"]["podTemplate"] = json!({"env": variables.collect::<Vec<_>>()});
    object
}

/// An update of three MiB: twice that in one review.
fn large_update() -> String {
    let mut review = admission(&large_cluster(3 << 20));
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["oldObject"] = review["request"]["object"].clone();
    let text = review.to_string();
    assert!((6 << 20..ADMISSION_LIMIT).contains(&text.len()));
    text
}

#[tokio::test]
async fn the_largest_legal_review_is_judged_and_one_over_the_limit_is_refused() {
    let program = Program::start().await;
    let update = large_update();
    for path in ["/mutate", "/validate"] {
        let answer = program.ask(path, update.clone()).await;
        assert_eq!(answer["response"]["allowed"], true, "{answer:.500}");
        let wrong = update.replacen("\"replicas\":3", "\"replicas\":9", 1);
        let (code, message, _) = refusal(path, &program.ask(path, wrong).await);
        assert_eq!(code, 422);
        assert!(message.contains("spec.replicas"), "{message:.300}");
        assert!(message.len() < 1000, "an answer holds no object");
    }
    for (path, review, limit) in [
        ("/mutate", admission(&cluster(3)), ADMISSION_LIMIT),
        ("/validate", admission(&cluster(3)), ADMISSION_LIMIT),
        ("/convert", conversion(&[cluster(3)], "v1alpha1"), CONVERSION_LIMIT),
    ] {
        let padded = |length: usize| {
            let text = review.to_string();
            let room = length - text.len();
            text + &" ".repeat(room)
        };
        let whole = program.ask(path, padded(limit)).await;
        let fine = whole["response"]["allowed"] == true || whole["response"]["result"]["status"] == "Success";
        assert!(fine, "{path}: {whole:.300}");
        let (code, message, uid) = refusal(path, &program.ask(path, padded(limit + 1)).await);
        assert_eq!((code, uid.as_str()), (413, UID), "{message}");
        assert!(message.contains(&format!("at most {limit} bytes")), "{message}");
    }
    program.is_sane().await;
}

#[tokio::test]
async fn a_body_that_trickles_is_answered_when_its_time_is_over() {
    let program = Program::start().await;
    let socket = TcpStream::connect(program.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = program.authority.connector(&["http/1.1"]);
    let stream = within(connector.connect(name, socket)).await.unwrap();
    let (reader, writer) = tokio::io::split(stream);
    let body = admission(&large_cluster(100_000)).to_string();
    let (head, tail) = body.split_at(body.find("\"name\"").unwrap());
    let first = format!(
        "POST /validate?timeout=1s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{head}",
        body.len()
    );
    let tail = tail.to_owned();
    let trickle = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        let mut writer = writer;
        writer.write_all(first.as_bytes()).await?;
        let mut beat = tokio::time::interval(Duration::from_millis(5));
        for byte in tail.bytes() {
            beat.tick().await;
            writer.write_all(&[byte]).await?;
            writer.flush().await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let answer = within(read_answer(reader)).await;
    trickle.abort();
    let (code, message, uid) = refusal("/validate", &answer);
    assert_eq!((code, uid.as_str()), (504, UID), "{message}");
    assert!(message.contains("reading the review took longer"), "{message}");
    program.is_sane().await;
}

/// One answer, read by hand.
async fn read_answer(mut reader: impl tokio::io::AsyncRead + Unpin) -> Value {
    use tokio::io::AsyncReadExt as _;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(reader.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn ten_thousand_objects_of_both_versions_come_back_in_their_order() {
    let program = Program::start().await;
    let objects: Vec<_> = (0..10_000)
        .map(|index| {
            let mut object = if index % 3 == 0 { cluster(index % 8) } else { old_cluster("") };
            object["metadata"]["name"] = format!("n{index}").into();
            object
        })
        .collect();
    for to in ["v1", "v1alpha1"] {
        let answer = program.ask("/convert", conversion(&objects, to).to_string()).await;
        assert_eq!(answer["response"]["uid"], UID);
        assert_eq!(answer["response"]["result"]["status"], "Success");
        let converted = answer["response"]["convertedObjects"].as_array().unwrap();
        assert_eq!(converted.len(), objects.len());
        for (index, (before, after)) in objects.iter().zip(converted).enumerate() {
            assert_eq!(after["apiVersion"], format!("gatehouse.dev/{to}"), "{index}");
            assert_eq!(after["metadata"]["name"], before["metadata"]["name"], "{index}");
            assert_eq!(after["metadata"]["namespace"], "b", "{index}");
            let size = |object: &Value| {
                object["spec"].get("size").or_else(|| object["spec"].get("replicas")).cloned()
            };
            assert_eq!(size(after), size(before), "{index}");
        }
    }
    program.is_sane().await;
}

#[tokio::test]
async fn nothing_but_reviews_is_served_there() {
    let program = Program::start().await;
    let url = |path: &str| format!("https://{}{path}", program.address);
    for path in ["/", "/metrics", "/validate/a/b", "/../etc/passwd", "/%2e%2e/etc", "/mutate%00"] {
        let answer = within(program.client.post(url(path)).body("{}").send()).await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
    let mut smuggler = Connection({
        let socket = TcpStream::connect(program.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        within(program.authority.connector(&["http/1.1"]).connect(name, socket)).await.unwrap()
    });
    let both = "POST /validate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\
                transfer-encoding: chunked\r\n\r\n0\r\n\r\nPOST /validate HTTP/1.1\r\nhost: a\r\n\r\n";
    smuggler.send(both).await;
    let answer = smuggler.answer().await;
    assert!(answer.status == 400 || answer.body["response"]["allowed"] == false, "{answer:?}");
    program.is_sane().await;
}

#[tokio::test]
async fn a_burst_of_large_reviews_leaves_memory_bounded() {
    let program = Program::start().await;
    program.is_sane().await;
    let before = program.memory("VmRSS");
    let update = large_update();
    let burst = (0..25).map(|_| {
        let request = program.client.post(format!("https://{}/validate?timeout=30s", program.address));
        let request = request.header("content-type", "application/json").body(update.clone());
        async { request.send().await.unwrap().text().await.unwrap() }
    });
    for text in within(join_all(burst)).await {
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["response"]["allowed"], true, "{answer:.300}");
    }
    program.is_sane().await;
    let (most, after) = (program.memory("VmHWM"), program.memory("VmRSS"));
    let mib = |bytes: u64| bytes >> 20;
    println!("memory: {} MiB before, {} at most, {} after", mib(before), mib(most), mib(after));
    assert!(mib(before) < 100, "{} MiB at rest", mib(before));
    assert!(mib(most) < 600, "{} MiB at most", mib(most));
}
