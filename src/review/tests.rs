mod admission;
mod conversion;

use jiff::Timestamp;
use proptest::prelude::*;
use random_objects::Source;
use serde_json::{Value, json};

use super::{Conversions, Endpoint, Failure, Report, Surroundings};
use crate::api::Version;
use crate::api::lens::memory::{PREFIX, is_dropped};
use crate::kinds::KINDS;
use crate::properties;

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn answer(endpoint: Endpoint, body: &[u8]) -> Value {
    serde_json::from_slice(&endpoint.answer(body, &Surroundings::at(now())).body).unwrap()
}

fn conversion(to: Version, objects: &[Value]) -> Value {
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u-1", "desiredAPIVersion": to.api_version(), "objects": objects}});
    answer(Endpoint::Convert, review.to_string().as_bytes())["response"].take()
}

fn admission(endpoint: Endpoint, request: &Value) -> Value {
    let mut request = request.clone();
    request["uid"] = json!("u-1");
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    answer(endpoint, review.to_string().as_bytes())["response"].take()
}

fn kind(version: &str) -> Value {
    json!({"group": "gatehouse.dev", "version": version, "kind": "TDSet"})
}

proptest! {
    #![proptest_config(crate::properties::config())]

    #[test]
    fn a_review_converts_as_the_lens_does_and_keeps_the_order(seeds in prop::collection::vec(any::<u64>(), 0..6)) {
        for to in Version::ALL {
            let objects: Vec<_> = seeds.iter().flat_map(|seed| {
                let mut source = Source::new(*seed);
                source.nonsense = 20;
                KINDS.iter().flat_map(|kind| Version::ALL.map(|from| (*kind, from, properties::object(&mut source, *kind, from)))).collect::<Vec<_>>()
            }).collect();
            let response = conversion(to, &objects.iter().map(|(_, _, object)| object.clone()).collect::<Vec<_>>());
            prop_assert_eq!(&response["uid"], "u-1");
            prop_assert_eq!(&response["result"]["status"], "Success");
            let converted = response["convertedObjects"].as_array().unwrap();
            prop_assert_eq!(converted.len(), objects.len());
            for ((kind, from, object), converted) in objects.iter().zip(converted) {
                prop_assert_eq!(converted, &kind.lens().convert(object.clone(), *from, to));
            }
        }
    }
}

#[test]
fn metadata_passes_through_as_the_bytes_that_came() {
    let object = r#"{"kind":"TDSet","apiVersion":"gatehouse.dev/v1alpha1","metadata":{"name":"a","x":12345678901234567890123,"managedFields":[ {"a":1.0} ]},"spec":{"defaultReplica":1}}"#;
    let review = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"gatehouse.dev/v1","objects":[{object}]}}}}"#
    );
    let body = String::from_utf8(Endpoint::Convert.answer(review.as_bytes(), &Surroundings::at(now())).body)
        .unwrap();
    let metadata = r#""metadata":{"name":"a","x":12345678901234567890123,"managedFields":[ {"a":1.0} ]}"#;
    assert!(body.contains(metadata), "{body}");
}

#[test]
fn an_object_without_metadata_loses_nothing() {
    for metadata in ["", r#""metadata":null,"#, r#""metadata":{},"#, r#""metadata":{"annotations":null},"#] {
        let object = format!(
            r#"{{"apiVersion":"gatehouse.dev/v1","kind":"TDSet",{metadata}"spec":{{"timeZone":"Asia/Tokyo"}}}}"#
        );
        let shown = conversion(Version::V1Alpha1, &[serde_json::from_str(&object).unwrap()]);
        let back = conversion(Version::V1, &[shown["convertedObjects"][0].clone()]);
        assert_eq!(back["convertedObjects"][0]["spec"], json!({"timeZone": "Asia/Tokyo"}), "{metadata}");
    }
}

#[test]
fn ten_thousand_objects_of_both_versions_come_back_in_order() {
    let objects: Vec<_> = (0..10_000)
        .map(|number| {
            let (version, field) =
                if number % 3 == 0 { ("v1", "defaultReplicas") } else { ("v1alpha1", "defaultReplica") };
            json!({"apiVersion": format!("gatehouse.dev/{version}"), "kind": "TDSet",
                "metadata": {"name": format!("n{number}")}, "spec": {field: number, "rubbish": [null]}})
        })
        .collect();
    let converted = conversion(Version::V1, &objects)["convertedObjects"].take();
    let converted = converted.as_array().unwrap();
    assert_eq!(converted.len(), objects.len());
    for (number, object) in converted.iter().enumerate() {
        assert_eq!(object["metadata"]["name"], format!("n{number}"));
        assert_eq!(object["spec"]["defaultReplicas"], number);
    }
}

#[test]
fn nonsense_in_one_object_fails_no_review() {
    let sound = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "spec": {"defaultReplicas": 1}});
    for nonsense in [json!(5), json!(null), json!("x"), json!([]), json!({"windows": 7, "target": "x"})] {
        let broken = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"annotations": 3}, "spec": nonsense});
        let response = conversion(Version::V1Alpha1, &[sound.clone(), broken]);
        assert_eq!(response["result"]["status"], "Success", "{response}");
        assert_eq!(response["convertedObjects"][0]["spec"]["defaultReplica"], 1);
    }
}

/// What is reported of a conversion to `to`.
fn converted(to: Version, objects: &[Value]) -> Report {
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u-1", "desiredAPIVersion": to.api_version(), "objects": objects}});
    Endpoint::Convert.answer(review.to_string().as_bytes(), &Surroundings::at(now())).report
}

#[test]
fn objects_are_counted_by_kind_and_versions_also_where_one_fails_the_review() {
    let object = |version: &str, spec: Value| json!({"apiVersion": version, "kind": "TDSet", "metadata": {"name": "a"}, "spec": spec});
    let (old, new) = (object("gatehouse.dev/v1alpha1", json!({})), object("gatehouse.dev/v1", json!({})));
    let large = object("gatehouse.dev/v1", json!({"timeZone": "x".repeat(300 << 10)}));
    let count = |from, objects, lost| Conversions { kind: "TDSet", from, to: "v1alpha1", objects, lost };
    let sound = [new.clone(), old.clone(), large, new.clone()];
    let report = converted(Version::V1Alpha1, &sound);
    assert_eq!((report.code, report.conversions), (200, vec![count("v1", 3, 1), count("v1alpha1", 1, 0)]));
    let unknown = json!({"apiVersion": "gatehouse.dev/v1", "kind": "Pear"});
    let report = converted(Version::V1Alpha1, &[new, unknown, old]);
    let failed = Conversions { to: "v1alpha1", objects: 1, ..Conversions::default() };
    assert_eq!((report.code, report.conversions), (400, vec![count("v1", 1, 0), failed]));
}

#[test]
fn a_dry_run_is_reported_whatever_becomes_of_it() {
    let request = |dry_run: Value, object: Value| {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u-1",
            "operation": "CREATE", "kind": kind("v1"), "name": "a", "object": object, "dryRun": dry_run}});
        Endpoint::Validate.answer(review.to_string().as_bytes(), &Surroundings::at(now())).report.dry_run
    };
    let sound = || json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"}, "spec": {"defaultReplicas": 1}});
    for object in [sound(), json!({}), Value::Null] {
        assert!(request(json!(true), object.clone()), "{object}");
        assert!(!request(json!(false), object.clone()) && !request(Value::Null, object));
    }
}

#[test]
fn an_audit_log_has_what_was_written_and_what_was_wrong_and_no_value() {
    let object = |replicas: Value| {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a"},
            "spec": {"target": {"create": {"image": "secret", "port": 80}}, "defaultReplicas": replicas}})
    };
    let ask = |endpoint, written: &str, object: &Value| {
        let request = json!({"operation": "CREATE", "kind": kind("v1"), "requestKind": kind(written), "name": "a", "object": object});
        admission(endpoint, &request)
    };
    let mut sound = object(json!(1));
    let first = ask(Endpoint::Mutate, "v1", &sound);
    let audit = &first["auditAnnotations"];
    assert_eq!(audit["verdict"], "allowed", "{first}");
    let defaulted = audit["defaulted"].as_str().unwrap();
    assert!(defaulted.contains("spec."), "{defaulted}");
    let patch =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, first["patch"].as_str().unwrap());
    let patch: json_patch::Patch = serde_json::from_slice(&patch.unwrap()).unwrap();
    json_patch::patch(&mut sound, &patch).unwrap();
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        let plain = ask(endpoint, "v1", &sound);
        assert_eq!((&plain["allowed"], plain.get("auditAnnotations")), (&json!(true), None), "{plain}");
        let old = ask(endpoint, "v1alpha1", &sound);
        assert_eq!(old["auditAnnotations"], json!({"verdict": "allowed", "written-as": "v1alpha1"}));
        let refused = ask(endpoint, "v1", &object(json!(-1)));
        assert_eq!(
            refused["auditAnnotations"],
            json!({"verdict": "denied", "errors": "1: spec.defaultReplicas"})
        );
        let unread = ask(endpoint, "v1", &Value::Null);
        assert_eq!(unread["auditAnnotations"], json!({"verdict": "denied"}));
    }
}

#[test]
fn an_unknown_kind_is_named_with_its_place() {
    let unknown = json!({"apiVersion": "gatehouse.dev/v1", "kind": "Pear", "metadata": {"namespace": "a", "name": "b"}});
    let response = conversion(Version::V1, &[unknown]);
    assert_eq!(response["result"]["status"], "Failure");
    assert_eq!(response["result"]["message"], "objects[0]: Pear a/b: unknown kind \"Pear\" of gatehouse.dev");
    assert_eq!(response["convertedObjects"], json!([]));
}

#[test]
fn a_hostile_envelope_is_refused_with_a_reason_and_the_uid_that_it_shows() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let create = r#""operation":"CREATE","kind":{"group":"gatehouse.dev","version":"v1","kind":"TDSet"}"#;
    let of = |request: &str| {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#)
    };
    let cases: Vec<(String, &str, &str)> = vec![
        (String::new(), "", "the body is empty"),
        ("{}".into(), "", "expected kind AdmissionReview"),
        ("[1]".into(), "", "unable to read the AdmissionReview"),
        ("nonsense".into(), "", "unable to read the AdmissionReview"),
        (
            of(r#"{"uid":"u-7","operat"#).trim_end_matches('}').into(),
            "u-7",
            "unable to read the AdmissionReview",
        ),
        (of("null"), "", "no request"),
        (of(r#"{"operation":"CREATE"}"#), "", "no uid"),
        (of(r#"{"uid":"u-7","uid":"u-8"}"#), "u-7", "duplicate field"),
        (of(r#"{"uid":"u-7"}"#), "u-7", "request.operation"),
        (of(&format!(r#"{{"uid":"u-7",{create}}}"#)), "u-7", "no object"),
        (of(&format!(r#"{{"uid":"u-7",{create},"object":null}}"#)), "u-7", "no object"),
        (of(&format!(r#"{{"uid":"u-7",{create},"object":[]}}"#)), "u-7", "is no object"),
        (of(&format!(r#"{{"uid":"u-7",{create},"object":{deep}}}"#)), "u-7", "recursion limit"),
        (
            of(&format!(r#"{{"uid":"u-7",{create},"object":{{"spec":{{"a":1,"a":2}}}}}}"#)),
            "u-7",
            "duplicate field",
        ),
        (
            of(r#"{"uid":"u-7","operation":"CREATE","kind":{"group":"apps","version":"v1","kind":"TDSet"}}"#),
            "u-7",
            "unknown kind",
        ),
        (
            of(&format!(r#"{{"uid":"u-7",{create}}}"#))
                .replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1"),
            "u-7",
            "v1beta1",
        ),
    ];
    for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
        for (body, uid, message) in &cases {
            let review = answer(endpoint, body.as_bytes());
            let response = &review["response"];
            assert_eq!(review["kind"], "AdmissionReview");
            assert_eq!(response["allowed"], false, "{body}");
            assert_eq!(response["uid"], *uid, "{body}");
            assert_eq!(response["status"]["code"], 400, "{body}");
            let said = response["status"]["message"].as_str().unwrap();
            assert!(said.contains(message), "{said:?} should contain {message:?} for {body}");
        }
    }
}

#[test]
fn the_uid_of_an_object_is_never_that_of_the_request() {
    let object =
        r#"{"apiVersion":"gatehouse.dev/v1","kind":"TDSet","metadata":{"name":"a","uid":"of-the-object"}}"#;
    let request = format!(
        r#"{{"object":{object},"objects":[{object}],"oldObject":{object},"operation":"CREATE","uid":"u-1"}}"#
    );
    for endpoint in Endpoint::ALL {
        let (version, kind) = match endpoint {
            Endpoint::Convert => ("apiextensions.k8s.io/v1", "ConversionReview"),
            _ => ("admission.k8s.io/v1", "AdmissionReview"),
        };
        let sound = format!(r#"{{"request":{request},"apiVersion":"{version}","kind":"{kind}"}}"#);
        for body in [
            sound.replace(version, "admission.k8s.io/v1beta1"),
            sound.replace(kind, "PodReview"),
            sound.replace(&format!(r#","apiVersion":"{version}""#), ""),
            sound.replace(r#""operation":"CREATE""#, r#""operation":"CREATE","operation":"UPDATE""#),
            sound.replace(r#""name":"a""#, r#""name":"a","name":"b""#),
            sound.replace("\"kind\":\"TDSet\",", ""),
            sound,
        ] {
            assert_eq!(answer(endpoint, body.as_bytes())["response"]["uid"], "u-1", "{body}");
        }
    }
}

#[test]
fn a_desired_version_without_its_group_is_refused() {
    for desired in ["v1", "", "apps/v1", "gatehouse.dev/v2"] {
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u-1", "desiredAPIVersion": desired, "objects": []}});
        let response = answer(Endpoint::Convert, review.to_string().as_bytes())["response"].take();
        assert_eq!(response["result"]["status"], "Failure", "{desired}");
        assert!(response["result"]["message"].as_str().unwrap().contains("desiredAPIVersion"), "{response}");
    }
    let bare = json!({"apiVersion": "v1", "kind": "TDSet", "metadata": {"namespace": "a", "name": "b"}});
    assert_eq!(conversion(Version::V1Alpha1, &[bare])["result"]["status"], "Failure");
}

#[test]
fn an_object_of_too_many_parts_is_refused_and_its_metadata_is_not_counted() {
    let many = |many: usize| format!("[{}0]", "0,".repeat(many));
    let object = |spec: &str, managed: &str| {
        format!(
            r#"{{"apiVersion":"gatehouse.dev/v1","kind":"TDSet","metadata":{{"name":"a","managedFields":{managed}}},
            "spec":{{"windows":{spec}}}}}"#
        )
    };
    let create = r#""operation":"CREATE","kind":{"group":"gatehouse.dev","version":"v1","kind":"TDSet"}"#;
    for (spec, managed, code) in [(many(100_000), many(1), 413), (many(100), many(100_000), 422)] {
        let object = object(&spec, &managed);
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u-1",{create},"object":{object}}}}}"#
        );
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            let response = answer(endpoint, review.as_bytes())["response"].take();
            assert_eq!(response["status"]["code"], code, "{response:.300}");
            assert_eq!(response["uid"], "u-1");
        }
        let review = format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",
            "request":{{"uid":"u-1","desiredAPIVersion":"gatehouse.dev/v1alpha1","objects":[{object}]}}}}"#
        );
        let response = answer(Endpoint::Convert, review.as_bytes())["response"].take();
        let converts = response["result"]["status"] == "Success";
        assert_eq!(converts, code != 413, "{response:.300}");
        if code == 413 {
            let said = response["result"]["message"].as_str().unwrap();
            assert_eq!(
                said,
                "objects[0].spec has more than 49152 fields and list items: no sound object has as many"
            );
        }
    }
}

#[test]
fn a_review_that_was_cut_off_is_answered_with_its_uid() {
    let failure = Failure { code: 413, reason: "RequestEntityTooLarge", message: "too large".into() };
    let body = br#"{"kind":"AdmissionReview","request":{"uid":"u-9","object":{"met"#;
    for endpoint in Endpoint::ALL {
        let review: Value = serde_json::from_slice(&endpoint.failure(body, &failure).body).unwrap();
        assert_eq!(review["response"]["uid"], "u-9");
        assert_ne!(review["response"]["allowed"], true);
    }
}

#[test]
fn many_keys_and_many_items_take_no_more_than_linear_time() {
    let keys: String = (0..40_000).map(|index| format!(r#""k{index}":0,"#)).collect::<Vec<_>>().concat();
    let items: Vec<_> = (0..5_000).map(|_| json!({"startTime": 1})).collect();
    let kept: Vec<_> = (0..5_000).map(|_| json!({"shown": "x"})).collect();
    let kept = json!({"items": kept}).to_string();
    let object = json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "spec": {"schedulingConfig": items},
        "metadata": {"annotations": {format!("{PREFIX}spec.windows"): kept}}});
    let wide = format!(r#"{{{keys}"apiVersion":"gatehouse.dev/v1alpha1","kind":"TDSet"}}"#);
    let wide: Value = serde_json::from_str(&wide).unwrap();
    let converted = conversion(Version::V1, &[wide, object])["convertedObjects"].take();
    assert_eq!(converted[1]["spec"]["windows"].as_array().unwrap().len(), 5_000);
}

#[test]
fn a_review_has_room_for_what_a_conversion_can_carry_and_no_more() {
    // A quote has two bytes in the text of a review and of a memory, and one among the API server's 256 KiB.
    let quotes = |count: usize| "\"".repeat(count);
    let of_notes = |count: usize| (quotes(count), json!(["a"]));
    let of_arguments = |count: usize| {
        let whole = (0..count / 2000).map(|_| quotes(2000));
        (String::new(), json!(whole.chain([quotes(count % 2000)]).collect::<Vec<_>>()))
    };
    let object = |(notes, command): (String, Value)| {
        json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet",
            "metadata": {"name": "a", "namespace": "b", "annotations": {"example.org/notes": notes}},
            "spec": {"defaultReplicas": 1, "timeZone": "Europe/Berlin",
                "target": {"create": {"image": "a", "port": 80, "command": command}}}})
    };
    let is_carried = |object: &Value| {
        let response = conversion(Version::V1Alpha1, std::slice::from_ref(object));
        !is_dropped(&response["convertedObjects"][0]["metadata"]["annotations"])
    };
    let is_taken = |object: &Value| {
        let request = json!({"operation": "CREATE", "kind": kind("v1"), "name": "a", "object": object});
        let response = admission(Endpoint::Validate, &request);
        let message = response["status"]["message"].as_str().unwrap_or_default();
        assert!(response["allowed"] == true || message.contains("256 KiB"), "{response:.500}");
        response["allowed"] == true
    };
    let kinds: [&dyn Fn(usize) -> (String, Value); 2] = [&of_notes, &of_arguments];
    for texts in kinds {
        let (mut fits, mut does_not) = (0, 300_000);
        while does_not - fits > 1 {
            let count = usize::midpoint(fits, does_not);
            let object = object(texts(count));
            assert_eq!(is_taken(&object), is_carried(&object), "{count} quotes");
            if is_carried(&object) {
                fits = count;
            } else {
                does_not = count;
            }
        }
        assert!(fits > 100_000, "{fits} quotes fit");
    }
}
