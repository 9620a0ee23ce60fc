//! What TDSets are for, those objects, and bare writes of their counts.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

/// Calls in flight at a time, as many as the operator's passes.
const AT_A_TIME: usize = 32;
/// The field manager of counts, so that what is applied has an owner as in production.
const MANAGER: &str = "gatehouse-tdset-count";
/// Dates of the ConfigMap that all share, one a line: about 50 kB.
const DATES: i32 = 4_500;

/// What the TDSets are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Each makes its Deployment.
    Create,
    /// For Deployments that are there.
    Reference,
    /// For HorizontalPodAutoscalers that are there.
    Autoscaler,
    /// Each makes its Deployment, and all take dates from one ConfigMap.
    Dates,
    /// One after the other: it makes its Deployment, it is for one that is there, it is for an autoscaler.
    Mixed,
}

impl Variant {
    /// Each by its name.
    pub const NAMES: [(&str, Self); 5] = [
        ("create", Self::Create),
        ("ref", Self::Reference),
        ("autoscaler", Self::Autoscaler),
        ("dates", Self::Dates),
        ("mixed", Self::Mixed),
    ];

    /// What the TDSet of that number is for.
    pub fn of_number(self, number: u32) -> Self {
        match self {
            Self::Mixed => [Self::Create, Self::Reference, Self::Autoscaler][number as usize % 3],
            other => other,
        }
    }

    /// The objects that have the counts, and the field. Of mixed ones, those that are no autoscalers.
    pub fn counted(self, client: &Client) -> (Api<DynamicObject>, &'static str) {
        match self {
            Self::Autoscaler => {
                let kind = ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
                (api(client, kind), "minReplicas")
            }
            _ => (api(client, ("apps", "v1", "Deployment", "deployments")), "replicas"),
        }
    }
}

/// How a count is written, with the answers that the operator asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// By server-side apply, as to Deployments that the operator made.
    Apply,
    /// To the scale subresource, as to those of others.
    Scale,
    /// By a merge patch, as to autoscalers.
    Merge,
}

impl Write {
    /// The one by which the operator writes the count of that number.
    pub fn of_number(variant: Variant, number: u32) -> Self {
        match variant.of_number(number) {
            Variant::Reference => Self::Scale,
            Variant::Autoscaler => Self::Merge,
            _ => Self::Apply,
        }
    }
}

/// Counts that are written without an operator.
pub struct Bare {
    variant: Variant,
    deployments: Counted,
    autoscalers: Counted,
}

/// Objects that have counts.
struct Counted {
    api: Api<DynamicObject>,
    field: &'static str,
    kind: (&'static str, &'static str),
    uids: BTreeMap<String, String>,
}

impl Counted {
    async fn of(client: &Client, variant: Variant, kind: (&'static str, &'static str)) -> Self {
        let (api, field) = variant.counted(client);
        let list = api.list_metadata(&ListParams::default()).await.expect("a list");
        let uids = list.into_iter().map(|one| (one.name_any(), one.uid().unwrap_or_default())).collect();
        Self { api, field, kind, uids }
    }

    async fn write(&self, name: &str, write: Write, count: u32) -> kube::Result<()> {
        let patch = json!({
            "apiVersion": self.kind.0, "kind": self.kind.1,
            "metadata": {"name": name, "namespace": "default", "uid": self.uids[name]},
            "spec": {self.field: count},
        });
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match write {
            Write::Apply => {
                let params = PatchParams::apply(MANAGER).force();
                self.api.patch_metadata(name, &params, &Patch::Apply(patch)).await.map(drop)
            }
            Write::Merge => self.api.patch_metadata(name, &params, &Patch::Merge(patch)).await.map(drop),
            Write::Scale => {
                let patch = json!({"metadata": {"uid": self.uids[name]}, "spec": {"replicas": count}});
                self.api.patch_scale(name, &params, &Patch::Merge(patch)).await.map(drop)
            }
        }
    }
}

impl Bare {
    /// Of the objects that are there.
    pub async fn of(client: &Client, variant: Variant) -> Self {
        let kind = ("autoscaling/v2", "HorizontalPodAutoscaler");
        Self {
            variant,
            deployments: Counted::of(client, Variant::Create, ("apps/v1", "Deployment")).await,
            autoscalers: Counted::of(client, Variant::Autoscaler, kind).await,
        }
    }

    /// Writes a count to each of so many; `write`: all in that way, instead of each as the operator does.
    pub async fn write(&self, objects: u32, count: u32, write: Option<Write>) {
        all(objects, async |number| {
            let is_bound = self.variant.of_number(number) == Variant::Autoscaler;
            let counted = if is_bound { &self.autoscalers } else { &self.deployments };
            let write = write.unwrap_or_else(|| Write::of_number(self.variant, number));
            counted.write(&name(number), write, count).await
        })
        .await;
    }
}

/// Does something for each of so many, several at a time.
pub async fn all<Answer>(count: u32, ask: impl AsyncFn(u32) -> kube::Result<Answer>) {
    let asks = stream::iter(0..count).map(|number| ask(number)).buffer_unordered(AT_A_TIME);
    asks.try_for_each(|_| async { Ok(()) }).await.expect("each is done");
}

/// The objects of a kind.
pub fn api(client: &Client, (group, version, kind, plural): (&str, &str, &str, &str)) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk_with_plural(&kind, plural))
}

/// What the object of that number is called.
pub fn name(number: u32) -> String {
    format!("many-{number}")
}

/// Makes what the TDSets are for.
pub async fn prepare(client: &Client, count: u32, variant: Variant) {
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
        let first = Date::constant(2001, 1, 1);
        let days: Vec<_> = (0..DATES).map(|day| (first + day.days()).to_string()).collect();
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
pub fn tdset(number: u32, boundary: Timestamp, variant: Variant) -> DynamicObject {
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
