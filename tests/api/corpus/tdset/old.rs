//! TDSets of `v1alpha1`, each with one fault or none.

use super::super::{By, Row};
use By::{Definition, Gate, Nobody};

pub const OF_OLD: &[Row] = &[
    ("spec: {}", "", Nobody),
    ("spec: {service: {port: 80}, intervalMint: 5}", "", Nobody),
    ("spec: {schedulingConfig: []}", "", Nobody),
    ("spec: {schedulingConfig: [{startTime: 22, endTime: 6, replica: 1}]}", "", Nobody),
    ("spec: {container: null}", "spec.container", Definition),
    ("spec: {container: {image: ''}}", "spec.container.image", Definition),
    ("spec: {container: {image: a b}}", "spec.container.image", Gate),
    ("spec: {container: {image: <a*1025>}}", "spec.container.image", Definition),
    ("spec: {container: {port: 0}}", "spec.container.port", Definition),
    ("spec: {container: {port: 65536}}", "spec.container.port", Definition),
    ("spec: {container: {port: null}}", "spec.container.port", Definition),
    ("spec: {container: {port: '80'}}", "spec.container.port", Definition),
    ("spec: {service: {port: 0}}", "spec.service.port", Definition),
    ("spec: {service: {}}", "spec.service.port", Definition),
    ("spec: {schedulingConfig: null}", "spec.schedulingConfig", Definition),
    ("spec: {schedulingConfig: {}}", "spec.schedulingConfig", Definition),
    (
        "spec: {schedulingConfig: [<{startTime: 1, endTime: 2, replica: 1}, *65>]}",
        "spec.schedulingConfig",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 24, endTime: 2, replica: 1}]}",
        "spec.schedulingConfig[0].startTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: -1, endTime: 2, replica: 1}]}",
        "spec.schedulingConfig[0].startTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 1.5, endTime: 2, replica: 1}]}",
        "spec.schedulingConfig[0].startTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: '8', endTime: 2, replica: 1}]}",
        "spec.schedulingConfig[0].startTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{endTime: 2, replica: 1}]}",
        "spec.schedulingConfig[0].startTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 8, endTime: 24, replica: 1}]}",
        "spec.schedulingConfig[0].endTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 8, replica: 1}]}",
        "spec.schedulingConfig[0].endTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 8, endTime: 8, replica: 1}]}",
        "spec.schedulingConfig[0].endTime",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 8, endTime: 9, replica: -1}]}",
        "spec.schedulingConfig[0].replica",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 8, endTime: 9, replica: 10001}]}",
        "spec.schedulingConfig[0].replica",
        Definition,
    ),
    (
        "spec: {schedulingConfig: [{startTime: 8, endTime: 9}]}",
        "spec.schedulingConfig[0].replica",
        Definition,
    ),
    ("spec: {schedulingConfig: [5]}", "spec.schedulingConfig[0]", Definition),
    ("spec: {defaultReplica: -1}", "spec.defaultReplica", Definition),
    ("spec: {defaultReplica: 10001}", "spec.defaultReplica", Definition),
    ("spec: {defaultReplica: null}", "spec.defaultReplica", Definition),
    ("spec: {intervalMint: 0}", "spec.intervalMint", Definition),
    ("spec: {intervalMint: 1441}", "spec.intervalMint", Definition),
    ("spec: {intervalMint: often}", "spec.intervalMint", Definition),
    ("spec: null", "spec", Definition),
    (
        r#"metadata: {annotations: {conversion.gatehouse.dev/spec.timeZone: '"Europe/Atlantis"'}}"#,
        "metadata.annotations[conversion.gatehouse.dev/spec.timeZone]",
        Gate,
    ),
    (r#"metadata: {annotations: {conversion.gatehouse.dev/spec.timeZone: '"Europe/Berlin"'}}"#, "", Nobody),
];
