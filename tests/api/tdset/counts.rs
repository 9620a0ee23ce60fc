//! Counts that another client writes, and counts that move in steps.

use std::time::Duration;

use gatehouse::runtime::clock;
use kit::bed::Bed;
use kit::objects::http_get;
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::watched::Counts;
use super::{
    TDSETS, condition, for_workload, foreign, from_now, message, notes, patch, scale, span, tdset,
    until_condition, until_status,
};
use crate::Test;
use crate::site::Site;

pub const TESTS: &[Test] = &kit::tests![
    a_count_by_kubectl_scale_is_undone,
    a_workload_that_is_deleted_is_made_again,
    a_client_that_writes_again_and_again_is_named,
    what_was_made_is_put_back_ever_more_rarely,
    a_refused_service_hides_nothing_of_the_day,
    a_workload_that_is_made_again_gets_its_own_count_back,
];

pub const ON_CLOCKS: &[Test] = &kit::tests![
    a_kept_count_stands_until_the_next_transition,
    a_kept_count_of_another_owners_workload_stands_as_well,
    a_ramp_is_climbed_step_by_step,
    a_count_of_its_own_is_given_back_after_a_death,
];

fn a_count_by_kubectl_scale_is_undone(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = ["firm", "web"].map(|name| Counts::of(&namespace, "deployments", name));
    namespace.create(&tdset("firm", &json!({"resyncMinutes": 1440})));
    namespace.until("tdset/firm", "{.status.scheduledReplicas}", "1");
    foreign(&namespace, "web", 2);
    let manifest = for_workload("by-scale", "apps/v1", "Deployment", "web", &json!({}));
    namespace.create(&manifest);
    namespace.until("tdset/by-scale", "{.status.replicas}", "2");
    for (name, counts, count) in [("firm", &counts[0], 1), ("web", &counts[1], 2)] {
        counts.until(&[count]);
        let begun = clock::instant();
        scale(&namespace, &format!("deployment/{name}"), 7);
        counts.until(&[count, 7, count]);
        println!("the count of {name} was back after {:.1?}", begun.elapsed());
    }
    for (name, count) in [("firm", 1), ("by-scale", 2)] {
        eventually(|| match notes(&namespace, name, "ReplicasReverted").as_slice() {
            [note] if *note == format!("replicas 7 → {count}: taken back from kubectl") => Ok(()),
            notes => Err(format!("{name}: {notes:?}")),
        });
        let labels = format!("namespace=\"{}\",name=\"{name}\",manager=\"kubectl\"", namespace.name);
        let counted = format!("gatehouse_tdset_reverts_total{{{labels}}} 1");
        eventually(|| {
            let page = bed.gate(|gate| http_get(gate.health, "/metrics"));
            let lines = || page.lines().filter(|line| line.starts_with("gatehouse_tdset_reverts_total"));
            if lines().any(|line| line == counted) { Ok(()) } else { Err(lines().collect::<String>()) }
        });
    }
}

fn a_client_that_writes_again_and_again_is_named(bed: &Bed) {
    let namespace = bed.namespace();
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 2);
    namespace.create(&for_workload("hours", "apps/v1", "Deployment", "web", &json!({})));
    namespace.until("tdset/hours", "{.status.replicas}", "2");
    let mut expected = vec![2];
    for _ in 0..3 {
        scale(&namespace, "deployment/web", 7);
        expected.extend([7, 2]);
        counts.until(&expected);
    }
    scale(&namespace, "deployment/web", 7);
    let object = until_condition(&namespace, "hours", "Conflict", "True", "Contested");
    assert!(message(&object, "Conflict").starts_with("kubectl writes another count each time"), "{object}");
    until_condition(&namespace, "hours", "Ready", "False", "Contested");
    expected.push(7);
    counts.until(&expected);
    // Another count that the timetable asks for is written all the same.
    patch(&namespace, "hours", &json!({"defaultReplicas": 3}));
    expected.push(3);
    counts.until(&expected);
}

fn what_was_made_is_put_back_ever_more_rarely(bed: &Bed) {
    let namespace = bed.namespace();
    let image = "{.spec.template.spec.containers[0].image}";
    let mut object = tdset("shop", &json!({}));
    object["spec"]["target"]["create"]["image"] = json!("shop:1");
    namespace.create(&object);
    namespace.until_created("deployment/shop");
    let meddle = || {
        let mut containers =
            namespace.get("deployment", "shop")["spec"]["template"]["spec"]["containers"].clone();
        containers[0]["image"] = json!("other:1");
        let template = json!({"spec": {"containers": containers}});
        namespace.change("deployment/shop", &json!({"spec": {"template": template}}))
    };
    for _ in 0..3 {
        meddle();
        namespace.until("deployment/shop", image, "shop:1");
    }
    // A repair does not count if it was planned on a Deployment from before the last repair: then the next change stands.
    let left_changed = || {
        let stands = meddle();
        let is_left = bed.objects.until("tdset/shop", &namespace.name, |tdset| {
            let is_contested = |about: &str| condition(tdset, about).1 == "Contested";
            if is_contested("Ready") {
                return Ok(true);
            }
            let deployment = namespace.get("deployment", "shop");
            let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
            let is_restored = image == "shop:1" && is_contested("Conflict");
            if is_restored { Ok(false) } else { Err(format!("{image} {}", tdset["status"])) }
        });
        is_left.then_some(stands)
    };
    let stands = left_changed().or_else(left_changed).expect("a change that stands");
    let object = until_condition(&namespace, "shop", "Conflict", "True", "Contested");
    assert!(message(&object, "Conflict").starts_with("another client changes what was made"), "{object}");
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    assert_eq!(
        generation(&namespace.get("deployment", "shop")),
        generation(&stands),
        "no pod is rolled again"
    );
    // What the user asks for is written all the same.
    patch(&namespace, "shop", &json!({"target": {"create": {"image": "shop:2"}}}));
    namespace.until("deployment/shop", image, "shop:2");
}

fn a_refused_service_hides_nothing_of_the_day(bed: &Bed) {
    let namespace = bed.namespace();
    let limit = "count/services";
    namespace.create(&json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {limit: "0"}}}));
    bed.objects.until("resourcequota/none", &namespace.name, |quota| {
        if quota["status"]["hard"][limit] == "0" { Ok(()) } else { Err(quota["status"].to_string()) }
    });
    let pace = json!({"step": 1, "every": "1h"});
    let window = json!([{"name": "always", "from": "00:00", "to": "24:00", "replicas": 2}]);
    let mut object = tdset("shop", &json!({"windows": window, "ramp": {"up": pace, "down": pace}}));
    object["spec"]["target"]["create"]["servicePort"] = json!(80);
    namespace.create(&object);
    let object = until_condition(&namespace, "shop", "Ready", "False", "ApplyFailed");
    assert!(message(&object, "Ready").contains("exceeded quota: none"), "{object}");
    namespace.until("deployment/shop", "{.spec.replicas}", "2");
    patch(
        &namespace,
        "shop",
        &json!({"windows": [{"name": "always", "from": "00:00", "to": "24:00", "replicas": 6}]}),
    );
    namespace.until("deployment/shop", "{.spec.replicas}", "3");
    let status = until_status(&namespace, "shop", |status| status["ramp"]["to"] == 6);
    assert_eq!(
        (&status["activeWindow"], &status["scheduledReplicas"]),
        (&json!("always"), &json!(6)),
        "{status}"
    );
    until_condition(&namespace, "shop", "Ready", "False", "ApplyFailed");
    namespace.delete("resourcequota/none");
    namespace.until_created("service/shop");
    assert_eq!(namespace.get("deployment", "shop")["spec"]["replicas"], 3, "no step was taken for that");
}

fn a_workload_that_is_deleted_is_made_again(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&tdset("firm", &json!({})));
    namespace.until_created("deployment/firm");
    let uid = namespace.get("deployment", "firm")["metadata"]["uid"].clone();
    namespace.delete("deployment/firm");
    bed.objects.until("deployment/firm", &namespace.name, |made| {
        if made["metadata"]["uid"] == uid {
            Err("the one that was deleted is there".to_owned())
        } else {
            Ok(())
        }
    });
}

/// And not that of the workload that had its name before, whether its absence was noticed or not.
fn a_workload_that_is_made_again_gets_its_own_count_back(bed: &Bed) {
    let namespace = bed.namespace();
    foreign(&namespace, "web", 5);
    let rush = span("rush", from_now(Duration::ZERO), from_now(Duration::from_hours(2)), 8);
    let fields = json!({"defaultReplicas": null, "exceptions": [rush]});
    namespace.create(&for_workload("lent", "apps/v1", "Deployment", "web", &fields));
    let until_noted = |count: u32| {
        namespace.until("tdset/lent", "{.status.replicasBefore}", &count.to_string());
        namespace.until("deployment/web", "{.spec.replicas}", "8");
        namespace.until("tdset/lent", "{.status.scheduledReplicas}", "8");
    };
    until_noted(5);
    for (count, is_missed) in [(3, true), (4, false)] {
        namespace.delete("deployment/web");
        if is_missed {
            until_condition(&namespace, "lent", "Ready", "False", "TargetNotFound");
        }
        foreign(&namespace, "web", count);
        until_noted(count);
    }
    patch(&namespace, "lent", &json!({"exceptions": null}));
    namespace.until("deployment/web", "{.spec.replicas}", "4");
}

fn a_kept_count_stands_until_the_next_transition(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    let counts = Counts::of(&namespace, "deployments", "kept");
    let fields = json!({"manualScalePolicy": "KeepUntilNextTransition"});
    namespace.create(&tdset("kept", &fields));
    namespace.until("tdset/kept", "{.status.replicas}", "1");
    scale(&namespace, "deployment/kept", 7);
    let object = until_condition(&namespace, "kept", "ManualOverride", "True", "ManuallyScaled");
    assert_eq!(
        message(&object, "ManualOverride"),
        "kubectl wrote 7, 1 are scheduled: it stands for good: no transition is ahead"
    );
    // An edit that asks for the same count is no transition, and what is rolled out leaves the count alone.
    let create = json!({"target": {"create": {"image": "registry.k8s.io/pause:3.9"}}});
    patch(&namespace, "kept", &create);
    let image = "{.spec.template.spec.containers[0].image}";
    namespace.until("deployment/kept", image, "registry.k8s.io/pause:3.9");
    ends_with_a_transition(&site, "kept");
    counts.until(&[1, 7, 4]);
    let status = namespace.get(TDSETS, "kept")["status"].clone();
    assert_eq!(status["lastTransition"]["to"]["window"], "exception/rush", "{status}");
}

/// A count of another owner stands until a span begins that asks for 4.
fn ends_with_a_transition(site: &Site, name: &str) {
    patch(site.namespace, name, &json!({"exceptions": [site.span("rush", 5, 120, 4)]}));
    let start = site.at(5).to_string();
    site.namespace.until(&format!("tdset/{name}"), "{.status.nextTransition.time}", &start);
    until_condition(site.namespace, name, "ManualOverride", "True", "ManuallyScaled");
    site.jump(5);
    until_condition(site.namespace, name, "ManualOverride", "False", "NotOverridden");
}

fn a_kept_count_of_another_owners_workload_stands_as_well(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 2);
    let fields = json!({"manualScalePolicy": "KeepUntilNextTransition"});
    namespace.create(&for_workload("kept", "apps/v1", "Deployment", "web", &fields));
    namespace.until("tdset/kept", "{.status.replicas}", "2");
    scale(&namespace, "deployment/web", 7);
    let object = until_condition(&namespace, "kept", "ManualOverride", "True", "ManuallyScaled");
    assert!(message(&object, "ManualOverride").starts_with("kubectl wrote 7, 2 are"), "{object}");
    ends_with_a_transition(&site, "kept");
    counts.until(&[2, 7, 4]);
}

fn a_ramp_is_climbed_step_by_step(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    let counts = Counts::of(&namespace, "deployments", "stairs");
    let ramp = json!({"up": {"step": 2, "every": "2m"}, "down": {"step": "50%", "every": "1m"}});
    let fields = json!({"exceptions": [site.span("rush", 5, 15, 6)], "ramp": ramp});
    namespace.create(&tdset("stairs", &fields));
    let status = |is_so: &dyn Fn(&Value) -> bool| until_status(&namespace, "stairs", is_so);
    status(&|status| status["nextTransition"]["replicas"] == 6);
    let is_on_a_ramp = |to: u32| move |status: &Value| status["ramp"]["to"] == to;
    let is_over =
        |count: u32| move |status: &Value| status["ramp"].is_null() && status["scheduledReplicas"] == count;
    for (minutes, seen) in [(5, &[1, 3][..]), (7, &[1, 3, 5]), (9, &[1, 3, 5, 6])] {
        site.jump(minutes);
        counts.until(seen);
        if minutes < 9 {
            let ramp = status(&is_on_a_ramp(6))["ramp"].clone();
            assert_eq!(
                (&ramp["from"], &ramp["since"]),
                (&json!(1), &json!(site.at(5).to_string())),
                "{ramp}"
            );
            until_condition(&namespace, "stairs", "Progressing", "True", "Ramping");
        }
    }
    status(&is_over(6));
    site.jump(15);
    counts.until(&[1, 3, 5, 6, 3]);
    status(&is_on_a_ramp(1));
    site.jump(16);
    counts.until(&[1, 3, 5, 6, 3, 1]);
    status(&is_over(1));
}

/// Without a count for other times the workload is left alone outside of a span, and gets its own count back after it,
/// from an operator that did not see it begin.
fn a_count_of_its_own_is_given_back_after_a_death(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::Lives);
    let counts = Counts::of(&namespace, "deployments", "web");
    foreign(&namespace, "web", 5);
    let fields = json!({"defaultReplicas": null, "exceptions": [site.span("rush", 60, 120, 8)]});
    namespace.create(&for_workload("lent", "apps/v1", "Deployment", "web", &fields));
    namespace.until("tdset/lent", "{.status.nextTransition.replicas}", "8");
    scale(&namespace, "deployment/web", 4);
    namespace.until("tdset/lent", "{.status.replicas}", "4");
    site.jump(60);
    namespace.until("tdset/lent", "{.status.scheduledReplicas}", "8");
    let status = namespace.get(TDSETS, "lent")["status"].clone();
    assert_eq!(status["replicasBefore"], 4, "{status}");
    counts.until(&[5, 4, 8]);
    drop(operator);
    site.jump(120);
    let _operator = site.start(Fate::Lives);
    counts.until(&[5, 4, 8, 4]);
    let status = until_status(&namespace, "lent", |status| status["replicasBefore"].is_null());
    assert!(status["scheduledReplicas"].is_null(), "{status}");
    assert_eq!(notes(&namespace, "lent", "ReplicasReverted"), [""; 0]);
    scale(&namespace, "deployment/web", 7);
    namespace.until("tdset/lent", "{.status.replicas}", "7");
    counts.until(&[5, 4, 8, 4, 7]);
}
