//! `gatehouse storage` on definitions that are not ours, by what etcd itself holds afterwards.

mod alone;
mod doubted;
mod gateway;
mod helm;
mod kubernetes;
pub mod moving;
mod ours;
mod rate;
mod removed;
mod resumed;
mod service;
mod terminal;
mod throttled;
mod unreached;
mod users;
mod way;
mod webhook;
mod widgets;

use gatehouse::storage::plan::Goal;
use gatehouse::storage::plan::tally::Failure;
use gatehouse::storage::requests::Requests;
use gatehouse::storage::{Migration, Options, Silent};
use kit::bed::{Bed, NAMESPACE};
use kit::objects::{Ask, condition};
use kit::wait::eventually;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Test;
use users::rule;
use widgets::{Widgets, run, run_as};

/// On the newest and on the oldest version.
pub const EVERYWHERE: &[Test] = &kit::tests![
    moving::writers_and_deaths_lose_nothing,
    one_object_that_cannot_be_written_keeps_the_version,
    managers_of_a_removed_version_lose_nothing,
    gateway::a_definition_of_the_gateway_api_is_migrated,
];

pub const ONCE: &[Test] = &kit::tests![
    moving::an_interrupted_run_is_taken_up,
    moving::an_interrupted_run_says_nothing_of_what_others_have_ended,
    moving::what_is_reduced_by_hand_is_verified,
    doubted::a_forced_run_that_fails_is_not_forgotten,
    doubted::force_takes_no_fields_away,
    doubted::a_switch_is_said_before_its_grace_ends,
    resumed::a_run_that_is_killed_is_taken_up_at_its_place,
    resumed::a_definition_that_is_changed_meanwhile_keeps_its_versions,
    resumed::a_definition_that_is_made_again_meanwhile_keeps_its_versions,
    terminal::a_terminal_shows_a_bar_and_ctrl_c_ends_it,
    throttled::an_api_server_that_has_no_time_is_asked_for_less,
    webhook::what_a_webhook_of_others_converts_is_moved,
    kubernetes::what_kubernetes_itself_fails_to_write_is_written,
    kubernetes::what_kubernetes_itself_has_written_is_verified,
    unreached::an_api_server_that_goes_away_is_waited_for,
    what_holds_a_version_back_is_shown,
    the_rights_that_it_names_are_enough,
    rate::it_is_measured_beside_bare_patches,
];

/// On control planes that have our definitions and no operator.
pub const ON_BARE: &[Test] = &kit::tests![
    removed::v1alpha1_is_removed_from_our_definitions_and_comes_back,
    ours::the_leader_moves_our_objects_to_v1,
];

/// Where every other test takes turns with them: they migrate all definitions that there are, or have etcd forget what
/// the caches of the API server have yet to read, whose lists then fail.
pub const OF_ALL: &[Test] = &kit::tests![
    resumed::a_place_that_has_become_too_old_loses_no_object,
    ours::our_objects_move_to_v1,
    service::v1alpha1_goes_out_of_service_and_comes_back,
];

/// Where they take turns.
pub const IN_TURNS: &[Test] = &kit::tests![
    alone::nothing_of_gatehouse_has_to_be_there,
    alone::a_leader_leaves_what_is_stored_where_it_is_told_to,
    ours::leaders_that_die_are_followed_by_one_that_ends,
    service::what_is_installed_without_v1alpha1_is_said_to_be_migrated,
];

fn one_object_that_cannot_be_written_keeps_the_version(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "refused", true);
    widgets.make(20);
    widgets.store_as_v1();
    let lift = widgets.refuse("widget-007");

    let ran = run(bed, &["migrate", &widgets.name, "--to", "v1", "--grace", "0s"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.errors.contains("widget-007") && ran.errors.contains("not this one"), "{ran:?}");
    assert!(ran.output.contains("storedVersions stays as it is: 1 objects could not be written"), "{ran:?}");
    assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]));
    assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"], "all others are written");
    let said = condition(&widgets.definition(), "StorageMigrated");
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("Kept")), "{said}");
    let message = said["message"].as_str().expect("a message");
    assert!(message.contains("widget-007: ") && message.contains("not this one"), "{message}");
    let crd = format!("crd/{}", widgets.name);
    // Without waiting.
    let wait = || bed.kubectl(&["wait", "--for=condition=StorageMigrated", "--timeout=0", &crd]);
    wait().fails();

    let shown = run(bed, &["status", &widgets.name]);
    let line = format!("    StorageMigrated: {message}");
    assert!(shown.output.lines().any(|shown| shown == line), "no {line} in {shown:?}");

    let tried = run(bed, &["migrate", &widgets.name, "--dry-run"]);
    assert_eq!(tried.code, 1, "{tried:?}");
    assert!(tried.errors.contains("not this one"), "{tried:?}");

    assert!(still_fails(&widgets, "widget-007"));
    assert_eq!(widgets.in_etcd("v1alpha1"), ["widget-007"]);
    lift();
    assert!(!still_fails(&widgets, "widget-007"), "a leader that tries again begins with what has failed");
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
    assert_eq!(widgets.stored_versions(), json!(["v1alpha1", "v1"]), "the others are unknown");
    let ran = run(bed, &["migrate", &widgets.name, "--to", "v1", "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(widgets.stored_versions(), json!(["v1"]));
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
    assert!(wait().ok().contains("condition met"));
    assert_eq!(condition(&widgets.definition(), "Established")["status"], "True", "the others are left");
}

/// Whether one that has failed, as the leader knows it, still does.
fn still_fails(widgets: &Widgets, name: &str) -> bool {
    let list = format!("/apis/{}/v1/widgets?fieldSelector=metadata.name%3D{name}", widgets.group);
    let namespace = widgets.bed.objects.at(&list)["items"][0]["metadata"]["namespace"].clone();
    let object = format!("{}/{name}", namespace.as_str().expect("it is there"));
    let failures = [Failure { object, reason: String::new() }];
    widgets.bed.objects.with(async |client| {
        let requests = Requests::through(client);
        let (goal, options, stop) = (Goal::default(), Options::default(), CancellationToken::new());
        let migration = Migration { requests: &requests, goal, options, stop, watch: &Silent };
        let definition = migration.definition(&widgets.name).await.expect("it is there");
        migration.still_fails(&definition, &failures).await
    })
}

/// What happens to a manager of a version that goes: kubernetes/kubernetes#111937.
fn managers_of_a_removed_version_lose_nothing(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "removed", true);
    let namespace = widgets.namespace().to_owned();
    let apply = |version: &str, name: &str, spec: Value, query: &str| {
        let object = json!({"apiVersion": format!("{}/{version}", widgets.group), "kind": "Widget",
            "metadata": {"name": name}, "spec": spec});
        let Ask { path, body, .. } = Ask::apply(&object, &namespace, query);
        let path = path.replace("fieldManager=kit", "fieldManager=team");
        bed.objects.one(Ask { method: "APPLY", path, body })
    };
    for name in ["cleaned", "left"] {
        apply("v1alpha1", name, json!({"size": 1, "colour": "red"}), "").expect("applied");
    }
    widgets.store_as_v1();
    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let versions = |name: &str| {
        let object = bed.objects.at(&widgets.path("v1", name));
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.into_iter().map(|entry| entry["apiVersion"].clone()).collect::<Vec<_>>()
    };
    let old = json!(format!("{}/v1alpha1", widgets.group));
    assert!(versions("cleaned").contains(&old), "a version that is served keeps its managers");

    widgets.apply(&[("v1alpha1", false, false), ("v1", true, true)]);
    widgets.until_unserved("v1alpha1");
    let held = widgets.held_back("v1alpha1");
    assert_eq!(held, json!(["ManagedFields"]));
    // One object is left as it is, to see what becomes of it.
    let lift = widgets.refuse("left");
    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.output.contains("nothing is stored in another version; managed fields: "), "{ran:?}");
    let said = condition(&widgets.definition(), "StorageMigrated");
    assert_eq!(said["status"], "True", "{said}");
    let message = said["message"].as_str().expect("a message");
    assert!(message.contains("managed fields of other versions stay in 1 objects: "), "{message}");
    lift();
    assert!(!versions("cleaned").contains(&old) && versions("left").contains(&old));

    widgets.apply(&[("v1", true, true)]);
    let now_without = json!({"size": 2});
    // It is not at once that the API server has no such version.
    let broken = eventually(|| match apply("v1", "left", now_without.clone(), "dryRun=All") {
        Err(refusal) => Ok(refusal.message),
        Ok(object) => Err(format!("applied: {object}")),
    });
    assert!(broken.contains("invalid group/version"), "{broken}");
    let applied = apply("v1", "cleaned", now_without, "").expect("applied");
    assert_eq!(applied["spec"], json!({"size": 2}), "its manager has given up the colour");

    // The way out for what was left.
    let ran = run(bed, &["migrate", &widgets.name]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let applied = apply("v1", "left", json!({"size": 3}), "").expect("applied");
    assert_eq!(applied["spec"], json!({"size": 3}));
}

fn what_holds_a_version_back_is_shown(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "shown", false);
    widgets.make(3);
    widgets.store_as_v1();
    let shown = run(bed, &["status", &widgets.name]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let row = shown.output.lines().find(|line| line.starts_with(&widgets.name)).expect("a row");
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[1..], ["Widget", "v1", "v1alpha1", "v1alpha1,v1", "4"], "with the object that tried");
    for line in ["what holds v1alpha1 back", "gatehouse storage migrate", "it is served", "3 objects, last "]
    {
        assert!(shown.output.contains(line), "no {line} in {}", shown.output);
    }
    assert_eq!(widgets.held_back("v1alpha1"), json!(["Stored", "Served", "ManagedFields"]));
    let all = run(bed, &["status"]);
    assert!(all.output.contains(&widgets.name), "{all:?}");

    for (to, message) in
        [("v1alpha1", "stores its objects as v1, not as v1alpha1"), ("v7", "has no version v7")]
    {
        let ran = run(bed, &["migrate", &widgets.name, "--to", to]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.errors.contains(message), "{ran:?}");
    }
    for words in [["status", "nothing.example.dev"], ["migrate", "nothing.example.dev"]] {
        let ran = run(bed, &words);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.errors.contains("there is no definition nothing.example.dev"), "{ran:?}");
    }
    let ran = run(bed, &["migrate", &widgets.name, "--grace", "0s", "--managed-fields", "others"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(widgets.held_back("v1alpha1"), json!(["Served"]));
    let again = run(bed, &["migrate", &widgets.name]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.output.contains("nothing is stored in another version"), "{again:?}");
}

/// A role as `--help` describes it, without what it says can be left out.
fn the_rights_that_it_names_are_enough(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "allowed", true);
    widgets.make(3);
    widgets.store_as_v1();
    let account = "storage-migrator";
    let words = ["migrate", &widgets.name, "--grace", "0s"];
    let definitions = "apiextensions.k8s.io";
    let mut rules = vec![
        rule(definitions, &["customresourcedefinitions"], &["get"]),
        rule(&widgets.group, &["widgets"], &["list"]),
    ];
    let list = format!("/apis/{}/v1/widgets", widgets.group);
    let kubeconfig = users::account(bed, (NAMESPACE, account), &rules, &list);
    let ran = run_as(&kubeconfig, &words);
    assert_eq!(ran.code, 1, "{ran:?}");
    let missing = format!(
        "this needs the rights to patch widgets/status of {}, patch customresourcedefinitions/status of {definitions}",
        widgets.group
    );
    assert!(ran.errors.contains(&missing), "{ran:?}");
    assert_eq!(widgets.in_etcd("v1alpha1").len(), 3, "nothing was begun");

    let granted = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{account}");
    rules.push(rule(&widgets.group, &["widgets/status"], &["patch"]));
    let run_with = |rules: &[Value], words: &[&str]| {
        bed.objects.must(Ask::patch(&*granted, json!({"rules": rules})));
        eventually(|| {
            let ran = run_as(&kubeconfig, words);
            if ran.errors.contains("this needs the rights") { Err(ran.errors) } else { Ok(ran) }
        })
    };
    let tried = run_with(&rules, &[&words[..], &["--dry-run"]].concat());
    assert!(tried.code == 0 && tried.output.contains("tried, all 4 would be written"), "{tried:?}");
    rules.push(rule(definitions, &["customresourcedefinitions/status"], &["patch"]));
    let ran = run_with(&rules, &words);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(widgets.stored_versions(), json!(["v1"]));
    assert_eq!(widgets.in_etcd("v1alpha1"), [""; 0]);
}
