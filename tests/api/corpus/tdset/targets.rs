//! TDSets with a target, each with one fault or none.

use super::super::{By, Row};
use By::{Definition, Gate, Nobody};

pub const OF_TARGETS: &[Row] = &[
    ("spec: {target: null}", "spec.target", Definition),
    ("spec: {target: {create: null}}", "spec.target", Definition),
    ("spec: {target: {ref: {apiVersion: apps/v1, kind: StatefulSet, name: a}}}", "spec.target", Definition),
    ("spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: StatefulSet, name: a}}}", "", Nobody),
    ("spec: {target: {create: null, ref: {apiVersion: example.com/v1, kind: Thing, name: a}}}", "", Nobody),
    (
        "spec: {target: {create: null, ref: {apiVersion: '', kind: StatefulSet, name: a}}}",
        "spec.target.ref.apiVersion",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: '', name: a}}}",
        "spec.target.ref.kind",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: StatefulSet, name: ''}}}",
        "spec.target.ref.name",
        Definition,
    ),
    (
        "spec: {target: {create: null, ref: {apiVersion: apps/v1, kind: StatefulSet}}}",
        "spec.target.ref.name",
        Definition,
    ),
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
    ("spec: {target: {create: {image: ''}}}", "spec.target.create.image", Definition),
    ("spec: {target: {create: {image: null}}}", "spec.target.create.image", Definition),
    ("spec: {target: {create: {image: a b}}}", "spec.target.create.image", Gate),
    ("spec: {target: {create: {image: <a*1025>}}}", "spec.target.create.image", Definition),
    ("spec: {target: {create: {port: 0}}}", "spec.target.create.port", Definition),
    ("spec: {target: {create: {port: 65536}}}", "spec.target.create.port", Definition),
    ("spec: {target: {create: {port: null}}}", "spec.target.create.port", Definition),
    ("spec: {target: {create: {servicePort: 0}}}", "spec.target.create.servicePort", Definition),
    ("spec: {target: {create: {command: [<a, *257>]}}}", "spec.target.create.command", Definition),
    ("spec: {target: {create: {args: [<a, *257>]}}}", "spec.target.create.args", Definition),
    ("spec: {target: {create: {args: [1]}}}", "spec.target.create.args[0]", Definition),
    ("spec: {target: {create: {env: [{name: A}, {name: A}]}}}", "spec.target.create.env[1]", Definition),
    (
        "spec: {target: {create: {imagePullPolicy: Sometimes}}}",
        "spec.target.create.imagePullPolicy",
        Definition,
    ),
    (
        "spec: {target: {create: {volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]}}}",
        "spec.target.create.volumeMounts[1]",
        Definition,
    ),
    (
        "spec: {target: {create: {readinessProbe: {httpGet: {path: /}}}}}",
        "spec.target.create.readinessProbe.httpGet.port",
        Definition,
    ),
    (
        "spec: {target: {create: {pod: {terminationGracePeriodSeconds: -1}}}}",
        "spec.target.create.pod.terminationGracePeriodSeconds",
        Definition,
    ),
    (
        "spec: {target: {create: {pod: {volumes: [{name: a}, {name: a}]}}}}",
        "spec.target.create.pod.volumes[1]",
        Definition,
    ),
    ("spec: {target: {create: {pod: {dnsPolicy: Default}}}}", "", Nobody),
    ("spec: {target: {create: {pod: {dnsPolicy: Mine}}}}", "spec.target.create.pod.dnsPolicy", Definition),
    ("spec: {target: {create: {pod: {dnsPolicy: None}}}}", "spec.target.create.pod.dnsPolicy", Definition),
    ("spec: {target: {create: {pod: {dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.1]}}}}}", "", Nobody),
];
