//! Which lists of the hub need an annotation beside what the spoke shows of them.

use serde_json::{Value, json};

use super::super::Carried;
use super::super::memory::PREFIX;
use super::{SPOKE, TDSetKind, down, lens, tdset, up};

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

#[test]
fn windows_that_were_given_names_keep_them_where_others_come_and_go() {
    let plain = |start: i32, replica: i32| json!({"startTime": start, "endTime": 23, "replica": replica});
    let old = |windows: &[&Value]| json!({"apiVersion": "gatehouse.dev/v1alpha1", "kind": "TDSet", "spec": {"schedulingConfig": windows}});
    let (early, late, other) = (plain(6, 1), plain(18, 2), plain(1, 9));
    let stored = up(&TDSetKind, &old(&[&early, &late]));
    for (written, names) in [
        (vec![&early, &late], vec!["w0", "w1"]),
        (vec![&late, &early], vec!["w1", "w0"]),
        (vec![&other, &early, &late], vec!["w3", "w0", "w1"]),
        (vec![&early, &other, &late], vec!["w0", "w3", "w1"]),
        (vec![&late], vec!["w1"]),
        (vec![&late, &plain(18, 3)], vec!["w1", "w0"]),
        (vec![&plain(7, 4), &late], vec!["w0", "w1"]),
    ] {
        let (carried, said) = lens().table(SPOKE).unwrap().carry(up(&TDSetKind, &old(&written)), &stored);
        let windows = carried["spec"]["windows"].as_array().unwrap();
        let found: Vec<_> = windows.iter().map(|window| window["name"].as_str().unwrap()).collect();
        assert_eq!((found, said), (names, Carried::default()), "{written:?}");
    }
}
