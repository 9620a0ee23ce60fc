//! Warnings are in the paths of the version that their author wrote.

use super::*;
use crate::kinds::KINDS;

/// The sources of all rules of the kinds, in which each warning is a text.
const SOURCES: &[(&str, &[&str])] = &[
    (
        "EtcdCluster",
        &[
            include_str!("../../../kinds/etcdcluster/api/validate/version.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/replicas.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/backup.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/storage.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/resources.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/recovery.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/tls.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/options.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/names.rs"),
            include_str!("../../../kinds/etcdcluster/api/validate/update.rs"),
        ],
    ),
    (
        "TDSet",
        &[
            include_str!("../../../kinds/tdset/api/validate.rs"),
            include_str!("../../../kinds/tdset/api/validate/target.rs"),
            include_str!("../../../kinds/tdset/api/validate/autoscaler.rs"),
            include_str!("../../../kinds/tdset/api/validate/advice.rs"),
            include_str!("../../../kinds/tdset/api/validate/advice/clocks.rs"),
            include_str!("../../../kinds/tdset/api/validate/advice/exceptions.rs"),
        ],
    ),
    (
        "DatabaseMigration",
        &[
            include_str!("../../../kinds/databasemigration/api/validate.rs"),
            include_str!("../../../kinds/databasemigration/api/validate/advice.rs"),
            include_str!("../../../kinds/databasemigration/api/validate/database.rs"),
            include_str!("../../../kinds/databasemigration/api/validate/scripts.rs"),
            include_str!("../../../kinds/databasemigration/api/validate/update.rs"),
        ],
    ),
];

/// The texts of a source that name a field of the hub, with a number in place of each position in a list.
fn texts(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap();
    let quoted = code.split('"').skip(1).step_by(2).map(|text| text.replace("\\\n", " "));
    let numbered = quoted.map(|text| {
        text.replace("[{at}]", "[0]")
            .replace("[{}]", "[0]")
            .replace(".{field}", ".up")
            .replace("spec.legacy.up", "spec.legacy.migration.parallel")
    });
    numbered.filter(|text| text.contains("spec.")).collect()
}

/// The paths below `spec` in a text that are not said to be the hub's.
fn paths(text: &str) -> Vec<String> {
    let of_author = text.replace("v1 spec.", "");
    let begun = of_author.match_indices("spec.").map(|(at, _)| &of_author[at..]);
    let path = |text: &str| -> String {
        let is_part = |one: char| one.is_ascii_alphanumeric() || ".[]".contains(one);
        text.chars().take_while(|one| is_part(*one)).collect()
    };
    begun.map(|text| path(text).trim_end_matches('.').to_owned()).collect()
}

/// Whether a definition of the old version has a field.
fn has_field(kind: &dyn Kind, path: &str) -> bool {
    let definition = kind.definition();
    let mut schema = json!(crate::api::schema::of(&definition, Version::V1Alpha1).unwrap());
    for step in path.split('.') {
        let (name, is_item) = step.split_once('[').map_or((step, false), |(name, _)| (name, true));
        let field = schema["properties"][name].take();
        schema = if is_item { field["items"].clone() } else { field };
    }
    !schema.is_null()
}

#[test]
fn each_text_of_a_rule_has_the_paths_of_its_author() {
    let mut seen = 0;
    for (name, sources) in SOURCES {
        let kind = crate::kinds::find(name).unwrap();
        let author = Author::of(kind, Version::V1Alpha1);
        for text in sources.iter().flat_map(|source| texts(source)) {
            seen += 1;
            let warning = author.warning(&Warning::new(&text));
            for path in paths(warning.as_str()) {
                assert!(has_field(kind, &path), "{path} of {warning:?}, from {text:?}");
            }
        }
    }
    assert!(seen > 40, "{seen}");
    assert_eq!(KINDS.len(), SOURCES.len());
}

/// What an author of the old version is warned of.
fn warned(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let kind = crate::kinds::find(kind).unwrap();
    let down = |object: &Value| kind.lens().convert(object.clone(), Version::V1, Version::V1Alpha1);
    let (new, old) = (down(new), old.map(down));
    let written = |object| Written { version: Version::V1Alpha1, object };
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let change =
        Change { new: written(&new), old: old.as_ref().map(written), author: Version::V1Alpha1, now };
    let validation = validate(kind, &change);
    assert!(validation.accepted(), "{:?}", validation.errors);
    validation.warnings.iter().map(ToString::to_string).collect()
}

/// Warnings, and how one of them begins.
fn examples() -> Vec<(Vec<String>, &'static str)> {
    let cluster = |change: &Value| {
        let mut object = of_kind("EtcdCluster", &sound("EtcdCluster"));
        json_patch::merge(&mut object["spec"], change);
        object
    };
    let set = |change: &Value| {
        let mut object = of_kind("TDSet", &sound("TDSet"));
        object["spec"]["windows"] = json!([]);
        json_patch::merge(&mut object["spec"], change);
        object
    };
    let window = |name: &str, from: &str, replicas: u32| json!({"name": name, "from": from, "to": "18:00", "replicas": replicas});
    let of_scripts = |text: &str| {
        let mut object = of_kind("DatabaseMigration", &sound("DatabaseMigration"));
        object["spec"]["scripts"][0]["up"]["inline"] = json!(text);
        object["spec"]["legacy"] = json!({"migration": {"parallel": true}});
        object
    };
    let small = json!({"storage": {"size": "1Gi"}});
    vec![
        (warned("EtcdCluster", &cluster(&json!({"replicas": 2})), None), "spec.size: 2 members"),
        (
            warned("EtcdCluster", &cluster(&small), None),
            "spec.storageSize: less than etcd's quota of 2Gi; set v1 spec.options.quotaBackendBytes",
        ),
        (
            warned("EtcdCluster", &cluster(&json!({"backup": {"timeZone": "Etc/UTC"}})), None),
            "v1 spec.backup.timeZone: has no effect without spec.backupSchedule",
        ),
        (
            warned(
                "EtcdCluster",
                &cluster(&json!({"replicas": 5, "version": "3.6.17"})),
                Some(&cluster(&json!({}))),
            ),
            "spec.version and spec.size change together",
        ),
        (warned("TDSet", &set(&json!({"resyncMinutes": 60})), None), "spec.intervalMint: 60 acts like 10"),
        (
            warned(
                "TDSet",
                &set(&json!({"windows": [window("a", "08:00", 2), window("b", "09:00", 3)]})),
                None,
            ),
            "spec.schedulingConfig[1]: b ",
        ),
        (
            warned("TDSet", &set(&json!({"windows": [window("a", "01:00", 2)]})), Some(&set(&json!({})))),
            "spec.schedulingConfig[0].replica: 1 -> 2 now",
        ),
        (
            warned("DatabaseMigration", &of_scripts("DROP TABLE a"), None),
            "spec.migration.scripts[0].source: drops a table",
        ),
        (warned("DatabaseMigration", &of_scripts("SELECT 1"), None), "spec.migration.parallel: is kept"),
    ]
}

#[test]
fn warnings_to_an_author_of_the_old_version_have_its_fields() {
    for (told, expected) in examples() {
        assert!(told.iter().any(|one| one.starts_with(expected)), "{expected}: {told:#?}");
        assert!(told.iter().all(|one| !one.ends_with('…')), "{told:#?}");
    }
}
