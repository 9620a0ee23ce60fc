//! A migration for which an API server has little time: API priority and fairness gives its user a few seats, and answers
//! what finds none with 429.

use kit::bed::Bed;
use kit::objects::{Ask, Objects};
use kit::wait::eventually;
use serde_json::{Value, json};

use super::terminal::{Terminal, bars};
use super::users;
use super::widgets::Widgets;

const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

/// The user, the flow and the level, and what objects of them are called.
const NAME: &str = "throttled";

/// A level of one share: with the shares of the other levels, three seats of 600. Nothing waits there.
struct Level<'a> {
    bed: &'a Bed,
    places: [String; 2],
}

impl<'a> Level<'a> {
    /// Has that ServiceAccount be in a level of its own.
    fn of(bed: &'a Bed, (namespace, name): (&str, &str)) -> Self {
        let resources = ["flowschemas", "prioritylevelconfigurations"];
        let collections = resources.map(|resource| format!("{FLOW_CONTROL}/{resource}"));
        let level = Self { bed, places: collections.each_ref().map(|place| format!("{place}/{NAME}")) };
        let about = |kind: &str, spec: Value| {
            json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind, "metadata": {"name": NAME},
                "spec": spec})
        };
        let limited = json!({"nominalConcurrencyShares": 1, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"}});
        let spec = json!({"type": "Limited", "limited": limited});
        bed.objects.must(Ask::post(&*collections[1], about("PriorityLevelConfiguration", spec)));
        let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true,
            "namespaces": ["*"]});
        let subject =
            json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}});
        let spec = json!({"matchingPrecedence": 100, "priorityLevelConfiguration": {"name": NAME},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [subject], "resourceRules": [everything]}]});
        bed.objects.must(Ask::post(&*collections[0], about("FlowSchema", spec)));
        level
    }

    /// How many requests in this level the API server counts in that way.
    fn counted(&self, what: &str) -> u64 {
        let page = self.bed.objects.texts(vec!["/metrics".to_owned()]).remove(0);
        let of_level = format!("priority_level=\"{NAME}\"");
        let series = page.lines().filter(|line| line.starts_with(what) && line.contains(&of_level));
        let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum()
    }
}

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.bed.objects.discard(self.places.to_vec());
    }
}

pub fn an_api_server_that_has_no_time_is_asked_for_less(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, NAME, true);
    widgets.make(100);
    widgets.store_as_v1();
    let account = ("default", NAME);
    let kubeconfig = users::migrator(&widgets, account);
    let level = Level::of(bed, account);
    let user = Objects::new(&kubeconfig);
    let list = format!("/apis/{}/v1/widgets?limit=1", widgets.group);
    eventually(|| {
        user.read(&list)?;
        if level.counted("apiserver_flowcontrol_dispatched_requests_total") > 0 {
            Ok(())
        } else {
            Err("the user is not in the level".to_owned())
        }
    });
    let refused = || level.counted("apiserver_flowcontrol_rejected_requests_total");
    assert_eq!(refused(), 0, "one request at a time has a seat");

    let words = ["migrate", &widgets.name, "--to", "v1", "--grace", "0s", "--chunk-size", "50"];
    let (code, text) = Terminal::start(&kubeconfig, &words).end();
    assert_eq!(code, Some(0), "{text:?}");
    let refused = refused();
    assert_ne!(refused, 0, "as many at a time as without a limit: {text:?}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.stored_versions()), (0, json!(["v1"])));
    assert!(text.contains("pass 1: 101 objects: 100 rewritten, 1 stored as wanted; "), "{text:?}");
    // It begins with eight, and does not try for long what there are no seats for.
    let paces = bars(&text).into_iter().filter_map(|bar| bar.strip_suffix(" at a time")?.rsplit(' ').next());
    let paces: Vec<u32> = paces.filter_map(|pace| pace.parse().ok()).collect();
    println!("{refused} requests were refused, and so many were under way at a time: {paces:?}");
    assert!(paces.iter().any(|pace| *pace <= 4), "half of what it began with: {paces:?}");
}
