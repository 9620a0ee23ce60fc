//! What absent fields of an EtcdCluster mean.

use serde_json::{Value, json};

use super::versions::NEWEST;
use crate::api::Version;
use crate::api::default::{Context, Field};
use crate::api::field::Warning;

/// Members of a cluster written as `v1`.
pub const REPLICAS: i32 = 3;
/// Members of a cluster written as `v1alpha1`: what that API promised.
pub const REPLICAS_V1ALPHA1: i32 = 1;
/// Size of a member's volume.
pub const STORAGE_SIZE: &str = "10Gi";
/// Zone of a schedule.
pub const TIME_ZONE: &str = "Etc/UTC";
/// Backups that are kept.
pub const KEEP_LAST: i32 = 7;

const SCHEDULE: &[&str] = &["spec", "backup", "schedule"];

/// The fields that creation writes.
pub static DEFAULTS: [Field; 7] = [
    Field::new(&["spec", "replicas"], |context| Some(json!(replicas(context.written)))),
    Field::new(&["spec", "version"], |_| Some(json!(NEWEST))),
    Field::new(&["spec", "storage", "size"], |_| Some(json!(STORAGE_SIZE))),
    Field::new(&["spec", "tls", "mode"], |context| Some(json!(tls_mode(context.written))))
        .warning(plain_http),
    Field::new(&["spec", "backup", "timeZone"], |_| Some(json!(TIME_ZONE))).beside(SCHEDULE),
    Field::new(&["spec", "backup", "retention"], |_| Some(json!({ "keepLast": KEEP_LAST }))).beside(SCHEDULE),
    Field::new(&["spec", "backup", "destination"], destination).beside(SCHEDULE).warning(backups_go_to),
];

const fn replicas(written: Version) -> i32 {
    match written {
        Version::V1Alpha1 => REPLICAS_V1ALPHA1,
        Version::V1 => REPLICAS,
    }
}

const fn tls_mode(written: Version) -> &'static str {
    match written {
        Version::V1Alpha1 => "Disabled",
        Version::V1 => "Automatic",
    }
}

fn plain_http(context: &Context) -> Vec<Warning> {
    let text = "clients and members talk plain HTTP, as v1alpha1 promises; v1 has spec.tls.mode: Automatic";
    if context.written == Version::V1Alpha1 { vec![Warning::new(text)] } else { Vec::new() }
}

/// `v1alpha1` has no field for it. With `generateName` the name is not known yet: validation then says that the
/// destination is missing.
fn destination(context: &Context) -> Option<Value> {
    let claim = backup_claim(context.object).filter(|_| context.written == Version::V1Alpha1)?;
    Some(json!({ "persistentVolumeClaim": { "claimName": claim } }))
}

fn backup_claim(object: &Value) -> Option<String> {
    let name = object.pointer("/metadata/name")?.as_str()?;
    (!name.is_empty()).then(|| format!("{name}-backup"))
}

fn backups_go_to(context: &Context) -> Vec<Warning> {
    let claim = backup_claim(context.object).unwrap_or_default();
    vec![Warning::new(format!(
        "backups go to the PersistentVolumeClaim {claim}; in v1 spec.backup.destination names it"
    ))]
}

#[cfg(test)]
mod tests;
