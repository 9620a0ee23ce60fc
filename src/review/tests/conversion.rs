//! Reviews of conversion: in whatever order their fields come.

use super::*;

/// An object of fields in this order.
fn ordered(fields: &[(&str, String)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{}: {value}", json!(key))).collect();
    format!("{{{}}}", fields.join(" , "))
}

fn review(request: &[(&str, String)]) -> String {
    let kind = ("kind", json!("ConversionReview").to_string());
    ordered(&[
        ("request", ordered(request)),
        kind,
        ("apiVersion", json!("apiextensions.k8s.io/v1").to_string()),
    ])
}

#[test]
fn the_order_of_fields_changes_nothing() {
    let windows = json!([{"name": "a", "from": "08:30", "to": "18:00", "replicas": 3, "days": ["Mon"]}]);
    let spec = json!({"defaultReplicas": 1, "timeZone": "Europe/Berlin", "windows": windows});
    let whole = json!({"apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": "a", "namespace": "b"},
        "spec": spec, "status": {"replicas": 2}, "unknown": [1]});
    let field = |key: &'static str| (key, whole[key].to_string());
    let orders = [
        ["apiVersion", "kind", "metadata", "spec", "status", "unknown"],
        ["spec", "status", "unknown", "metadata", "kind", "apiVersion"],
        ["status", "kind", "spec", "metadata", "apiVersion", "unknown"],
        ["unknown", "apiVersion", "metadata", "status", "kind", "spec"],
    ];
    for to in Version::ALL {
        let expected = conversion(to, std::slice::from_ref(&whole))["convertedObjects"].take();
        assert_eq!(expected[0]["apiVersion"], to.api_version());
        let (uid, desired) =
            (("uid", json!("u-1").to_string()), ("desiredAPIVersion", json!(to.api_version()).to_string()));
        for order in orders {
            let objects = ("objects", format!("[{}]", ordered(&order.map(field))));
            for request in
                [[&uid, &desired, &objects], [&objects, &desired, &uid], [&uid, &objects, &desired]]
            {
                let text = review(&request.map(Clone::clone));
                let mut review = answer(Endpoint::Convert, text.as_bytes());
                assert_eq!(review["response"]["uid"], "u-1");
                assert_eq!(review["response"]["convertedObjects"].take(), expected, "{text}");
            }
        }
    }
}

#[test]
fn objects_before_one_that_cannot_be_converted_are_counted_once() {
    let object = |kind: &str| json!({"apiVersion": "gatehouse.dev/v1", "kind": kind, "spec": {}, "metadata": {"name": "a"}});
    let objects = json!([object("TDSet"), object("TDSet"), object("Pear")]);
    let request = json!({"uid": "u-1", "desiredAPIVersion": "gatehouse.dev/v1alpha1", "objects": objects});
    let text = review(&["uid", "desiredAPIVersion", "objects"].map(|key| (key, request[key].to_string())));
    let answer = Endpoint::Convert.answer(text.as_bytes(), &Surroundings::at(now()));
    let response = serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take();
    assert_eq!(response["result"]["message"], "objects[2]: Pear /a: unknown kind \"Pear\" of gatehouse.dev");
    assert_eq!(response["convertedObjects"], json!([]));
    let counted: Vec<_> = answer.report.conversions.iter().map(|one| (one.kind, one.objects)).collect();
    assert_eq!(counted, [("TDSet", 2), ("", 1)]);
}
