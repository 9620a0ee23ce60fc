//! Pods: the settings that a spec may have for them, and the parts of every pod that gatehouse itself makes.
//!
//! Guarantees: the users of each kind have the same fields, with the same meaning and the same validation; no container
//! of gatehouse has more rights than it needs, unless the spec gives them.
//! Assumes: the API server checks everything else of a pod (kubernetes, `pkg/apis/core/validation`, `ValidatePodSpec`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, EnvVar, EnvVarSource, ObjectFieldSelector, PodSecurityContext, ResourceRequirements,
    SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::Deserialize;

use super::definition::undescribed;
use super::field::{FieldError, Path, Validation};
use super::name;
use super::words::words;

/// The program in the image of gatehouse.
pub const PROGRAM: &str = "/gatehouse";

/// User and group of that image: the conventional `nonroot`.
pub const USER: i64 = 65532;

words! {
    /// When nodes pull an image.
    #[derive(JsonSchema, Deserialize, Default)]
    #[schemars(transform = undescribed)]
    PullPolicy:
    /// At every start of a pod.
    Always,
    /// If the node does not have it yet.
    #[default]
    IfNotPresent,
    /// Never: it has to be on the node.
    Never,
}

/// Declares a struct with the settings of pods that all kinds have, and the fields of its own kind. The descriptions
/// and limits in front of `own` go to the shared field of that name.
///
/// The fields are flat: `serde(flatten)` would read every spec into a buffer first.
macro_rules! pod_settings {
    (
        $(#[$about:meta])*
        pub struct $name:ident;
        affinity { $(#[$affinity:meta])* }
        topology_spread_constraints { $(#[$spread:meta])* }
        service_account_name { $(#[$account:meta])* }
        dns_policy { $(#[$policy:meta])* }
        security_context { $(#[$security:meta])* }
        own { $($own:tt)* }
    ) => {
        $(#[$about])*
        #[derive(
            ::kube::KubeSchema, ::serde::Serialize, ::serde::Deserialize, Clone, Debug, Default, PartialEq,
        )]
        #[serde(rename_all = "camelCase")]
        #[x_kube(
            validation = Rule::new($crate::api::dns::NO_NAMESERVER.0)
                .message($crate::api::dns::NO_NAMESERVER.1).field_path(".dnsPolicy")
                .reason(Reason::FieldValueRequired),
        )]
        pub struct $name {
            /// Labels of the pods. Those that gatehouse finds the pods by win.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub labels: Option<::std::collections::BTreeMap<String, String>>,

            /// Annotations of the pods. Those of gatehouse win.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub annotations: Option<::std::collections::BTreeMap<String, String>>,

            /// Labels that a node must have.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub node_selector: Option<::std::collections::BTreeMap<String, String>>,

            /// Which nodes and which other pods the pods seek or avoid.
            $(#[$affinity])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub affinity: Option<::k8s_openapi::api::core::v1::Affinity>,

            /// Taints of nodes that the pods tolerate.
            #[x_kube(merge_strategy = ListMerge::Atomic)]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tolerations: Option<Vec<::k8s_openapi::api::core::v1::Toleration>>,

            /// How the pods spread over zones and nodes.
            $(#[$spread])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub topology_spread_constraints:
                Option<Vec<::k8s_openapi::api::core::v1::TopologySpreadConstraint>>,

            /// PriorityClass of the pods.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub priority_class_name: Option<String>,

            /// Scheduler of the pods. Defaults to default-scheduler.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub scheduler_name: Option<String>,

            /// RuntimeClass of the pods.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub runtime_class_name: Option<String>,

            /// ServiceAccount that the pods run as. Defaults to the namespace's default.
            $(#[$account])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub service_account_name: Option<String>,

            /// Source of name servers and search domains: ClusterFirst (the cluster's DNS), Default (those of the
            /// node) or None (dnsConfig alone). Defaults to ClusterFirst.
            $(#[$policy])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub dns_policy: Option<$crate::api::dns::DnsPolicy>,

            /// Name servers, search domains and options of the resolver, beside those of dnsPolicy.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub dns_config: Option<$crate::api::dns::DnsConfig>,

            /// Security settings of the pods.
            $(#[$security])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub security_context: Option<::k8s_openapi::api::core::v1::PodSecurityContext>,

            $($own)*
        }

        impl $name {
            /// Validates the fields that all kinds have.
            pub fn validate(
                &self,
                path: &$crate::api::field::Path,
                validation: &mut $crate::api::field::Validation,
            ) {
                let names = [
                    ("priorityClassName", self.priority_class_name.as_deref()),
                    ("schedulerName", self.scheduler_name.as_deref()),
                    ("runtimeClassName", self.runtime_class_name.as_deref()),
                    ("serviceAccountName", self.service_account_name.as_deref()),
                ];
                $crate::api::pod::validate_names(names, path, validation);
                $crate::api::pod::validate_labels(self.labels.as_ref(), &path.at("labels"), validation);
                let annotations = path.at("annotations");
                $crate::api::pod::validate_keys(self.annotations.as_ref(), &annotations, validation);
                $crate::api::dns::validate(self.dns_policy, self.dns_config.as_ref(), path, validation);
            }

            /// The template of pods like `pod`, with these labels and annotations, and with the settings.
            #[must_use]
            pub fn template(
                self,
                labels: ::std::collections::BTreeMap<String, String>,
                annotations: ::std::collections::BTreeMap<String, String>,
                pod: ::k8s_openapi::api::core::v1::PodSpec,
            ) -> ::k8s_openapi::api::core::v1::PodTemplateSpec {
                use ::k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
                use ::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

                let metadata = ObjectMeta {
                    labels: $crate::api::pod::joined(self.labels, labels),
                    annotations: $crate::api::pod::joined(self.annotations, annotations),
                    ..ObjectMeta::default()
                };
                let spec = PodSpec {
                    node_selector: self.node_selector,
                    affinity: self.affinity,
                    tolerations: self.tolerations,
                    topology_spread_constraints: self.topology_spread_constraints,
                    priority_class_name: self.priority_class_name,
                    scheduler_name: self.scheduler_name,
                    runtime_class_name: self.runtime_class_name,
                    service_account_name: $crate::api::pod::service_account(self.service_account_name),
                    dns_policy: self.dns_policy.map(|policy| policy.as_str().to_owned()),
                    dns_config: self.dns_config.map(Into::into),
                    security_context: self.security_context,
                    ..pod
                };
                PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) }
            }
        }
    };
}

pub(crate) use pod_settings;

/// The labels or annotations of a spec, and those of gatehouse, which win. None if the spec has none and gatehouse adds
/// none.
#[must_use]
pub fn joined(
    given: Option<BTreeMap<String, String>>,
    own: BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    if own.is_empty() {
        return given;
    }
    let mut joined = given.unwrap_or_default();
    joined.extend(own);
    Some(joined)
}

/// Names that may be empty: an empty one is an absent one to the API server.
const EMPTY: [&str; 2] = ["priorityClassName", "serviceAccountName"];

/// Validates names of other objects.
pub fn validate_names<const COUNT: usize>(
    names: [(&'static str, Option<&str>); COUNT],
    path: &Path,
    validation: &mut Validation,
) {
    for (field, given) in names {
        if let Some(given) = given.filter(|given| !given.is_empty() || !EMPTY.contains(&field))
            && let Err(detail) = name::dns_1123_subdomain(given)
        {
            validation.reject(FieldError::invalid(path.at(field), given, detail));
        }
    }
}

/// Validates labels.
pub fn validate_labels(labels: Option<&BTreeMap<String, String>>, path: &Path, validation: &mut Validation) {
    for (key, value) in labels.into_iter().flatten() {
        for (text, checked) in [(key, name::qualified_name(key)), (value, name::label_value(value))] {
            if let Err(detail) = checked {
                validation.reject(FieldError::invalid(path.key(key), text, detail));
            }
        }
    }
}

/// Validates the keys of annotations. The API server ignores their case.
pub fn validate_keys(
    annotations: Option<&BTreeMap<String, String>>,
    path: &Path,
    validation: &mut Validation,
) {
    for key in annotations.into_iter().flat_map(BTreeMap::keys) {
        if let Err(detail) = name::qualified_name(&key.to_ascii_lowercase()) {
            validation.reject(FieldError::invalid(path.key(key), key, detail));
        }
    }
}

/// The ServiceAccount of a pod, by its name even if the spec names none.
///
/// An absent field would not remove another one: the API server copies `serviceAccountName` into its older twin
/// `serviceAccount`, which no manager owns and which therefore stays, and fills in the one by the other
/// (kubernetes `pkg/apis/core/v1/conversion.go`, `Convert_v1_PodSpec_To_core_PodSpec`).
#[must_use]
pub fn service_account(given: Option<String>) -> Option<String> {
    Some(given.unwrap_or_else(|| "default".to_owned()))
}

/// Security settings of a pod that needs no rights.
#[must_use]
pub fn unprivileged() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        seccomp_profile: Some(seccomp_profile()),
        ..PodSecurityContext::default()
    }
}

/// The seccomp profile of the container runtime.
#[must_use]
pub fn seccomp_profile() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }
}

/// Security settings of a container that needs no rights.
#[must_use]
pub fn unprivileged_container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        privileged: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}

/// Resources of a container that passes data on piece by piece: a request for memory, and its limit. They are set at
/// all because a quota admits no pod without.
#[must_use]
pub fn resources(requested: &str, limit: &str) -> ResourceRequirements {
    let amounts = |cpu: &str, memory: &str| {
        let amounts = [("cpu", cpu), ("memory", memory)];
        amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into()
    };
    ResourceRequirements {
        requests: Some(amounts("10m", requested)),
        limits: Some(amounts("1", limit)),
        ..ResourceRequirements::default()
    }
}

/// A volume without a source.
#[must_use]
pub fn volume(name: &str) -> Volume {
    Volume { name: name.to_owned(), ..Volume::default() }
}

/// Mounts a volume.
#[must_use]
pub fn mount(name: &str, path: &str, is_read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: is_read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// An environment variable with a field of the pod.
#[must_use]
pub fn downward(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: path.to_owned(), ..ObjectFieldSelector::default() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value_from: Some(source), ..EnvVar::default() }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;
    use serde_json::{Value, json};

    use super::*;

    pod_settings! {
        /// Settings without a field of a kind.
        pub struct Settings;
        affinity {}
        topology_spread_constraints {}
        service_account_name {}
        dns_policy {}
        security_context {}
        own {}
    }

    fn settings(settings: &Value) -> Settings {
        serde_json::from_value(settings.clone()).unwrap()
    }

    #[test]
    fn each_fault_is_named_at_its_field() {
        for (given, expected) in [
            (json!({"labels": {"team": "a"}, "annotations": {"Example.com/a": "b c"}}), ""),
            (json!({"priorityClassName": "", "serviceAccountName": ""}), ""),
            (json!({"labels": {"a b": ""}}), "spec.pod.labels[a b]"),
            (json!({"labels": {"a": "b c"}}), "spec.pod.labels[a]"),
            (json!({"annotations": {"a b": ""}}), "spec.pod.annotations[a b]"),
            (json!({"priorityClassName": "High"}), "spec.pod.priorityClassName"),
            (json!({"serviceAccountName": "a_b"}), "spec.pod.serviceAccountName"),
            (json!({"schedulerName": ""}), "spec.pod.schedulerName"),
            (json!({"runtimeClassName": "."}), "spec.pod.runtimeClassName"),
            (json!({"dnsPolicy": "None"}), "spec.pod.dnsPolicy"),
            (json!({"dnsConfig": {"nameservers": ["dns"]}}), "spec.pod.dnsConfig.nameservers[0]"),
        ] {
            let mut validation = Validation::default();
            settings(&given).validate(&Path::spec().at("pod"), &mut validation);
            let found: Vec<_> = validation.errors.iter().map(|fault| fault.path.to_string()).collect();
            assert_eq!(found.join(" "), expected, "{given}");
        }
    }

    #[test]
    fn every_setting_is_in_the_pods() {
        let given = json!({
            "nodeSelector": {"disk": "ssd"},
            "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "a"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "priorityClassName": "high",
            "schedulerName": "second",
            "runtimeClassName": "sandbox",
            "serviceAccountName": "robot",
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["10.0.0.1"]},
            "securityContext": {"fsGroup": 7},
        });
        let pods = settings(&given).template(BTreeMap::new(), BTreeMap::new(), PodSpec::default());
        let mut pods = serde_json::to_value(pods.spec).unwrap();
        pods.as_object_mut().unwrap().remove("containers");
        assert_eq!(pods, given);
    }

    #[test]
    fn a_service_account_that_the_spec_no_longer_names_is_replaced_by_name() {
        assert_eq!(service_account(Some("shop".to_owned())).as_deref(), Some("shop"));
        assert_eq!(service_account(None).as_deref(), Some("default"));
    }

    #[test]
    fn labels_of_gatehouse_win_and_no_labels_stay_none() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let given = labels(&[("team", "a"), ("name", "stolen")]);
        let own = labels(&[("name", "shop")]);
        assert_eq!(joined(Some(given), own), Some(labels(&[("team", "a"), ("name", "shop")])));
        assert_eq!(joined(None, labels(&[])), None);
    }
}
