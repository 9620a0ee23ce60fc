//! Fields that a comparison treats in a way of their own. Pure.

/// Fields whose values, or whose values' values, are quantities.
pub(super) const QUANTITIES: [&str; 4] = ["requests", "limits", "sizeLimit", "divisor"];

/// Fields whose value means something else with more keys in it.
pub(super) const EXACT: [&str; 4] = ["selector", "matchLabels", "data", "binaryData"];

/// Fields of an object that are not compared in all that is in them.
pub(super) const UNREAD: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Fields that other clients may add to an object of a kind. `*` is any element of a list.
pub(super) const OPEN: [(&str, &[&str]); 13] = [
    // The count has its own manager, or an autoscaler.
    ("Deployment", &["spec", "replicas"]),
    // `kubectl rollout restart` restarts the pods once by an annotation, and so do tools that follow a Secret.
    ("Deployment", &["spec", "template", "metadata", "annotations"]),
    ("StatefulSet", &["spec", "template", "metadata", "annotations"]),
    ("CronJob", &["spec", "jobTemplate", "spec", "template", "metadata", "annotations"]),
    // The API server allocates these, and a client that sends the whole object sends them too.
    ("Service", &["spec", "clusterIP"]),
    ("Service", &["spec", "clusterIPs"]),
    ("Service", &["spec", "ipFamilies"]),
    ("Service", &["spec", "ipFamilyPolicy"]),
    ("Service", &["spec", "ports", "*", "nodePort"]),
    // Tools that distribute authorities, such as cert-manager, write these.
    ("CustomResourceDefinition", &["spec", "conversion", "webhook", "clientConfig", "caBundle"]),
    ("MutatingWebhookConfiguration", &["webhooks", "*", "clientConfig", "caBundle"]),
    ("ValidatingWebhookConfiguration", &["webhooks", "*", "clientConfig", "caBundle"]),
    // A webhook of the provider chooses it when the Service is made, and it cannot change later.
    ("Service", &["spec", "loadBalancerClass"]),
];

/// Defaults of the API server, as JSON, by the names of the fields.
pub(super) const DEFAULTS: [(&str, &str); 43] = [
    ("allowPrivilegeEscalation", "true"),
    ("apiVersion", "\"v1\""),
    ("backoffLimit", "6"),
    ("completionMode", "\"NonIndexed\""),
    ("completions", "1"),
    ("concurrencyPolicy", "\"Allow\""),
    ("defaultMode", "420"),
    ("dnsPolicy", "\"ClusterFirst\""),
    ("expirationSeconds", "3600"),
    ("externalTrafficPolicy", "\"Cluster\""),
    ("failedJobsHistoryLimit", "1"),
    ("failureThreshold", "3"),
    ("imagePullPolicy", "\"IfNotPresent\""),
    ("internalTrafficPolicy", "\"Cluster\""),
    ("maxSurge", "\"25%\""),
    ("maxUnavailable", "\"25%\""),
    ("nodeAffinityPolicy", "\"Honor\""),
    ("nodeTaintsPolicy", "\"Ignore\""),
    ("parallelism", "1"),
    ("periodSeconds", "10"),
    ("podManagementPolicy", "\"OrderedReady\""),
    ("podReplacementPolicy", "\"TerminatingOrFailed\""),
    ("procMount", "\"Default\""),
    ("progressDeadlineSeconds", "600"),
    ("protocol", "\"TCP\""),
    ("revisionHistoryLimit", "10"),
    ("schedulerName", "\"default-scheduler\""),
    ("scheme", "\"HTTP\""),
    ("scope", "\"*\""),
    ("sessionAffinity", "\"None\""),
    ("successThreshold", "1"),
    ("successfulJobsHistoryLimit", "3"),
    ("terminationGracePeriodSeconds", "30"),
    ("terminationMessagePath", "\"/dev/termination-log\""),
    ("terminationMessagePolicy", "\"File\""),
    ("timeoutSeconds", "1"),
    ("type", "\"ClusterIP\""),
    ("type", "\"RollingUpdate\""),
    ("volumeMode", "\"Filesystem\""),
    ("whenDeleted", "\"Retain\""),
    ("whenScaled", "\"Retain\""),
    ("reinvocationPolicy", "\"Never\""),
    ("matchPolicy", "\"Equivalent\""),
];
