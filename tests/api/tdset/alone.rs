//! What takes a control plane of its own: rest, a death over two boundaries, and a boundary that a thousand share.

use std::fs;
use std::time::{Duration, Instant};

use gatehouse::runtime::clock;
use jiff::Timestamp;
use serde_json::{Value, json};
use testbed::Options;

use super::{TDSETS, for_workload, foreign, notes, object, span, tdset};
use crate::Alone;
use crate::direct::{Call, Direct, http_get, of};
use crate::support::{Bed, Gate, eventually};

pub const TESTS: &[Alone] = &[
    ("between_boundaries_nothing_is_asked_for", between_boundaries_nothing_is_asked_for),
    ("after_a_death_over_two_boundaries_it_writes_once", after_a_death_over_two_boundaries_it_writes_once),
    ("a_thousand_share_a_boundary", a_thousand_share_a_boundary),
];

/// How long nothing may be asked for until that counts as rest, in seconds.
const REST: u32 = 8;

fn begin(options: Options, gate: fn(&testbed::ControlPlane) -> Result<Gate, String>) -> (Bed, Direct) {
    let bed = Bed::start(&Options { controller_manager: false, ..options }, gate);
    let bed = bed.unwrap_or_else(|error| panic!("{error}"));
    let direct = Direct::new(bed.cluster.kubeconfig());
    (bed, direct)
}

/// What gatehouse asked of the API server so far, the renewal of its lease left out.
fn asked(bed: &Bed) -> Vec<String> {
    let path = bed.cluster.audit_log().expect("it is kept");
    let log = fs::read_to_string(path).unwrap_or_default();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let asked = lines.map(|line| format!("{} {}", line["verb"], line["requestURI"]));
    asked.filter(|line| !line.contains("/leases/")).collect()
}

/// Waits until nothing is asked for during some time.
fn until_rest(bed: &Bed, direct: &Direct) {
    let nothing = "/api/v1/namespaces/default/secrets";
    eventually(|| {
        let before = asked(bed).len();
        // A watch is what ends after a given time.
        direct.texts(vec![format!("{nothing}?watch=true&timeoutSeconds={REST}")]);
        let since = asked(bed).split_off(before);
        if since.is_empty() { Ok(()) } else { Err(format!("{since:?}")) }
    });
}

fn metric(bed: &Bed, name: &str) -> u64 {
    let page = bed.gate(|gate| http_get(gate.health, "/metrics"));
    let values = page.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
    values.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

fn between_boundaries_nothing_is_asked_for() {
    let (bed, direct) =
        begin(Options { audit: true, ..Options::from_env().expect("sound options") }, Gate::install);
    let namespace = bed.namespace();
    for name in ["web", "scaled"] {
        foreign(&namespace, name, 1);
    }
    let dates = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dates"}, "data": {"all": "2001-01-01"}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"});
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaled"}, "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9}});
    let from = json!({"configMapKeyRef": {"name": "dates", "key": "all"}});
    let by_dates = json!({"exceptions": [{"name": "holidays", "datesFrom": from, "replicas": 0}]});
    let kept = json!({"manualScale": "KeepUntilNextTransition"});
    let bounded = json!({"autoscaler": {"hpaRef": "scaled"}});
    for manifest in [
        dates.to_string(),
        autoscaler.to_string(),
        tdset("made", &by_dates),
        for_workload("hours", "apps/v1", "Deployment", "web", &kept),
        for_workload("bounds", "apps/v1", "Deployment", "scaled", &bounded),
    ] {
        namespace.kubectl(&["create"]).input(manifest).ok();
    }
    namespace.until_created("deployment/made");
    namespace.until("deployment/web", "{.spec.replicas}", "2");
    namespace.until("hpa/scaled", "{.spec.minReplicas}", "2");
    until_rest(&bed, &direct);

    // What wakes the operator and changes nothing costs no call either.
    let version = |name: &str| namespace.get(TDSETS, name)["metadata"]["resourceVersion"].clone();
    let versions = || ["made", "hours", "bounds"].map(version);
    let before = (asked(&bed), metric(&bed, "controller_runtime_reconcile_total"), versions());
    namespace.kubectl(&["label", "deployment/made", "hpa/scaled", "colour=red"]).ok();
    eventually(|| {
        let passes = metric(&bed, "controller_runtime_reconcile_total");
        if passes > before.1 { Ok(()) } else { Err("no pass".to_owned()) }
    });
    until_rest(&bed, &direct);
    let after = asked(&bed);
    assert_eq!(after[before.0.len()..], [""; 0], "asked for");
    assert_eq!(versions(), before.2);
}

fn after_a_death_over_two_boundaries_it_writes_once() {
    let install = |cluster: &testbed::ControlPlane| Gate::install_with(cluster, &["--lease-duration", "3s"]);
    let (bed, _) = begin(Options::from_env().expect("sound options"), install);
    let namespace = bed.namespace();
    namespace.kubectl(&["create"]).input(tdset("shop", &json!({"resyncMinutes": 1440}))).ok();
    namespace.until_created("deployment/shop");
    let missed = json!([span("first", 15, 17, 4), span("second", 17, 7200, 7)]);
    let patch = json!({"spec": {"exceptions": missed}}).to_string();
    namespace.kubectl(&["patch", "tdset", "shop", "--type=merge", "--patch", &patch]).ok();
    let due: Timestamp = missed[1]["between"]["start"].as_str().expect("text").parse().expect("a time");
    namespace.until("tdset/shop", "{.status.upcoming[1].replicas}", "7");
    let before = namespace.get("deployment", "shop");
    bed.set_gate(None);
    assert_eq!(before["spec"]["replicas"], 1, "it died before: {before}");
    eventually(|| if clock::now() > due { Ok(()) } else { Err(format!("it is not yet {due}")) });
    assert_eq!(
        namespace.get("deployment", "shop")["metadata"]["generation"],
        before["metadata"]["generation"]
    );

    bed.set_gate(Some(install(&bed.cluster).unwrap_or_else(|error| panic!("{error}"))));
    namespace.until("deployment/shop", "{.spec.replicas}", "7");
    namespace.until("tdset/shop", "{.status.lastTransition.to.replicas}", "7");
    let after = namespace.get("deployment", "shop");
    let generation = |object: &Value| object["metadata"]["generation"].as_u64().expect("a number");
    assert_eq!(generation(&after), generation(&before) + 1, "written once");
    let last = namespace.get(TDSETS, "shop")["status"]["lastTransition"].clone();
    assert_eq!((&last["from"]["replicas"], &last["to"]["window"]), (&json!(1), &json!("exception/second")));
    assert_eq!(last["time"].as_str().expect("a time").parse::<Timestamp>().expect("a time"), due);
    let lateness = last["latenessMs"].as_u64().expect("a number");
    let noted = eventually(|| {
        let notes = notes(&namespace, "shop", "Scaled");
        if notes.is_empty() { Err("no event".to_owned()) } else { Ok(notes) }
    });
    assert_eq!(noted, [format!("replicas 1 → 7: exception second, {lateness} ms late")]);
    assert_eq!(metric(&bed, "gatehouse_tdset_transitions_total"), 1);
}

fn a_thousand_share_a_boundary() {
    const COUNT: usize = 1_000;
    /// Time to make them all before.
    const LEAD: u64 = 180;
    /// This is about all of them being written; how fast a release does that, a benchmark tells.
    const LONGEST: Duration = Duration::from_mins(5);
    let (bed, direct) = begin(Options::from_env().expect("sound options"), Gate::install);
    let rush = span("rush", LEAD, LEAD + 7200, 4);
    let due: Timestamp = rush["between"]["start"].as_str().expect("text").parse().expect("a time");
    let path = of("v1", "default", "tdsets");
    let calls = (0..COUNT).map(|at| {
        let body = object(&format!("shop-{at:04}"), &json!({"exceptions": [rush]}));
        Call { method: "POST", path: path.clone(), body }
    });
    let begun = Instant::now();
    for outcome in direct.all(calls.collect()) {
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.message));
    }
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let with = |path: &str, is_so: &dyn Fn(&Value) -> bool| {
        let items =
            direct.get(path)["items"].as_array().expect("a list").iter().filter(|one| is_so(one)).count();
        if items == COUNT { Ok(()) } else { Err(format!("{items} of {COUNT}")) }
    };
    println!("{COUNT} were created after {:.1?}", begun.elapsed());
    while let Err(made) = with(&path, &|tdset| tdset["status"]["replicas"] == 0) {
        assert!(clock::now() < due, "the machine is too slow: within {LEAD} s {made} are told of");
        std::thread::park_timeout(Duration::from_millis(500));
    }
    println!("{COUNT} were made and told of after {:.1?}", begun.elapsed());

    while clock::now() < due {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let begun = Instant::now();
    let until_all = |path: &str, is_so: &dyn Fn(&Value) -> bool| {
        while let Err(so_far) = with(path, is_so) {
            assert!(begun.elapsed() < LONGEST, "not within {LONGEST:?}: {so_far}");
            std::thread::park_timeout(Duration::from_millis(200));
        }
    };
    until_all(deployments, &|found| found["spec"]["replicas"] == 4);
    let took = begun.elapsed();
    until_all(&path, &|tdset| tdset["status"]["lastTransition"]["to"]["replicas"] == 4);
    let list = direct.get(&path);
    let late = |tdset: &Value| tdset["status"]["lastTransition"]["latenessMs"].as_u64().expect("a number");
    let mut late: Vec<_> = list["items"].as_array().expect("a list").iter().map(late).collect();
    late.sort_unstable();
    println!(
        "{COUNT} counts written within {took:.1?} of their boundary as a list of all shows; \
         half of them within {} ms, the last one after {} ms",
        late[COUNT / 2],
        late[COUNT - 1]
    );
    with(deployments, &|found| found["metadata"]["generation"] == 2).expect("each is written once");
    assert_eq!(metric(&bed, "gatehouse_tdset_transitions_total"), COUNT as u64);
}
