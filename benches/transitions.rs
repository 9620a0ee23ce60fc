//! How fast a common boundary is carried out, and what that costs: many TDSets, one moment, on a real API server.
//!
//! ```text
//! make bench                              # 10,000 TDSets, each of which makes a Deployment
//! make bench COUNT=1000 VARIANT=ref       # for Deployments that are there
//! make bench VARIANT=autoscaler           # for HorizontalPodAutoscalers that are there
//! make bench VARIANT=dates                # all take their holidays from one ConfigMap
//! make bench VARIANT=mixed CONTROLLERS=1  # a third of each of the first three, with the controllers of Kubernetes
//! GATEHOUSE_PROGRAM=other make bench      # of another build, to compare with on the same machine
//! ```
//!
//! It reports:
//!
//! - of the boundary: when the first, the middle and the last count was written, counted from it, and when the last status
//!   told of it;
//! - of each part (objects are made, are moved, and met by an operator that begins): processor time and memory of the
//!   operator, its reconciliations, and the calls that the API server answered, for each object;
//! - the rate, as a share of what the same API server takes of bare patches of each kind, as many at a time. The share is
//!   what to compare between machines and releases: both meet the same API server, etcd and disk.
//!
//! It asserts no times. There is no controller-manager, so no other client writes, unless `CONTROLLERS=1` asks for one:
//! then what its controllers call is among the calls. The operator is a process of its own, so that reviews are not in
//! what is counted.

#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot begin ends")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use gatehouse::runtime::clock;
use jiff::Timestamp;
use kit::bed::Bed;
use kit::objects::http_get;
use kit::process::{peak, usage};
use kit::program::Program;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use testbed::Options;

/// Calls in flight at a time, as many as the operator's passes.
const AT_A_TIME: usize = 32;
/// What an object's creation may take on a slow machine, its Deployment's included; the boundary is after that.
const CREATION: Duration = Duration::from_millis(40);
/// How long anything else may take.
const PATIENCE: Duration = Duration::from_mins(10);
/// How much longer both may take beside the controllers of Kubernetes, which make ReplicaSets and pods meanwhile.
const BESIDE_CONTROLLERS: u32 = 4;
/// An operator is at rest that has reconciled nothing for so long: longer than a status waits that differs in numbers.
const REST: Duration = Duration::from_secs(3);
/// The field manager of counts, so that what is applied has an owner as in production.
const MANAGER: &str = "gatehouse-tdset-count";

/// What the TDSets are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Create,
    Reference,
    Autoscaler,
    Dates,
    /// One after the other: it makes its Deployment, it is for one that is there, it is for an autoscaler.
    Mixed,
}

impl Variant {
    fn of(word: &str) -> Self {
        match word {
            "create" => Self::Create,
            "ref" => Self::Reference,
            "autoscaler" => Self::Autoscaler,
            "dates" => Self::Dates,
            "mixed" => Self::Mixed,
            _ => panic!("{word}: expected create, ref, autoscaler, dates or mixed"),
        }
    }

    /// What the TDSet of that number is for.
    fn of_number(self, number: u32) -> Self {
        match self {
            Self::Mixed => [Self::Create, Self::Reference, Self::Autoscaler][number as usize % 3],
            other => other,
        }
    }

    /// The objects that have the counts, and the field. Of mixed ones, those that are no autoscalers.
    fn counted(self, client: &Client) -> (Api<DynamicObject>, &'static str) {
        match self {
            Self::Autoscaler => {
                let kind = ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
                (api(client, kind), "minReplicas")
            }
            _ => (api(client, ("apps", "v1", "Deployment", "deployments")), "replicas"),
        }
    }
}

fn main() {
    // cargo itself says `--bench`.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let count = words.first().map_or(10_000, |word| word.parse().expect("a count of TDSets"));
    let variant = words.get(1).map_or(Variant::Create, |word| Variant::of(word));
    let controllers = std::env::var("CONTROLLERS").is_ok_and(|word| word == "1");
    let options = Options { controller_manager: controllers, ..Options::from_env().expect("sound options") };
    let program =
        std::env::var_os("GATEHOUSE_PROGRAM").map_or_else(|| kit::gatehouse!().into(), PathBuf::from);
    let bed = Bed::with_gate(&options, &program, &["--only", "gate"]);
    let bed = bed.unwrap_or_else(|error| panic!("{error}"));
    let slower = if controllers { BESIDE_CONTROLLERS } else { 1 };
    let post = Post { bed: &bed, kubeconfig: bed.kubeconfig_of("gatehouse"), slower };
    bed.objects.with(async |client| measure(&post, &client, count, variant).await);
}

async fn measure(post: &Post<'_>, client: &Client, count: u32, variant: Variant) {
    let operator = Operator::start(post);
    tell(&format!("operator without an object: {}", memory(&operator)));
    let boundary = clock::now() + (Duration::from_secs(20) + CREATION * count) * post.slower;
    let boundary = Timestamp::from_second(boundary.as_second()).expect("a time");
    let patience = PATIENCE * post.slower;
    let (counted, field) = variant.counted(client);
    let tdsets = api(client, ("gatehouse.dev", "v1", "TDSet", "tdsets"));
    prepare(client, count, variant).await;

    let before = Snapshot::of(client, &operator).await;
    let created = Instant::now();
    all(count, async |number| tdsets.create(&PostParams::default(), &tdset(number, boundary, variant)).await)
        .await;
    tell(&format!("{count} TDSets created through the gate in {:.1?}", created.elapsed()));
    let knows = |object: &DynamicObject| object.data["status"]["nextTransition"]["replicas"] == 4;
    seen(&tdsets, count, patience, knows).await;
    operator.rest().await;
    assert!(clock::now() < boundary, "all are made after the boundary: raise CREATION");
    before.tell(&Snapshot::of(client, &operator).await, "made", count);
    tell(&format!("operator with {count} objects: {}", memory(&operator)));

    let before = Snapshot::of(client, &operator).await;
    let told = seen(&tdsets, count, patience, |object| object.data["status"]["scheduledReplicas"] == 4);
    let (told, written) = futures::join!(told, written(client, count, variant, patience));
    operator.rest().await;
    before.tell(&Snapshot::of(client, &operator).await, "moved", count);
    let after = |moments: &[Timestamp], share: usize| {
        let moment = moments[(moments.len() - 1) * share / 100];
        moment.duration_since(boundary).as_secs_f64()
    };
    tell(&format!(
        "counts written after the boundary: first {:.3} s, half {:.3} s, last {:.3} s",
        after(&written, 0),
        after(&written, 50),
        after(&written, 100)
    ));
    tell(&format!("statuses written: last {:.3} s", after(&told, 100)));
    let ours = f64::from(count) / after(&written, 100);

    operator.stop();
    let before = Snapshot { calls: calls(client).await, ..Snapshot::default() };
    let operator = Operator::start(post);
    operator.rest_after(count).await;
    before.tell(&Snapshot::of(client, &operator).await, "met by an operator that begins", count);
    tell(&format!("operator that begins with {count} objects: {}", memory(&operator)));
    operator.stop();
    tell(&format!("transitions: {ours:.0}/s"));
    compare(&counted, field, count, variant, ours).await;
}

/// A line of the report, as `tools/nightly.sh` writes it down.
fn tell(line: &str) {
    println!("figure: {line}");
}

/// When each count of 4 was written, sorted.
async fn written(client: &Client, count: u32, variant: Variant, patience: Duration) -> Vec<Timestamp> {
    let is_bound = |number: u32| variant.of_number(number) == Variant::Autoscaler;
    let of = async |share: Variant| {
        let (counted, field) = share.counted(client);
        let numbers = (0..count).filter(|number| is_bound(*number) == (share == Variant::Autoscaler));
        let names: BTreeSet<_> = numbers.map(name).collect();
        let number = u32::try_from(names.len()).expect("a count");
        let looks =
            |object: &DynamicObject| object.data["spec"][field] == 4 && names.contains(&object.name_any());
        if names.is_empty() { Vec::new() } else { seen(&counted, number, patience, looks).await }
    };
    let (mut moments, others) = futures::join!(of(Variant::Create), of(Variant::Autoscaler));
    moments.extend(others);
    moments.sort();
    moments
}

/// What the API server takes of bare patches while no operator runs.
async fn compare(counted: &Api<DynamicObject>, field: &str, count: u32, variant: Variant, ours: f64) {
    let rate = |name: &str, took: Duration| {
        let bare = f64::from(count) / took.as_secs_f64();
        tell(&format!("bare {name}: {bare:.0}/s, of which transitions are a share of {:.2}", ours / bare));
    };
    let spec = |count: u32| json!({"spec": {field: count}});
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let begun = Instant::now();
    let patch = Patch::Merge(spec(5));
    all(count, async |number| counted.patch(&name(number), &params, &patch).await).await;
    rate("merge patches", begun.elapsed());

    let (version, kind) = match variant {
        Variant::Autoscaler => ("autoscaling/v2", "HorizontalPodAutoscaler"),
        _ => ("apps/v1", "Deployment"),
    };
    let begun = Instant::now();
    let applied = PatchParams::apply(MANAGER).force();
    all(count, async |number| {
        let mut object = spec(6);
        (object["apiVersion"], object["kind"]) = (version.into(), kind.into());
        object["metadata"] = json!({"name": name(number)});
        counted.patch(&name(number), &applied, &Patch::Apply(object)).await
    })
    .await;
    rate("applies", begun.elapsed());

    if variant != Variant::Autoscaler {
        let begun = Instant::now();
        let patch = Patch::Merge(spec(7));
        all(count, async |number| counted.patch_scale(&name(number), &params, &patch).await).await;
        rate("patches of the scale", begun.elapsed());
    }
}

/// Where an operator works, and as whom.
struct Post<'a> {
    bed: &'a Bed,
    kubeconfig: PathBuf,
    /// How much longer things may take than without the controllers of Kubernetes.
    slower: u32,
}

/// The operator, as a process of its own.
struct Operator {
    program: Program,
    health: SocketAddr,
}

impl Operator {
    /// Starts one, and waits until it works.
    fn start(Post { bed, kubeconfig, .. }: &Post) -> Self {
        let serve = ["serve", "--only", "controllers", "--health-listen", "127.0.0.1:0"];
        let mut command = Program::gatehouse(&bed.program, &serve);
        command.env("KUBECONFIG", kubeconfig).env("GATEHOUSE_LOG", "info");
        let number = clock::now().as_millisecond();
        let log = bed.cluster.folder().join(format!("operator-{number}.log"));
        let program = Program::start(&command, &log).unwrap_or_else(|why| panic!("{why}"));
        let health = program.logs("serving")["health"].as_str().and_then(|text| text.parse().ok());
        program.logs("leading");
        Self { program, health: health.expect("an address") }
    }

    fn stop(self) {
        assert!(self.program.stop(), "it ends well, and releases its lease");
    }

    /// The reconciliations of TDSets so far.
    fn passes(&self) -> u64 {
        let page = http_get(self.health, "/metrics");
        let of_tdsets = page
            .lines()
            .filter(|line| line.starts_with("controller_runtime_reconcile_total{controller=\"tdset\""));
        of_tdsets.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    }

    /// Waits until it has nothing to do.
    async fn rest(&self) {
        self.rest_after(0).await;
    }

    /// Waits until it has had so many reconciliations, and has nothing to do.
    async fn rest_after(&self, least: u32) {
        let (mut passes, mut since) = (self.passes(), Instant::now());
        while passes < least.into() || since.elapsed() < REST {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = self.passes();
            if now != passes {
                (passes, since) = (now, Instant::now());
            }
        }
    }
}

fn memory(operator: &Operator) -> String {
    let id = operator.program.id().pid();
    let (resident, peak) = (usage(id).resident >> 20, peak(id) >> 20);
    format!("{resident} MiB resident, {peak} MiB at most")
}

/// What there was until a moment.
#[derive(Default)]
struct Snapshot {
    cpu: Duration,
    passes: u64,
    /// By verb and resource.
    calls: BTreeMap<String, u64>,
}

impl Snapshot {
    async fn of(client: &Client, operator: &Operator) -> Self {
        let cpu = usage(operator.program.id().pid()).cpu;
        Self { cpu, passes: operator.passes(), calls: calls(client).await }
    }

    /// What came in between.
    fn tell(&self, after: &Self, what: &str, count: u32) {
        let each = |sum: f64| sum / f64::from(count);
        let cpu = each(after.cpu.saturating_sub(self.cpu).as_secs_f64() * 1000.0);
        let number = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let passes = each(number(after.passes - self.passes));
        tell(&format!("an object {what}: {cpu:.2} ms of processor time, {passes:.2} reconciliations"));
        for (call, sum) in &after.calls {
            let calls = each(number(sum - self.calls.get(call).copied().unwrap_or_default()));
            if calls >= 0.01 {
                tell(&format!("an object {what}: {calls:.2} {call}"));
            }
        }
    }
}

/// How many calls the API server has answered so far, of all clients, by verb and resource.
async fn calls(client: &Client) -> BTreeMap<String, u64> {
    let request = hyper::Request::get("/metrics").body(Vec::new()).expect("a request");
    let page = client.request_text(request).await.expect("the API server shows its metrics");
    let mut calls = BTreeMap::<_, u64>::new();
    for line in page.lines() {
        let Some(line) = line.strip_prefix("apiserver_request_total{") else { continue };
        let label = |name: &str| {
            let (_, rest) = line.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let (verb, resource) = (label(",verb").unwrap_or_default(), label(",resource").unwrap_or_default());
        let is_ours = !resource.is_empty() && resource != "leases" && verb != "WATCH";
        let subresource = label("subresource").filter(|name| !name.is_empty());
        let number = line.rsplit_once(' ').and_then(|(_, number)| number.parse::<u64>().ok());
        let call =
            format!("{verb} {resource}{}", subresource.map(|name| format!("/{name}")).unwrap_or_default());
        if is_ours {
            *calls.entry(call).or_default() += number.unwrap_or_default();
        }
    }
    calls
}

/// Does something for each of so many, several at a time.
async fn all<Answer>(count: u32, ask: impl AsyncFn(u32) -> kube::Result<Answer>) {
    let asks = stream::iter(0..count).map(|number| ask(number)).buffer_unordered(AT_A_TIME);
    asks.try_for_each(|_| async { Ok(()) }).await.expect("each is done");
}

/// When each object first was as `looks` says, sorted, once all were.
async fn seen(
    objects: &Api<DynamicObject>,
    count: u32,
    patience: Duration,
    looks: impl Fn(&DynamicObject) -> bool,
) -> Vec<Timestamp> {
    let mut seen = BTreeMap::new();
    let mut events = watcher(objects.clone(), watcher::Config::default()).applied_objects().boxed();
    let all = async {
        while seen.len() < count as usize {
            let object = events.try_next().await.expect("a watch").expect("it does not end");
            if looks(&object) {
                seen.entry(object.name_any()).or_insert_with(clock::now);
            }
        }
    };
    tokio::time::timeout(patience, all).await.expect("all in time");
    let mut moments: Vec<_> = seen.into_values().collect();
    moments.sort();
    moments
}

fn api(client: &Client, (group, version, kind, plural): (&str, &str, &str, &str)) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn name(number: u32) -> String {
    format!("many-{number}")
}

/// Makes what the TDSets are for.
async fn prepare(client: &Client, count: u32, variant: Variant) {
    let make = async |objects: Api<DynamicObject>, of: &[Variant], object: &dyn Fn(u32) -> Value| {
        all(count, async |number| {
            if !of.contains(&variant.of_number(number)) {
                return Ok(None);
            }
            let object = serde_json::from_value(object(number)).expect("an object");
            objects.create(&PostParams::default(), &object).await.map(Some)
        })
        .await;
    };
    if variant == Variant::Dates {
        let days: Vec<_> = (1..=28).map(|day| format!("2001-02-{day:02}")).collect();
        let dates = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "days"},
            "data": {"days": days.join("\n")}});
        let dates = serde_json::from_value(dates).expect("an object");
        let objects = api(client, ("", "v1", "ConfigMap", "configmaps"));
        objects.create(&PostParams::default(), &dates).await.expect("it is made");
    }
    let there = [Variant::Reference, Variant::Autoscaler];
    make(Variant::Reference.counted(client).0, &there, &deployment).await;
    make(Variant::Autoscaler.counted(client).0, &there[1..], &autoscaler).await;
}

fn deployment(number: u32) -> Value {
    let (name, labels) = (name(number), json!({"app": name(number)}));
    let container = json!({"name": "pause", "image": "registry.k8s.io/pause:3.10"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
}

fn autoscaler(number: u32) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name(number)});
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name(number)},
        "spec": {"minReplicas": 1, "maxReplicas": 9, "scaleTargetRef": target}})
}

/// One replica, and four from the boundary on.
fn tdset(number: u32, boundary: Timestamp, variant: Variant) -> DynamicObject {
    let variant = variant.of_number(number);
    let end = boundary + Duration::from_hours(1);
    let between = json!({"start": boundary.to_string(), "end": end.to_string()});
    let mut exceptions = vec![json!({"name": "rush", "between": between, "replicas": 4})];
    if variant == Variant::Dates {
        let from = json!({"configMapKeyRef": {"name": "days", "key": "days"}});
        exceptions.push(json!({"name": "holidays", "datesFrom": from, "replicas": 0}));
    }
    let mut spec = json!({
        "defaultReplicas": 1,
        "exceptions": exceptions,
        "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}},
    });
    if matches!(variant, Variant::Reference | Variant::Autoscaler) {
        spec["target"] =
            json!({"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name(number)}});
    }
    if variant == Variant::Autoscaler {
        spec["autoscaler"] = json!({"name": name(number)});
    }
    let object = json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name(number)}, "spec": spec,
    });
    serde_json::from_value(object).expect("an object")
}
