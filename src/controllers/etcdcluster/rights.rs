//! What working EtcdClusters needs, beyond what TDSets do. Pure.

use crate::api::GROUP;
use crate::rights::{Rule, Shows};

/// In every namespace whose EtcdClusters are worked.
#[must_use]
pub fn rules() -> Vec<Rule> {
    vec![
        Rule::new(GROUP, &["etcdclusters"], &["get", "list", "watch"])
            .because("EtcdClusters are watched, and each pass reads the one that it is for as it is stored."),
        Rule::new(GROUP, &["etcdclusters"], &["patch"]).because(
            "A finalizer has its deletion wait until members have stopped and volumes are as it says.",
        ),
        Rule::new(GROUP, &["etcdclusters/status"], &["patch"])
            .because("What is known and intended of an etcd cluster stands in its status."),
        Rule::new(GROUP, &["etcdclusters/finalizers"], &["update"]).shows(Shows::Nowhere).because(
            "Owner references that block deletion need it where OwnerReferencesPermissionEnforcement is on.",
        ),
        Rule::new("apps", &["statefulsets"], &["patch"])
            .because("The StatefulSet of an etcd cluster is applied."),
        Rule::new("apps", &["statefulsets"], &["create"])
            .shows(Shows::AsApply)
            .because("The first apply of a StatefulSet makes it."),
        Rule::new("", &["configmaps"], &["create", "patch"])
            .because("What each member is told is kept in a ConfigMap."),
        Rule::new("", &["pods"], &["get", "list", "watch", "patch", "delete"])
            .because("Members are watched by their pods, labelled as voters, and restarted one at a time."),
        Rule::new("", &["persistentvolumeclaims"], &["get", "list", "patch", "delete"]).because(
            "Volumes are looked at before members are changed; they grow, and those of removed members go.",
        ),
        Rule::new("policy", &["poddisruptionbudgets"], &["get", "patch"])
            .because("Evictions leave a quorum."),
        Rule::new("policy", &["poddisruptionbudgets"], &["create"])
            .shows(Shows::AsApply)
            .because("The first apply of a PodDisruptionBudget makes it."),
        Rule::new("batch", &["cronjobs"], &["get", "patch", "delete"])
            .because("Backups of an etcd cluster are taken by a CronJob, which goes when none are asked for."),
        Rule::new("batch", &["cronjobs"], &["create"])
            .shows(Shows::AsApply)
            .because("The first apply of a CronJob makes it."),
        Rule::new("batch", &["jobs"], &["get", "list", "create"])
            .because("What became of backups is told by Jobs; one is taken before an upgrade."),
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
