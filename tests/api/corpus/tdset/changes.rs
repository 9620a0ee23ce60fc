//! Changes of TDSets, each with one fault or none.

use super::super::{By, Edit};
use By::{Definition, Gate, Nobody};

/// What an object is, what it is changed to, the status it has meanwhile, and what is refused.
pub const CHANGES_OF_NEW: &[Edit] = &[
    ("", "metadata: {labels: {a: b}}", "", "", Nobody),
    ("", "spec: {defaultReplicas: 3}", "", "", Nobody),
    ("", "spec: {timeZone: America/New_York}", "", "", Nobody),
    ("", "spec: {target: {create: {image: other}}}", "", "", Nobody),
    (
        "",
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
        "",
        "spec.target.ref",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
        "spec: {target: {ref: null, create: {image: a, port: 80}}}",
        "",
        "spec.target.create",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
        "spec: {target: {ref: {kind: StatefulSet}}}",
        "",
        "spec.target.ref.kind",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
        "spec: {target: {ref: {name: b}}}",
        "",
        "spec.target.ref.name",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
        "spec: {target: {ref: {apiVersion: apps/v2}}}",
        "",
        "",
        Nobody,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: a}}}",
        "spec: {target: {ref: {apiVersion: example.com/v1}}}",
        "",
        "spec.target.ref.apiVersion",
        Gate,
    ),
    (
        "",
        "spec: {windows: [{name: office, from: '08:00', to: '08:00', replicas: 6}]}",
        "",
        "spec.windows[0].to",
        Definition,
    ),
    (
        "",
        "spec: {exceptions: [{name: a, between: {start: '2001-01-01T00:00:00Z', end: '2001-01-02T00:00:00Z'}, replicas: 0}]}",
        "",
        "",
        Nobody,
    ),
];

pub const CHANGES_OF_OLD: &[Edit] = &[
    ("", "spec: {defaultReplica: 3}", "", "", Nobody),
    ("", "spec: {container: {image: other}}", "", "", Nobody),
    ("", "spec: {defaultReplica: -3}", "", "spec.defaultReplica", Definition),
    (
        "",
        "spec: {schedulingConfig: [{startTime: 8, endTime: 8, replica: 6}]}",
        "",
        "spec.schedulingConfig[0].endTime",
        Gate,
    ),
    (
        "",
        "spec: {schedulingConfig: [{startTime: 8, endTime: 30, replica: 6}]}",
        "",
        "spec.schedulingConfig[0].endTime",
        Definition,
    ),
];
