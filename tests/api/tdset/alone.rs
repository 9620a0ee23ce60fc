//! An operator that works alone, on a clock that jumps: what is settled is left alone, and a death over two boundaries
//! is made good.

use std::time::Duration;

use gatehouse::runtime::clock;
use kit::bed::{Bed, Namespace};
use kit::objects::Ask;
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::{Value, json};

use super::autoscalers::autoscaler;
use super::targets::{define, grant, left_with};
use super::watched::Counts;
use super::{TDSETS, delete, for_workload, foreign, label, notes, patch, tdset, until_condition, workload};
use crate::Test;
use crate::site::{Site, until_transitions};

/// Least time between two calls for numbers.
const PAUSE: Duration = Duration::from_millis(2_500);

/// When a reconciliation comes again that has put its status off.
const AGAIN: Duration = Duration::from_secs(1);

pub const TESTS: &[Test] = &kit::tests![
    what_is_settled_is_left_alone_for_good,
    what_is_made_first_is_not_asked_for_before,
    no_count_is_written_before_the_finalizer,
    pods_that_come_are_read_at_a_pace,
    a_kind_is_watched_while_it_is_referred_to,
    after_a_death_over_two_boundaries_it_writes_once,
];

/// What is not there is made at once. What is there is read, and left as it is, also where it has all that would be asked
/// of it.
fn what_is_made_first_is_not_asked_for_before(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    let mut object = tdset("first", &json!({}));
    object["spec"]["target"]["create"]["servicePort"] = json!(80);
    namespace.create(&object);
    until_condition(&namespace, "first", "Progressing", "True", "PodsNotReady");
    let made = namespace.get("deployment", "first");
    let spec: Value = serde_json::from_str(&made["spec"].to_string().replace("first", "twin")).unwrap();
    namespace.create(
        &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "twin"}, "spec": spec}),
    );
    let before = namespace.get("deployment", "twin");
    namespace.create(&tdset("twin", &json!({})));
    until_condition(&namespace, "twin", "Conflict", "True", "NameTaken");
    let after = namespace.get("deployment", "twin");
    assert_eq!(
        (&after["metadata"]["labels"], &after["spec"]),
        (&before["metadata"]["labels"], &before["spec"])
    );
    assert!(after["metadata"].get("ownerReferences").is_none(), "{after}");
    // Its status is written once it was read, and the log has what was asked before.
    let asked = site.asked();
    let here = |root: &str, kind: &str| format!("{root}/namespaces/{}/{kind}", namespace.name);
    let [deployments, services] = [here("/apis/apps/v1", "deployments"), here("/api/v1", "services")];
    let verbs = |kind: &str, name: &str| {
        let calls = asked.iter().filter_map(|asked| asked.split('?').next()?.split_once(' '));
        let path = format!("{kind}/{name}");
        calls.filter(|(_, called)| *called == path).map(|(verb, _)| verb).collect::<Vec<_>>()
    };
    for (kind, name) in [(&deployments, "first"), (&services, "first"), (&deployments, "twin")] {
        let verbs = verbs(kind, name);
        assert_eq!(verbs.first(), Some(&"patch"), "{kind}/{name}: {asked:?}");
        assert!(verbs[1..].iter().all(|verb| *verb == "get"), "{kind}/{name}: {verbs:?}");
    }
    assert!(verbs(&deployments, "twin").len() > 1, "{asked:?}");
}

/// Looks at each of these that nothing but time asks for, several times, and what was asked for in them. `minutes` is
/// what the clock shows.
fn look_at(site: &Site, names: &[&str], minutes: &mut i64) -> Vec<String> {
    let before = site.asked().len();
    for _ in 0..3 {
        let looks = site.looks();
        // The next look is ten minutes after the last one.
        *minutes += 11;
        site.jump(*minutes);
        looks.until_over(names);
    }
    site.asked().split_off(before)
}

/// Waits until such looks ask for nothing: what watches have not told yet is read. None of them writes, but that the
/// audit log may tell in the first of what was written before it.
#[track_caller]
fn until_rest(site: &Site, names: &[&str], minutes: &mut i64) {
    let mut is_first = true;
    eventually(|| {
        let asked = look_at(site, names, minutes);
        let writes: Vec<_> = asked.iter().filter(|asked| is_write(asked)).collect();
        assert!(is_first || writes.is_empty(), "written because of the time: {writes:?}");
        is_first = false;
        if asked.is_empty() { Ok(()) } else { Err(format!("asked for: {asked:?}")) }
    });
}

fn is_write(asked: &str) -> bool {
    !["get ", "list ", "watch "].iter().any(|verb| asked.starts_with(verb))
}

/// Neither looks that nothing but time asks for, nor what wakes the operator and changes nothing, cost a call; and an
/// operator that knows nothing of the one before writes nothing either.
fn what_is_settled_is_left_alone_for_good(bed: &Bed) {
    const NAMES: [&str; 4] = ["made", "by-dates", "hours", "bounds"];
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::Lives);
    make_all_kinds(&namespace);
    // What stays unchanged after that: there is neither a scheduler nor a node.
    until_condition(&namespace, "made", "Progressing", "True", "PodsNotReady");
    until_condition(&namespace, "by-dates", "Progressing", "False", "UpToDate");
    until_condition(&namespace, "hours", "Ready", "True", "AsScheduled");
    until_condition(&namespace, "bounds", "Ready", "True", "AsScheduled");
    // The autoscaler's controller looks every 15 seconds.
    namespace.until("tdset/bounds", "{.status.replicas}", "2");
    namespace.until_created("service/made");

    // Each status says all that there is to say: who writes it once more has no reason to.
    let written = || {
        let version = |name: &str| namespace.get(TDSETS, name)["metadata"]["resourceVersion"].clone();
        NAMES.map(version)
    };
    let before = written();
    let mut minutes = 0;
    until_rest(&site, &NAMES, &mut minutes);
    assert_eq!(written(), before, "of what has come to rest");
    assert_eq!(look_at(&site, &NAMES, &mut minutes), [""; 0], "asked for because of the time");

    let (so_far, looks) = (site.asked().len(), site.looks());
    label(&namespace, "hpa/bound", "red");
    label(&namespace, "deployment/made", "red");
    looks.until_over(&["made"]);
    look_at(&site, &NAMES, &mut minutes);
    assert_eq!(site.asked()[so_far..], [""; 0], "asked for because of labels");

    drop(operator);
    let (so_far, looks) = (site.asked().len(), site.looks());
    let _operator = site.start(Fate::Lives);
    looks.until_over(&NAMES);
    until_rest(&site, &NAMES, &mut minutes);
    let writes: Vec<_> = site.asked().split_off(so_far).into_iter().filter(|asked| is_write(asked)).collect();
    assert_eq!(writes, [""; 0], "of an operator that begins");
    assert_eq!(look_at(&site, &NAMES, &mut minutes), [""; 0], "asked for by another operator");
    assert_eq!(written(), before);

    // Nothing but its own wake has it look at a boundary.
    let rush = site.span("rush", minutes + 5, minutes + 60, 3);
    patch(&namespace, "made", &json!({"exceptions": [rush]}));
    namespace.until("tdset/made", "{.status.nextTransition.replicas}", "3");
    site.jump(minutes + 5);
    namespace.until("deployment/made", "{.spec.replicas}", "3");
}

/// A TDSet that makes its workload, one with dates from elsewhere, one for a workload that is there, and one with an
/// autoscaler.
fn make_all_kinds(namespace: &Namespace) {
    for name in ["web", "bound"] {
        foreign(namespace, name, 1);
    }
    autoscaler(namespace, "bound", "bound", 1, 9);
    let dates = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dates"}, "data": {"all": "2001-01-01"}});
    let from = json!({"configMapKeyRef": {"name": "dates", "key": "all"}});
    let by_dates =
        json!({"defaultReplicas": 0, "exceptions": [{"name": "holidays", "datesFrom": from, "replicas": 1}]});
    let create = json!({"image": "registry.k8s.io/pause:3.10", "port": 8080, "servicePort": 80});
    let kept = json!({"manualScalePolicy": "KeepUntilNextTransition"});
    let bounded = json!({"autoscaler": {"name": "bound"}});
    for object in [
        dates,
        tdset("made", &json!({"target": {"create": create}})),
        tdset("by-dates", &by_dates),
        for_workload("hours", "apps/v1", "Deployment", "web", &kept),
        for_workload("bounds", "apps/v1", "Deployment", "bound", &bounded),
    ] {
        namespace.create(&object);
    }
}

fn after_a_death_over_two_boundaries_it_writes_once(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::Lives);
    let counts = Counts::of(&namespace, "deployments", "shop");
    let missed = json!([site.span("first", 60, 75, 4), site.span("second", 75, 120, 7)]);
    let fields = json!({"resyncMinutes": 1440, "exceptions": missed});
    namespace.create(&tdset("shop", &fields));
    counts.until(&[1]);
    namespace.until("tdset/shop", "{.status.upcoming[1].replicas}", "7");
    let before = namespace.get("deployment", "shop");
    drop(operator);
    site.jump(90);

    let operator = site.start(Fate::Lives);
    counts.until(&[1, 7]);
    namespace.until("tdset/shop", "{.status.lastTransition.to.replicas}", "7");
    let after = namespace.get("deployment", "shop");
    let generation = |object: &Value| object["metadata"]["generation"].as_u64().expect("a number");
    assert_eq!(generation(&after), generation(&before) + 1, "written once");
    let last = namespace.get(TDSETS, "shop")["status"]["lastTransition"].clone();
    assert_eq!((&last["from"]["replicas"], &last["to"]["window"]), (&json!(1), &json!("exception/second")));
    assert_eq!(last["time"], site.at(75).to_string());
    let lateness = last["latenessMs"].as_u64().expect("a number");
    // The status is written after the event.
    let noted = notes(&namespace, "shop", "ReplicasScheduled");
    assert_eq!(noted, [format!("replicas 1 → 7: exception second, {lateness} ms late")]);
    until_transitions(&operator, 1);
}

/// A TDSet that is deleted at any moment is held until the count is given back.
fn no_count_is_written_before_the_finalizer(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    foreign(&namespace, "web", 5);
    namespace.create(&left_with("web", 6));
    let _operator = site.start(Fate::Lives);
    namespace.until("deployment/web", "{.spec.replicas}", "2");
    let writes = eventually(|| {
        let is_of_both =
            |asked: &String| asked.contains("/tdsets/hours") || asked.contains("/deployments/web");
        let asked: Vec<_> = site.asked().into_iter().filter(|asked| asked.starts_with("patch ")).collect();
        let writes: Vec<_> = asked.into_iter().filter(is_of_both).take(2).collect();
        if writes.len() == 2 { Ok(writes) } else { Err(format!("{writes:?}")) }
    });
    let [first, second] = writes.as_slice() else { unreachable!("there are two") };
    assert!(first.contains("/tdsets/hours?"), "{writes:?}");
    assert!(second.contains("/deployments/web/scale?"), "{writes:?}");
}

/// A workload whose pods come one after another has a new status each time, and no other count.
fn pods_that_come_are_read_at_a_pace(bed: &Bed) {
    const GROUP: &str = "paced.example.com";
    let namespace = bed.namespace();
    define(bed, GROUP, true);
    grant(bed, GROUP, &namespace.name);
    let api_version = format!("{GROUP}/v1");
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    let metadata = json!({"name": "one"});
    namespace.create(
        &json!({"apiVersion": api_version, "kind": "Widget", "metadata": metadata, "spec": {"size": 2}}),
    );
    namespace.create(&for_workload("hours", &api_version, "Widget", "one", &json!({})));
    namespace.until("tdset/hours", "{.status.replicas}", "0");
    let reads = || {
        let asked = site.asked();
        asked
            .iter()
            .filter(|asked| asked.starts_with("get ") && asked.ends_with("/widgets/one/scale"))
            .count()
    };
    let status = format!("/apis/{api_version}/namespaces/{}/widgets/one/status", namespace.name);
    let (before, begun) = (reads(), clock::instant());
    for pods in 1..=200 {
        bed.objects.must(Ask::patch(&*status, json!({"status": {"size": pods}})));
    }
    namespace.until("tdset/hours", "{.status.replicas}", "200");
    let elapsed = begun.elapsed();
    let reads = reads() - before;
    // A reconciliation reads the scale once at most. It is called for numbers once in a pause, and comes again after a second
    // if it has put its status off. One read is under way at each end, and the audit log may lack one from before.
    let times = |between: Duration| usize::try_from(elapsed.as_nanos() / between.as_nanos()).unwrap();
    let most = 3 + times(PAUSE) + times(AGAIN);
    println!("the scale was read {reads} times in {elapsed:?}, at most {most}");
    assert!(reads <= most, "{reads} reads in {elapsed:?}, at most {most}");
}

fn a_kind_is_watched_while_it_is_referred_to(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    // What is made is watched all the time, by its label.
    let until_unwatched = |plural: &str| {
        let is_it = |path: &String| path.contains(plural) && !path.contains("labelSelector");
        eventually(|| {
            let ended = site.unwatched();
            if ended.iter().any(is_it) { Ok(()) } else { Err(format!("{ended:?}")) }
        });
    };
    namespace.create(&workload("StatefulSet", "web", 1));
    foreign(&namespace, "web", 1);
    for name in ["hours", "more"] {
        namespace.create(&for_workload(name, "apps/v1", "StatefulSet", "web", &json!({})));
        namespace.until(&format!("tdset/{name}"), "{.status.scheduledReplicas}", "2");
    }
    namespace.until("statefulset/web", "{.spec.replicas}", "2");
    delete(&namespace, "hours");
    namespace.create(&for_workload("other", "apps/v1", "Deployment", "web", &json!({})));
    namespace.until("deployment/web", "{.spec.replicas}", "2");
    // The other one refers to it still.
    patch(&namespace, "more", &json!({"defaultReplicas": 3}));
    namespace.until("statefulset/web", "{.spec.replicas}", "3");
    assert!(!site.unwatched().iter().any(|path| path.contains("statefulsets")), "{:?}", site.unwatched());
    delete(&namespace, "more");
    until_unwatched("statefulsets");
    delete(&namespace, "other");
    until_unwatched("deployments");
    // And it is watched again with the next one.
    namespace.create(&for_workload("again", "apps/v1", "StatefulSet", "web", &json!({})));
    namespace.until("statefulset/web", "{.spec.replicas}", "2");
    super::scale(&namespace, "statefulset/web", 5);
    namespace.until("statefulset/web", "{.spec.replicas}", "2");
}
