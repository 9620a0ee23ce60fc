//! EtcdClusters of `v1alpha1`, each with one fault or none.

use super::super::{By, Row};
use By::{Definition, Gate, Nobody};

pub const OF_OLD: &[Row] = &[
    ("spec: {}", "", Nobody),
    ("spec: {size: 0}", "", Nobody),
    ("spec: {version: v3.6.16}", "spec.version", Definition),
    ("spec: {version: 3.4.1}", "spec.version", Gate),
    ("spec: {storageSize: 10GB}", "spec.storageSize", Definition),
    ("spec: {storageSize: 0}", "spec.storageSize", Definition),
    ("spec: {backupSchedule: '0 2 * * *'}", "", Nobody),
    ("spec: {backupSchedule: '61 * * * *'}", "spec.backupSchedule", Definition),
    ("spec: {backupSchedule: '0 2 30 2 *'}", "spec.backupSchedule", Gate),
    (
        "{metadata: {name: null, generateName: any-}, spec: {backupSchedule: '@daily'}}",
        "metadata.annotations[conversion.gatehouse.dev/spec.backup.destination]",
        Gate,
    ),
    (
        r#"{metadata: {name: null, generateName: any-, annotations: {conversion.gatehouse.dev/spec.backup.destination.persistentVolumeClaim.claimName: '"backups"'}},
            spec: {backupSchedule: '@daily'}}"#,
        "",
        Nobody,
    ),
    ("metadata: {name: <a*46>}", "metadata.name", Definition),
    ("metadata: {name: a.b}", "metadata.name", Definition),
    ("metadata: {annotations: {conversion.gatehouse.dev/spec.tls.mode: nonsense}}", "", Nobody),
    (
        r#"metadata: {annotations: {conversion.gatehouse.dev/spec.tls.mode: '"Secrets"'}}"#,
        "metadata.annotations[conversion.gatehouse.dev/spec.tls.secrets]",
        Gate,
    ),
];
