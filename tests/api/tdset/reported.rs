//! What is reported of TDSets beside their status.

use kit::bed::Bed;
use kit::objects::{Ask, http_get, path_of};
use kit::operator::Fate;
use kit::wait::eventually;
use serde_json::json;

use super::refusals::Refusal;
use super::{notes, patch, tdset};
use crate::Test;
use crate::site::{Site, problems};

pub const TESTS: &[Test] =
    &kit::tests![a_status_that_is_refused_is_an_event, conditions_of_another_client_stay];

/// Those on sites.
pub const ON_CLOCKS: &[Test] =
    &kit::tests![actions_are_counted, what_a_refused_status_tells_of_is_an_event_once];

fn actions_are_counted(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let operator = site.start(Fate::Lives);
    namespace.create(&tdset("counted", &json!({})));
    namespace.until("tdset/counted", "{.status.observedGeneration}", "1");
    // How often, in this namespace alone.
    let counted = |action: &str| {
        let line =
            format!("gatehouse_actions_total{{controller=\"tdset\",action=\"{action}\",result=\"done\"}} ");
        let page = operator.page();
        page.lines().find_map(|one| one.strip_prefix(&line)?.parse::<u64>().ok()).unwrap_or_default()
    };
    let (made, written) = ("tdset.make-deployment", "tdset.write-count");
    assert!(counted(made) > 0 && counted(written) == 0);
    patch(&namespace, "counted", &json!({"defaultReplicas": 2}));
    namespace.until("tdset/counted", "{.status.observedGeneration}", "2");
    assert!(counted(written) > 0);
}

/// A status that cannot be written says nothing: an event does, once, and a series while it is so.
fn a_status_that_is_refused_is_an_event(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&tdset("held", &json!({})));
    namespace.until("tdset/held", "{.status.observedGeneration}", "1");
    let status = format!("{}/held/status?dryRun=All", path_of("tdsets", &namespace.name));
    let refusal = Refusal::by_policy(&namespace, "gatehouse.dev", "tdsets/status", "false")
        .until_refused(422, || Ask::patch(&*status, json!({"status": {"replicas": 4}})));
    patch(&namespace, "held", &json!({"defaultReplicas": 3}));
    eventually(|| match notes(&namespace, "held", "StatusUpdateFailed").as_slice() {
        [] => Err("no event".to_owned()),
        told => {
            assert!(told[0].contains("Invalid (422)"), "{told:?}");
            Ok(())
        }
    });
    let shown = || bed.gate(|gate| problems(&http_get(gate.health, "/metrics"), &namespace.name));
    let refused = ("TDSet".to_owned(), "held".to_owned(), "StatusUpdateFailed".to_owned());
    eventually(|| if shown() == [refused.clone()].into() { Ok(()) } else { Err(format!("{:?}", shown())) });
    refusal.lift();
    namespace.until("tdset/held", "{.status.observedGeneration}", "2");
    assert_eq!(notes(&namespace, "held", "StatusUpdateFailed").len(), 1, "it is reported once");
    eventually(|| if shown().is_empty() { Ok(()) } else { Err(format!("{:?}", shown())) });
}

/// However often the status is tried again, what it tells of has happened once.
fn what_a_refused_status_tells_of_is_an_event_once(bed: &Bed) {
    let namespace = bed.namespace();
    let site = Site::new(&namespace);
    let _operator = site.start(Fate::Lives);
    namespace.create(&tdset("retold", &json!({})));
    namespace.until("tdset/retold", "{.status.observedGeneration}", "1");
    let status = format!("{}/retold/status?dryRun=All", path_of("tdsets", &namespace.name));
    let refusal = Refusal::by_policy(&namespace, "gatehouse.dev", "tdsets/status", "false")
        .until_refused(422, || Ask::patch(&*status, json!({"status": {"replicas": 4}})));
    patch(&namespace, "retold", &json!({"defaultReplicas": 3}));
    super::until_notes(&namespace, "retold", "StatusUpdateFailed", 1);
    let tried = || site.asked().iter().filter(|line| line.contains("/tdsets/retold/status")).count();
    for round in 0..3 {
        let (before, annotations) = (tried(), json!({"gatehouse.dev/round": round.to_string()}));
        namespace.change("tdset/retold", &json!({"metadata": {"annotations": annotations}}));
        eventually(|| if tried() > before { Ok(()) } else { Err("the status was not tried again") });
    }
    refusal.lift();
    namespace.until("tdset/retold", "{.status.observedGeneration}", "2");
    super::until_notes(&namespace, "retold", "ReplicasScheduled", 1);
    let events = format!("/apis/events.k8s.io/v1/namespaces/{}/events", namespace.name);
    let events = bed.objects.at(&events);
    let told: Vec<_> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["reason"] == "ReplicasScheduled")
        .collect();
    assert!(told.len() == 1 && told[0]["series"].is_null(), "{told:#?}");
}

/// Changes of a spec while another client writes its condition.
const EDITS: usize = 30;

/// Another client has a condition in the status, and writes it again and again: also between the operator's look at the
/// status and its write.
fn conditions_of_another_client_stay(bed: &Bed) {
    let namespace = bed.namespace();
    namespace.create(&tdset("audited", &json!({})));
    namespace.until("tdset/audited", "{.status.observedGeneration}", "1");
    let status = format!("{}/audited/status", path_of("tdsets", &namespace.name));
    let mut written = 0;
    // The next number, into the object as it is. It has the last one.
    let mut write = || loop {
        let object = bed.objects.at(&status);
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let known = conditions.iter().position(|one| one["type"] == "Audited");
        let number = known.map_or("0", |known| conditions[known]["message"].as_str().unwrap_or_default());
        assert_eq!(number, written.to_string(), "what was written last: {object}");
        let condition = json!({"type": "Audited", "status": "True", "reason": "Counted",
            "message": (written + 1).to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z"});
        match known {
            Some(known) => conditions[known] = condition,
            None => conditions.push(condition),
        }
        let version = &object["metadata"]["resourceVersion"];
        let body = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}});
        match bed.objects.one(Ask::patch(&*status, body)) {
            Ok(object) => {
                written += 1;
                return object;
            }
            Err(refusal) => assert_eq!(refusal.code, 409, "{}", refusal.message),
        }
    };
    for edit in 0..EDITS {
        patch(&namespace, "audited", &json!({"defaultReplicas": edit % 3 + 2}));
        let generation = namespace.get("tdset", "audited")["metadata"]["generation"].clone();
        while write()["status"]["observedGeneration"] != generation {}
    }
    write();
}
