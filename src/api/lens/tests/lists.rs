//! Which lists of the hub need an annotation beside what the spoke shows of them.

use serde_json::{Value, json};

use super::super::memory::PREFIX;
use super::{TDSetKind, down, tdset, up};

fn windows(names: [&str; 2], more: &Value) -> Value {
    let window = |name: &str| {
        let mut window = json!({"name": name, "from": "08:00", "to": "18:00", "replicas": 3});
        window.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        window
    };
    json!(names.map(window))
}

#[test]
fn a_list_has_an_annotation_exactly_if_it_hides_something() {
    let key = format!("{PREFIX}spec.windows");
    for (names, more, is_needed) in [
        (["w0", "w1"], json!({}), false),
        (["w1", "w0"], json!({}), true),
        (["w0", "w2"], json!({}), true),
        (["w0", "night"], json!({}), true),
        (["w0", "w1"], json!({"days": ["Mon"]}), true),
        (["w0", "w1"], json!({"enabled": null}), true),
        (["w0", "w1"], json!({"from": "08:30"}), true),
        (["w0", "w1"], json!({"unknown": {"a": 1}}), false),
    ] {
        let object = tdset(&json!({"defaultReplicas": 1, "windows": windows(names, &more)}));
        let shown = down(&TDSetKind, &object);
        let has = shown.pointer("/metadata/annotations").and_then(|all| all.get(&key)).is_some();
        assert_eq!(has, is_needed, "{names:?} {more}: {shown}");
        assert_eq!(up(&TDSetKind, &shown), object, "{shown}");
    }
}
