//! TDSets with a target, each with one fault or none.

use super::super::{By, Row};
use By::{Definition, Gate, Nobody};

pub const OF_TARGETS: &[Row] = &[
    ("spec: {target: {create: null}}", "spec.target", Definition),
    ("spec: {target: {ref: {apiVersion: apps/v1, kind: StatefulSet, name: a}}}", "spec.target", Definition),
    ("spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: StatefulSet, name: a}}}", "", Nobody),
    ("spec: {target: {create: null, ref: {apiVersion: example.com/v1, kind: Thing, name: a}}}", "", Nobody),
    (
        "spec: {target: {create: null, ref: {apiVersion: gatehouse.dev/v1, kind: EtcdCluster, name: a}}}",
        "spec.target.ref.kind",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: DaemonSet, name: a}}}",
        "spec.target.ref.kind",
        Gate,
    ),
    ("spec: {target: {create: {image: a b}}}", "spec.target.create.image", Gate),
    ("spec: {target: {create: {pod: {schedulerName: second, runtimeClassName: sandbox}}}}", "", Nobody),
    ("spec: {target: {create: {pod: {schedulerName: a_b}}}}", "spec.target.create.pod.schedulerName", Gate),
    (
        "spec: {target: {create: {pod: {runtimeClassName: ''}}}}",
        "spec.target.create.pod.runtimeClassName",
        Gate,
    ),
    ("spec: {target: {create: {pod: {priorityClassName: '', serviceAccountName: ''}}}}", "", Nobody),
    (
        "spec: {target: {create: {pod: {priorityClassName: High}}}}",
        "spec.target.create.pod.priorityClassName",
        Gate,
    ),
    ("spec: {target: {create: {pod: {labels: {a b: x}}}}}", "spec.target.create.pod.labels[a b]", Gate),
    ("spec: {target: {create: {pod: {dnsPolicy: Default}}}}", "", Nobody),
    ("spec: {target: {create: {pod: {dnsPolicy: None}}}}", "spec.target.create.pod.dnsPolicy", Definition),
    ("spec: {target: {create: {pod: {dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.1]}}}}}", "", Nobody),
];
