//! The rights that reconciling EtcdClusters needs. Pure.

use crate::api::GROUP;
use crate::rbac::{AuditTrace, Rule};

/// In every namespace whose EtcdClusters are reconciled.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new(GROUP, &["etcdclusters"], &["get", "list", "watch"])
            .because("EtcdClusters are watched, and each reconciliation reads the one that it is for as it is stored."),
        Rule::new(GROUP, &["etcdclusters"], &["patch"]).because(
            "A finalizer has its deletion wait until members have stopped and volumes are as it says.",
        ),
        Rule::new(GROUP, &["etcdclusters/status"], &["patch"])
            .because("What is known and intended of an etcd cluster stands in its status."),
        Rule::new(GROUP, &["etcdclusters/finalizers"], &["update"]).audited(AuditTrace::Nowhere).because(
            "Owner references that block deletion need it where OwnerReferencesPermissionEnforcement is on.",
        ),
        Rule::new("apps", &["statefulsets"], &["get", "list", "watch", "patch"])
            .because("The StatefulSet of an etcd cluster is watched, read and applied."),
        Rule::new("apps", &["statefulsets"], &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a StatefulSet makes it."),
        Rule::new("", &["services"], &["get", "patch"])
            .because("Members and clients find an etcd cluster by its Services, which are read and applied."),
        Rule::new("", &["services"], &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a Service makes it."),
        Rule::new("", &["configmaps"], &["get", "create", "patch"])
            .because("A ConfigMap has the configuration of each member of an etcd cluster."),
        Rule::new("", &["pods"], &["get", "list", "watch", "patch", "delete"])
            .because("Members are watched by their pods, labelled as voters, and restarted one at a time."),
        Rule::new("", &["persistentvolumeclaims"], &["get", "list", "patch", "delete"]).because(
            "Volumes are looked at before members are changed; they grow, and those of removed members go.",
        ),
        Rule::new("", &["events"], &["list"]).audited(AuditTrace::Rare).because(
            "Why a pod is not made, or has no volume, stands in the events of its StatefulSet and of its claim alone. \
             Listed by the object that they are about, and only while a member does not serve.",
        ),
        Rule::new("", &["pods/log"], &["get"]).audited(AuditTrace::Rare).because(
            "A member that does not start because its data differ says in its log alone at which revision. No other log \
             is read.",
        ),
        Rule::new("policy", &["poddisruptionbudgets"], &["get", "patch"])
            .because("Evictions leave a quorum."),
        Rule::new("policy", &["poddisruptionbudgets"], &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a PodDisruptionBudget makes it."),
        Rule::new("batch", &["cronjobs"], &["get", "patch", "delete"])
            .because("Backups of an etcd cluster are taken by a CronJob, which goes when none are asked for."),
        Rule::new("batch", &["cronjobs"], &["create"])
            .audited(AuditTrace::Apply)
            .because("The first apply of a CronJob makes it."),
        Rule::new("batch", &["jobs"], &["get", "list", "create"])
            .because("The results of backups are in Jobs; one is made before an upgrade."),
        Rule::new("", &["secrets"], &["get", "create", "patch"]).because(
            "The certificates of an etcd cluster, and root's password, are in Secrets beside it: none is listed or watched.",
        ),
    ]
}

/// In the cluster as a whole. Without it nothing is lost but this ability.
#[must_use]
pub fn volumes() -> Vec<Rule> {
    vec![
        Rule::new("storage.k8s.io", &["storageclasses"], &["get"])
            .because("A volume grows where its class lets it."),
        Rule::new("", &["persistentvolumes"], &["get", "patch"])
            .because("What a recovery from a lost quorum sets aside is made to outlive its claim."),
    ]
}
