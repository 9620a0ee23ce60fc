//! TDSets of `v1alpha1`, each with one fault or none.

use super::super::{By, Row};
use By::{Definition, Gate, Nobody};

pub const OF_OLD: &[Row] = &[
    ("spec: {}", "", Nobody),
    ("spec: {service: {port: 80}, intervalMint: 5}", "", Nobody),
    ("spec: {schedulingConfig: []}", "", Nobody),
    ("spec: {schedulingConfig: [{startTime: 22, endTime: 6, replica: 1}]}", "", Nobody),
    ("spec: {container: {image: a b}}", "spec.container.image", Gate),
    (
        "spec: {schedulingConfig: [{startTime: 8, endTime: 8, replica: 1}]}",
        "spec.schedulingConfig[0].endTime",
        Definition,
    ),
    ("spec: null", "spec", Definition),
    (
        r#"metadata: {annotations: {conversion.gatehouse.dev/spec.timeZone: '"Europe/Atlantis"'}}"#,
        "metadata.annotations[conversion.gatehouse.dev/spec.timeZone]",
        Gate,
    ),
    (r#"metadata: {annotations: {conversion.gatehouse.dev/spec.timeZone: '"Europe/Berlin"'}}"#, "", Nobody),
];
