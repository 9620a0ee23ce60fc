//! Changes of EtcdClusters, each with one fault or none.

use super::super::{By, Edit};
use By::{Definition, Gate, Nobody};

/// What an object is, what it is changed to, the status it has meanwhile, and what is refused.
pub const CHANGES_OF_NEW: &[Edit] = &[
    ("", "spec: {replicas: 5}", "", "", Nobody),
    ("", "spec: {replicas: 0}", "", "", Nobody),
    ("", "metadata: {labels: {a: b}}", "", "", Nobody),
    ("", "spec: {storage: {size: 20Gi}}", "", "", Nobody),
    ("", "spec: {storage: {size: 10240Mi}}", "", "", Nobody),
    ("", "spec: {storage: {size: 5Gi}}", "", "spec.storage.size", Definition),
    ("", "spec: {storage: {storageClassName: slow}}", "", "spec.storage.storageClassName", Definition),
    (
        "spec: {storage: {storageClassName: fast}}",
        "spec: {storage: {storageClassName: null}}",
        "",
        "spec.storage.storageClassName",
        Definition,
    ),
    ("spec: {storage: {storageClassName: ''}}", "spec: {storage: {storageClassName: null}}", "", "", Nobody),
    ("", "spec: {storage: {medium: Memory}}", "", "spec.storage.medium", Definition),
    ("", "spec: {storage: {medium: PersistentVolume}}", "", "", Nobody),
    ("", "spec: {tls: {mode: Disabled}}", "", "spec.tls.mode", Definition),
    ("spec: {tls: {mode: Disabled}}", "spec: {tls: {mode: Automatic}}", "", "spec.tls.mode", Definition),
    ("", "spec: {tls: null}", "", "", Nobody),
    ("", "spec: {auth: {enabled: true}}", "", "spec.auth.enabled", Definition),
    ("", "spec: {auth: {enabled: false}}", "", "", Nobody),
    ("spec: {auth: {enabled: true}}", "spec: {auth: null}", "", "spec.auth.enabled", Definition),
    ("", "spec: {version: 3.6.15}", "", "", Nobody),
    ("", "spec: {version: 3.7.3}", "", "", Nobody),
    ("", "spec: {version: 3.5.33}", "", "spec.version", Gate),
    ("spec: {version: 3.5.33}", "spec: {version: 3.7.3}", "", "spec.version", Gate),
    ("spec: {version: 3.5.26}", "spec: {version: 3.6.16}", "", "spec.version", Gate),
    ("spec: {version: 3.6.10}", "spec: {version: 3.7.3}", "", "spec.version", Gate),
    ("", "spec: {version: 3.7.3}", "{version: 3.6.10}", "spec.version", Gate),
    ("", "spec: {version: 3.6.17}", "{version: 3.6.14, operation: {type: Upgrade}}", "spec.version", Gate),
    (
        "",
        "spec: {replicas: 1}",
        "{conditions: [{type: QuorumLost, status: 'True', reason: QuorumLost, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}",
        "spec.replicas",
        Definition,
    ),
    ("", "spec: {replicas: 1}", "{operation: {type: ScaleOut}}", "", Nobody),
    ("", "spec: {replicas: 5}", "{operation: {type: ScaleOut}}", "", Nobody),
    ("", "spec: {replicas: 5}", "{operation: {type: ScaleIn}}", "", Nobody),
    ("", "spec: {replicas: 1}", "{operation: {type: Recover}}", "spec.replicas", Definition),
    ("", "spec: {replicas: 0}", "{operation: {type: Recover}}", "", Nobody),
    ("", "spec: {restore: {from: {name: latest}}}", "", "spec.restore", Definition),
    ("", "spec: {replicas: 8}", "", "spec.replicas", Definition),
    ("", "spec: {backup: {schedule: '@daily'}}", "", "spec.backup.destination", Definition),
];

pub const CHANGES_OF_OLD: &[Edit] = &[
    ("", "spec: {size: 5}", "", "", Nobody),
    ("", "spec: {size: 9}", "", "spec.size", Definition),
    ("", "spec: {storageSize: 20Gi}", "", "", Nobody),
    ("", "spec: {storageSize: 5Gi}", "", "spec.storageSize", Definition),
    ("", "spec: {version: 3.5.33}", "", "spec.version", Gate),
    ("", "spec: {backupSchedule: '@daily'}", "", "", Nobody),
    ("", "spec: {backupSchedule: '@never'}", "", "spec.backupSchedule", Definition),
    ("spec: {backupSchedule: '@daily'}", "spec: {backupSchedule: null}", "", "", Nobody),
    ("", "spec: {size: 1}", "{operation: {type: ScaleOut}}", "", Nobody),
    ("", "spec: {size: 1}", "{operation: {type: Recover}}", "spec.size", Gate),
];
