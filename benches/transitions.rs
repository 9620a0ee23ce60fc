//! How fast a common boundary is carried out: many TDSets, one moment, on a real API server.
//!
//! ```text
//! make bench                    # 10,000 TDSets
//! make bench COUNT=1000
//! ```
//!
//! What is told: when the first, the middle and the last Deployment got its count, counted from the boundary; when the
//! last status told of it; and the rate as a share of what the same API server takes of bare patches, as many at a
//! time. The share is what to compare between machines and releases: gatehouse's passes and the patches meet the same
//! API server, etcd and disk. Nothing is asserted about time.
//!
//! There is no controller-manager, so that nobody else writes.

#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot begin ends")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use gatehouse::runtime::clock;
use jiff::Timestamp;
use kit::bed::Bed;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use testbed::Options;

/// Calls in flight at a time, as many as the operator's passes.
const AT_A_TIME: usize = 32;
/// What an object's creation may take on a slow machine, its Deployment's included; the boundary is after that.
const CREATION: Duration = Duration::from_millis(40);
/// How long anything else may take.
const PATIENCE: Duration = Duration::from_mins(10);

fn main() {
    // cargo itself says `--bench`.
    let count = std::env::args().filter(|word| word != "--bench").nth(1);
    let count: u32 = count.map_or(10_000, |word| word.parse().expect("a count of TDSets"));
    let options = Options { controller_manager: false, ..Options::from_env().expect("sound options") };
    let bed = Bed::with_gate(&options, kit::gatehouse!(), &[]).unwrap_or_else(|error| panic!("{error}"));
    bed.objects.with(async |client| measure(&client, count).await);
}

async fn measure(client: &Client, count: u32) {
    let boundary = clock::now() + Duration::from_secs(20) + CREATION * count;
    let boundary = Timestamp::from_second(boundary.as_second()).expect("a time");
    let created = Instant::now();
    let tdsets = api(client, "gatehouse.dev", "v1", "TDSet", "tdsets");
    let make = |number| {
        let tdsets = tdsets.clone();
        async move { tdsets.create(&PostParams::default(), &tdset(number, boundary)).await }
    };
    let all = stream::iter(0..count).map(make).buffer_unordered(AT_A_TIME);
    all.try_for_each(|_| async { Ok(()) }).await.expect("they are created");
    println!("{count} TDSets created through the gate in {:.1?}", created.elapsed());

    let deployments = api(client, "apps", "v1", "Deployment", "deployments");
    let counts = seen(&deployments, count, |object| object.data["spec"]["replicas"] == 1).await;
    assert!(
        clock::now() < boundary,
        "all {} Deployments are made after the boundary: raise CREATION",
        counts.len()
    );

    let told = seen(&tdsets, count, |object| object.data["status"]["scheduledReplicas"] == 4);
    let written = seen(&deployments, count, |object| object.data["spec"]["replicas"] == 4);
    let (told, written) = futures::join!(told, written);
    let after = |moments: &[Timestamp], share: usize| {
        let moment = moments[(moments.len() - 1) * share / 100];
        moment.duration_since(boundary).as_secs_f64()
    };
    println!(
        "counts written after the boundary: first {:.3} s, half {:.3} s, last {:.3} s",
        after(&written, 0),
        after(&written, 50),
        after(&written, 100)
    );
    println!("statuses written: last {:.3} s", after(&told, 100));

    let patched = Instant::now();
    let patch = |number| {
        let deployments = deployments.clone();
        let body = Patch::Merge(json!({"spec": {"replicas": 5}}));
        async move { deployments.patch(&name(number), &PatchParams::default(), &body).await }
    };
    let all = stream::iter(0..count).map(patch).buffer_unordered(AT_A_TIME);
    all.try_for_each(|_| async { Ok(()) }).await.expect("they are patched");
    let bare = f64::from(count) / patched.elapsed().as_secs_f64();
    let ours = f64::from(count) / after(&written, 100);
    println!("transitions {ours:.0}/s, bare patches {bare:.0}/s: a share of {:.2}", ours / bare);
}

/// When each object first was as `looks` says, sorted, once all were.
async fn seen(
    objects: &Api<DynamicObject>,
    count: u32,
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
    tokio::time::timeout(PATIENCE, all).await.expect("all in time");
    let mut moments: Vec<_> = seen.into_values().collect();
    moments.sort();
    moments
}

fn api(client: &Client, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn name(number: u32) -> String {
    format!("many-{number}")
}

/// One replica, and four from the boundary on.
fn tdset(number: u32, boundary: Timestamp) -> DynamicObject {
    let end = boundary + Duration::from_hours(1);
    serde_json::from_value(json!({
        "apiVersion": "gatehouse.dev/v1", "kind": "TDSet", "metadata": {"name": name(number)},
        "spec": {
            "defaultReplicas": 1,
            "exceptions": [{"name": "rush", "between": {"start": boundary.to_string(), "end": end.to_string()}, "replicas": 4}],
            "target": {"create": {"image": "registry.k8s.io/pause:3.10", "port": 8080}},
        },
    }))
    .expect("an object")
}
