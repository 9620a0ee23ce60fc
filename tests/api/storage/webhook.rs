//! A definition of another project, whose versions name a field differently, and whose webhook converts it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::bed::{Bed, Namespace};
use kit::objects::{Ask, condition};
use kit::wait::eventually;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::widgets::{run, stored_in};

const GROUP: &str = "webhook.example.dev";
const NAME: &str = "boats.webhook.example.dev";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.webhook.example.dev";
const COUNT: usize = 12;

/// What converts: `v1alpha1` has `spec.oars`, `v1` has `spec.rowers`, which are half as many.
struct Converter {
    address: String,
    bundle: String,
    is_down: Arc<AtomicBool>,
    /// How many reviews it has answered.
    reviews: Arc<AtomicUsize>,
}

impl Converter {
    fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("they fit");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let is_down = Arc::new(AtomicBool::new(false));
        let reviews = Arc::new(AtomicUsize::new(0));
        let shared = (Arc::clone(&is_down), Arc::clone(&reviews));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, (is_down, reviews)) = (Arc::clone(&config), shared.clone());
                thread::spawn(move || serve(stream, config, &is_down, &reviews));
            }
        });
        Self { address, bundle: STANDARD.encode(made.cert.pem()), is_down, reviews }
    }
}

/// Answers the requests of one connection until the client closes it.
fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    is_down: &AtomicBool,
    reviews: &AtomicUsize,
) -> Option<()> {
    let connection = ServerConnection::new(config).ok()?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let (status, answer) = if is_down.load(Ordering::Relaxed) {
            ("503 Service Unavailable", "at lunch".to_owned())
        } else {
            reviews.fetch_add(1, Ordering::Relaxed);
            ("200 OK", review(&body)?.to_string())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.get_mut().write_all((head + &answer).as_bytes()).ok()?;
        stream.get_mut().flush().ok()?;
    }
}

fn review(body: &[u8]) -> Option<Value> {
    let review: Value = serde_json::from_slice(body).ok()?;
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str()?;
    let objects: Vec<_> =
        request["objects"].as_array()?.iter().map(|object| converted(object.clone(), to)).collect();
    let response =
        json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
    Some(json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}))
}

fn converted(mut object: Value, to: &str) -> Value {
    if object["apiVersion"] == to {
        return object;
    }
    object["apiVersion"] = to.into();
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        if let Some(oars) = spec.remove("oars").and_then(|oars| oars.as_i64()) {
            spec.insert("rowers".to_owned(), (oars / 2).into());
        } else if let Some(rowers) = spec.remove("rowers").and_then(|rowers| rowers.as_i64()) {
            spec.insert("oars".to_owned(), (rowers * 2).into());
        }
    }
    object
}

fn define(bed: &Bed, converter: &Converter, stored: &str) {
    define_with(bed, converter, &[("v1alpha1", "oars"), ("v1", "rowers")], stored);
}

/// With these versions, each with the field that it has.
fn define_with(bed: &Bed, converter: &Converter, versions: &[(&str, &str)], stored: &str) {
    let version = |&(name, field): &(&str, &str)| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {field: {"type": "integer"}}}}}});
        json!({"name": name, "served": true, "storage": name == stored, "schema": schema})
    };
    let client =
        json!({"url": format!("https://{}/convert", converter.address), "caBundle": converter.bundle});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME}, "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Boat", "plural": "boats", "singular": "boat"},
            "conversion": {"strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}},
            "versions": versions.iter().map(version).collect::<Vec<_>>()}});
    bed.objects.must(Ask::apply(&definition, "", ""));
    bed.until_established(NAME);
}

fn path(namespace: &Namespace, version: &str, name: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/{}/boats/{name}", namespace.name)
}

fn in_etcd(bed: &Bed, version: &str) -> usize {
    let all = stored_in(bed, &format!("{GROUP}/boats"));
    all.iter().filter(|(name, stored)| stored == version && name != "probe").count()
}

/// Waits until objects are written in that version.
fn until_stored_as(namespace: &Namespace, version: &str) {
    let mut size = 0;
    eventually(|| {
        size += 2;
        let boat = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Boat",
            "metadata": {"name": "probe"}, "spec": {"oars": size}});
        namespace.bed.objects.one(Ask::apply(&boat, &namespace.name, "")).map_err(|no| no.message)?;
        let all = stored_in(namespace.bed, &format!("{GROUP}/boats"));
        let probe = ("probe".to_owned(), version.to_owned());
        if all.contains(&probe) { Ok(()) } else { Err(format!("{all:?}")) }
    });
}

/// Waits until the API server lists objects as `v1` from its cache, which is when it has nothing converted for that.
fn until_cached(namespace: &Namespace, converter: &Converter) {
    let path = format!("/apis/{GROUP}/v1/namespaces/{}/boats", namespace.name);
    eventually(|| {
        let before = converter.reviews.load(Ordering::Relaxed);
        namespace.bed.objects.one(Ask::get(&path)).map_err(|refusal| refusal.message)?;
        match converter.reviews.load(Ordering::Relaxed) - before {
            0 => Ok(()),
            more => Err(format!("{more} reviews for a list")),
        }
    });
}

pub fn what_a_webhook_of_others_converts_is_moved(bed: &Bed) {
    let converter = Converter::start();
    let namespace = bed.namespace();
    define(bed, &converter, "v1alpha1");
    until_stored_as(&namespace, "v1alpha1");
    for number in 0..COUNT {
        let boat = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Boat",
            "metadata": {"name": format!("boat-{number}")}, "spec": {"oars": 2 * number}});
        bed.objects.must(Ask::create(&boat, &namespace.name));
    }
    define(bed, &converter, "v1");
    until_stored_as(&namespace, "v1");
    assert_eq!(in_etcd(bed, "v1alpha1"), COUNT);

    until_cached(&namespace, &converter);

    // Without what converts, the API server would write what its cache has.
    converter.is_down.store(true, Ordering::Relaxed);
    let by_default = ["migrate", NAME, "--to", "v1", "--grace", "0s"];
    let ran = run(bed, &by_default);
    assert_eq!(ran.code, 1, "{ran:?}");
    let failed = format!("conversion webhook for {GROUP}/v1alpha1, Kind=Boat failed");
    let is_told = ran.errors.contains(&format!("of {NAME} to v1: ")) && ran.errors.contains(&failed);
    assert!(is_told, "{ran:?}");
    let stored = || bed.objects.at(DEFINITION)["status"]["storedVersions"].clone();
    assert_eq!((stored(), in_etcd(bed, "v1alpha1")), (json!(["v1alpha1", "v1"]), COUNT));

    let said = condition(&bed.objects.at(DEFINITION), "StorageMigrated");
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("Failed")), "{said}");

    converter.is_down.store(false, Ordering::Relaxed);
    let ran = run(bed, &by_default);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((stored(), in_etcd(bed, "v1alpha1"), in_etcd(bed, "v1")), (json!(["v1"]), 0, COUNT));
    let managed = &bed.objects.at(&path(&namespace, "v1", "boat-7"))["metadata"]["managedFields"];
    assert_eq!(
        managed[0]["apiVersion"],
        format!("{GROUP}/v1alpha1"),
        "a version that is served keeps its managers"
    );

    // What etcd holds needs nothing that converts any more.
    converter.is_down.store(true, Ordering::Relaxed);
    for number in 0..COUNT {
        let boat = bed.objects.at(&path(&namespace, "v1", &format!("boat-{number}")));
        assert_eq!(boat["spec"], json!({"rowers": number}));
    }
    converter.is_down.store(false, Ordering::Relaxed);
    let old = bed.objects.at(&path(&namespace, "v1alpha1", "boat-7"));
    assert_eq!(old["spec"], json!({"oars": 14}));

    v1alpha1_is_removed_and_comes_back(&namespace, &converter);
    bed.objects.discard(vec![DEFINITION.to_owned()]);
}

/// A server-side apply of one boat, by a manager of its own.
fn applied(namespace: &Namespace, version: &str, spec: &Value) -> Result<Value, String> {
    let boat = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Boat", "metadata": {"name": "boat-7"},
        "spec": spec});
    let Ask { method, path, body } = Ask::apply(&boat, &namespace.name, "");
    let path = path.replace("fieldManager=kit", "fieldManager=team");
    namespace.bed.objects.one(Ask { method, path, body }).map_err(|refusal| refusal.message)
}

/// Waits until the API server serves the old version, or does not.
fn until_served(namespace: &Namespace, is_served: bool) {
    let old = path(namespace, "v1alpha1", "boat-7");
    eventually(|| match namespace.bed.objects.one(Ask::get(&old)) {
        Ok(_) if is_served => Ok(()),
        Err(refusal) if refusal.code == 404 && !is_served => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

/// The definition loses the version for good, a manager that applied by it goes on, and both ways lead back.
fn v1alpha1_is_removed_and_comes_back(namespace: &Namespace, converter: &Converter) {
    let bed = namespace.bed;
    applied(namespace, "v1alpha1", &json!({"oars": 14})).expect("it is served");
    let cleaned = run(bed, &["migrate", NAME, "--grace", "0s", "--managed-fields", "others"]);
    assert_eq!(cleaned.code, 0, "{cleaned:?}");
    define_with(bed, converter, &[("v1", "rowers")], "v1");
    until_served(namespace, false);
    let after = eventually(|| applied(namespace, "v1", &json!({"rowers": 8})));
    assert_eq!(after["spec"], json!({"rowers": 8}), "the manager of old goes on");
    for number in 0..COUNT {
        let change =
            Ask::patch(path(namespace, "v1", &format!("boat-{number}")), json!({"spec": {"rowers": 1}}));
        bed.objects.must(change);
    }

    // Back again, and stored in it.
    define(bed, converter, "v1");
    until_served(namespace, true);
    let old = eventually(|| bed.objects.read(&path(namespace, "v1alpha1", "boat-3")));
    assert_eq!(old["spec"], json!({"oars": 2}));
    define(bed, converter, "v1alpha1");
    until_stored_as(namespace, "v1alpha1");
    let ran = run(bed, &["migrate", NAME, "--to", "v1alpha1", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let stored = || bed.objects.at(DEFINITION)["status"]["storedVersions"].clone();
    assert_eq!((stored(), in_etcd(bed, "v1"), in_etcd(bed, "v1alpha1")), (json!(["v1alpha1"]), 0, COUNT));
    define(bed, converter, "v1");
    until_stored_as(namespace, "v1");
    let ran = run(bed, &["migrate", NAME, "--to", "v1", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((stored(), in_etcd(bed, "v1alpha1"), in_etcd(bed, "v1")), (json!(["v1"]), 0, COUNT));
    let boat = bed.objects.at(&path(namespace, "v1", "boat-3"));
    assert_eq!(boat["spec"], json!({"rowers": 1}));
}
