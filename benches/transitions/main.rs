//! How fast a common boundary is carried out, and what that costs: many TDSets, one moment, on a real API server.
//!
//! ```text
//! make bench                              # 10,000 TDSets, each of which makes a Deployment
//! make bench COUNT=1000 VARIANT=ref       # for Deployments that are there
//! make bench VARIANT=autoscaler           # for HorizontalPodAutoscalers that are there
//! make bench VARIANT=dates                # all take their holidays from one ConfigMap of 50 kB
//! make bench VARIANT=mixed CONTROLLERS=1  # a third of each of the first three, with the controllers of Kubernetes
//! GATEHOUSE_PROGRAM=other make bench      # of another build, to compare with on the same machine
//! ```
//!
//! It reports:
//!
//! - of the boundary: when the first, the middle and the last count was written, counted from it, and when the last status
//!   told of it;
//! - of each part (objects are made, are moved, and met by an operator that begins): processor time and memory of the
//!   operator, its reconciliations, and the calls that the API server answered, for each object; and how long an operator
//!   takes to begin;
//! - the calls while nothing is to be done: next to none;
//! - the rate, as a share of what the same API server takes of the same writes of counts from a client that does nothing
//!   else, as many at a time, and watched as those at the boundary are. The share is what to compare between machines and releases: both meet the same API server,
//!   etcd and disk.
//!
//! A part ends once the API server counts no more writes of the operator, and none of those that they lead to: the
//! operator's own page is read between two parts only, as making it takes time. Nothing lasts for ever: what does not come
//! to rest ends the run, which says what is still written.
//!
//! It asserts no times. There is no controller-manager, so no other client writes, unless `CONTROLLERS=1` asks for one:
//! then what its controllers call is among the calls. The operator is a process of its own, so that reviews are not in
//! what is counted.

#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot begin ends")]

mod calls;
mod objects;
mod operator;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _, future};
use gatehouse::runtime::clock;
use jiff::Timestamp;
use kit::bed::Bed;
use kube::api::{DynamicObject, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use testbed::Options;

use calls::rest;
use objects::{Bare, Variant, Write, all, api, name, prepare, tdset};
use operator::{Operator, Post, Snapshot};

/// What an object's creation may take on a slow machine, its Deployment's included; the boundary is after that.
const CREATION: Duration = Duration::from_millis(40);
/// How much longer everything may take beside the controllers of Kubernetes, which make ReplicaSets and pods meanwhile.
const BESIDE_CONTROLLERS: u32 = 2;
/// How long anything else may take, before the run is given up.
const PATIENCE: Duration = Duration::from_mins(10);
/// How long is looked on while nothing is to be done.
const IDLE: Duration = Duration::from_secs(30);
/// How the controllers of Kubernetes work here: as fast as the API server answers. At a hundred calls a second they would
/// take a quarter of an hour for the pods of 10,000 Deployments. That of autoscalers looks at each of them again and
/// again, and would be measured with the rest.
const CONTROLLERS: [&str; 5] = [
    "--kube-api-qps=1000",
    "--kube-api-burst=1000",
    "--concurrent-deployment-syncs=32",
    "--concurrent-replicaset-syncs=32",
    "--controllers=*,-horizontal-pod-autoscaler-controller",
];

fn main() {
    // cargo itself says `--bench`.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let count = words.first().map_or(10_000, |word| word.parse().expect("a count of TDSets"));
    let word = words.get(1).map_or("create", String::as_str);
    let variant = Variant::NAMES.iter().find(|(name, _)| *name == word);
    let (_, variant) = *variant.unwrap_or_else(|| {
        panic!("{word}: expected one of {:?}", Variant::NAMES.map(|(name, _)| name));
    });
    let controllers = std::env::var("CONTROLLERS").is_ok_and(|word| word == "1");
    let options = Options {
        controller_manager: controllers,
        controller_manager_flags: CONTROLLERS.map(str::to_owned).into(),
        ..Options::from_env().expect("sound options")
    };
    let program =
        std::env::var_os("GATEHOUSE_PROGRAM").map_or_else(|| kit::gatehouse!().into(), PathBuf::from);
    let bed = Bed::with_gate(&options, &program, &["--only", "gate"]);
    let bed = bed.unwrap_or_else(|error| panic!("{error}"));
    let (beside, slower) =
        if controllers { (", beside the controllers of Kubernetes", BESIDE_CONTROLLERS) } else { ("", 1) };
    let post = Post {
        bed: &bed,
        kubeconfig: bed.kubeconfig_of("gatehouse"),
        title: format!("{count} TDSets, {word}{beside}"),
        patience: PATIENCE * slower,
    };
    let run = Run { post, count, variant, slower };
    bed.objects.with(async |client| run.measure(&client).await);
}

type Watch = BoxStream<'static, watcher::Result<DynamicObject>>;

/// A run.
struct Run<'a> {
    post: Post<'a>,
    count: u32,
    variant: Variant,
    /// How much longer everything may take than without the controllers of Kubernetes.
    slower: u32,
}

impl Run<'_> {
    async fn measure(&self, client: &Client) {
        let Self { post, count, variant, .. } = self;
        let (count, variant) = (*count, *variant);
        let operator = Operator::start(post);
        post.tell(&format!("the operator without an object: {}", operator.memory()));
        prepare(client, count, variant).await;
        rest(client, post.patience).await;
        let boundary = clock::now() + Duration::from_mins(1) + CREATION * count * self.slower;
        let boundary = Timestamp::from_second(boundary.as_second()).expect("a time");

        let before = Snapshot::of(client, &operator).await;
        self.create(client, boundary).await;
        let made = Snapshot::of(client, &operator).await;
        before.tell(&made, post, "made", count);
        tokio::time::sleep(IDLE).await;
        let idle = Snapshot::of(client, &operator).await;
        made.tell_idle(&idle, post, IDLE);
        assert!(clock::now() < boundary, "the boundary was before all were made: raise CREATION");

        let rate = self.cross(client, boundary).await;
        idle.tell(&Snapshot::of(client, &operator).await, post, "moved", count);

        operator.stop();
        let before = Snapshot::without(client).await;
        let begun = Instant::now();
        let operator = Operator::start(post);
        let done = operator.quiet(post.patience).await;
        rest(client, post.patience).await;
        let after = Snapshot::of(client, &operator).await;
        assert!(after.passes >= count.into(), "{} reconciliations when it is quiet", after.passes);
        before.tell(&after, post, "met by an operator that begins", count);
        post.tell(&format!("an operator begins in {:.1} s", done.duration_since(begun).as_secs_f64()));
        operator.stop();
        post.tell(&format!("transitions: {rate:.0}/s"));
        self.compare(client, rate).await;
    }

    /// Makes the TDSets, and waits until the operator has done what they ask for.
    async fn create(&self, client: &Client, boundary: Timestamp) {
        let tdsets = tdsets(client);
        let begun = Instant::now();
        all(self.count, async |number| {
            tdsets.create(&PostParams::default(), &tdset(number, boundary, self.variant)).await
        })
        .await;
        let took = begun.elapsed();
        self.post.tell(&format!("created through the gate in {:.1} s", took.as_secs_f64()));
        let knows = |object: &DynamicObject| object.data["status"]["nextTransition"]["replicas"] == 4;
        seen(&tdsets, self.count, self.post.patience, knows).await;
        rest(client, self.post.patience).await;
    }

    /// Waits until the operator has done what the boundary asks for, and says how many counts it wrote a second.
    async fn cross(&self, client: &Client, boundary: Timestamp) -> f64 {
        let until = Duration::try_from(boundary.duration_since(clock::now())).unwrap_or_default();
        let patience = until + self.post.patience;
        let tells = |object: &DynamicObject| object.data["status"]["scheduledReplicas"] == 4;
        let tdsets = tdsets(client);
        let written = self.written(client, 4, patience).await;
        let (told, written) = futures::join!(seen(&tdsets, self.count, patience, tells), written);
        rest(client, self.post.patience).await;
        let after = |moments: &[Timestamp], share: usize| {
            let moment = moments[(moments.len() - 1) * share / 100];
            moment.duration_since(boundary).as_secs_f64()
        };
        let [first, half, last] = [0, 50, 100].map(|share| after(&written, share));
        self.post.tell(&format!(
            "counts written after the boundary: first {first:.3} s, half {half:.3} s, last {last:.3} s"
        ));
        self.post.tell(&format!("statuses written after the boundary: last {:.3} s", after(&told, 100)));
        f64::from(self.count) / last
    }

    /// When a watch first showed each count as `replicas`, sorted; the watches begin at once.
    async fn written(
        &self,
        client: &Client,
        replicas: u32,
        patience: Duration,
    ) -> impl Future<Output = Vec<Timestamp>> {
        let is_bound = |number: u32| self.variant.of_number(number) == Variant::Autoscaler;
        let of = async |share: Variant| {
            let (counted, field) = share.counted(client);
            let numbers =
                (0..self.count).filter(|number| is_bound(*number) == (share == Variant::Autoscaler));
            let names: BTreeSet<_> = numbers.map(name).collect();
            let watch = if names.is_empty() { stream::empty().boxed() } else { listed(&counted).await };
            (watch, names, field)
        };
        let watches = [of(Variant::Create).await, of(Variant::Autoscaler).await];
        async move {
            let each = watches.into_iter().map(async |(watch, names, field)| {
                let number = u32::try_from(names.len()).expect("a count");
                let looks = |object: &DynamicObject| {
                    object.data["spec"][field] == replicas && names.contains(&object.name_any())
                };
                seen_in(watch, number, patience, looks).await
            });
            let mut moments = future::join_all(each).await.concat();
            moments.sort();
            moments
        }
    }

    /// What the API server takes of bare writes of counts while no operator runs: of the same ones; and where those are of
    /// Deployments, of others for comparison. Beside the controllers of Kubernetes each would have to wait for the pods.
    async fn compare(&self, client: &Client, rate: f64) {
        let bare = Bare::of(client, self.variant).await;
        let mut rounds = vec![("the same writes", None), ("the same writes again", None)];
        let is_of_autoscalers = matches!(self.variant, Variant::Autoscaler | Variant::Mixed);
        if self.slower == 1 && !is_of_autoscalers {
            let others =
                [("applies", Write::Apply), ("scale patches", Write::Scale), ("merge patches", Write::Merge)];
            rounds.extend(others.map(|(name, write)| (name, Some(write))));
        }
        for ((name, write), replicas) in rounds.into_iter().zip(5..) {
            rest(client, self.post.patience).await;
            // As at the boundary, they are written when a watch shows them.
            let written = self.written(client, replicas, self.post.patience).await;
            let begun = clock::now();
            let ((), written) = futures::join!(bare.write(self.count, replicas, write), written);
            let last = written[written.len() - 1];
            let alone = f64::from(self.count) / last.duration_since(begun).as_secs_f64();
            let share = rate / alone;
            self.post
                .tell(&format!("bare, {name}: {alone:.0}/s, of which transitions are a share of {share:.2}"));
        }
    }
}

fn tdsets(client: &Client) -> Api<DynamicObject> {
    api(client, ("gatehouse.dev", "v1", "TDSet", "tdsets"))
}

/// What is applied to objects, once all that are there have been listed.
async fn listed(objects: &Api<DynamicObject>) -> Watch {
    let mut events = watcher(objects.clone(), watcher::Config::default()).boxed();
    while !matches!(events.try_next().await.expect("a watch"), Some(Event::InitDone)) {}
    events.applied_objects().boxed()
}

/// When each object first was as `looks` says, sorted, once all were.
async fn seen(
    objects: &Api<DynamicObject>,
    count: u32,
    patience: Duration,
    looks: impl Fn(&DynamicObject) -> bool,
) -> Vec<Timestamp> {
    let watch = watcher(objects.clone(), watcher::Config::default()).applied_objects().boxed();
    seen_in(watch, count, patience, looks).await
}

/// The same of a watch.
async fn seen_in(
    mut watch: Watch,
    count: u32,
    patience: Duration,
    looks: impl Fn(&DynamicObject) -> bool,
) -> Vec<Timestamp> {
    let mut seen = BTreeMap::new();
    let all = async {
        while seen.len() < count as usize {
            let object = watch.try_next().await.expect("a watch").expect("it does not end");
            if looks(&object) {
                seen.entry(object.name_any()).or_insert_with(clock::now);
            }
        }
    };
    let in_time = tokio::time::timeout(patience, all).await;
    assert!(in_time.is_ok(), "after {patience:?}, {} of {count} objects are as they should be", seen.len());
    let mut moments: Vec<_> = seen.into_values().collect();
    moments.sort();
    moments
}
