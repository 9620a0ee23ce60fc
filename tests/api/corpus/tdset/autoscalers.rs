//! TDSets with an autoscaler, and with what is said of others' objects, each with one fault or none.

use super::super::{By, Row};
use By::{Definition, Gate, Nobody};

pub const OF_AUTOSCALERS: &[Row] = &[
    ("spec: {autoscaler: {name: a}}", "", Nobody),
    ("spec: {autoscaler: {kind: HorizontalPodAutoscaler, name: a}}", "", Nobody),
    ("spec: {autoscaler: {kind: ScaledObject, name: a}}", "", Nobody),
    ("spec: {autoscaler: {name: a, maxReplicas: 6}}", "", Nobody),
    ("spec: {autoscaler: {name: a, maxReplicas: 5}}", "spec.windows[0].replicas", Gate),
    (
        "spec: {autoscaler: {name: a, maxReplicas: 1}, windows: [{name: a, from: '08:00', to: '09:00', replicas: 1}]}",
        "spec.autoscaler.maxReplicas",
        Gate,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, maxReplicas: 2}]}",
        "spec.windows[0].maxReplicas",
        Gate,
    ),
    (
        "spec: {autoscaler: {name: a, maxReplicas: 9}, exceptions: [{name: e, dates: ['2999-12-25'], skipWindows: ['*'], maxReplicas: 9}]}",
        "spec.exceptions[0].maxReplicas",
        Gate,
    ),
    ("spec: {autoscaler: {name: a, onDeletion: {minReplicas: 1}}}", "", Nobody),
    (
        "spec: {autoscaler: {name: a, onDeletion: {minReplicas: 3, maxReplicas: 2}}}",
        "spec.autoscaler.onDeletion.maxReplicas",
        Definition,
    ),
    (
        "spec: {autoscaler: {name: a}, target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: a, replicasOnDeletion: 1}}}",
        "spec.target.ref.replicasOnDeletion",
        Gate,
    ),
    ("spec: {controllerPolicy: Override}", "", Nobody),
    ("spec: {onUnreadableDates: Hold}", "", Nobody),
    (
        "spec: {defaultReplicas: null, target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: web}}}",
        "",
        Nobody,
    ),
    (
        "spec: {defaultReplicas: null, autoscaler: {name: web}, target: {create: null, ref: {apiVersion: apps/v1, kind: Deployment, name: web}}}",
        "spec.defaultReplicas",
        Gate,
    ),
];
