//! By which names clients reach an EtcdCluster, and by which Service.

use super::super::{By, Row};
use By::{Definition, Gate, Nobody};

/// What is changed in the base, the fields that are refused, and who refuses.
pub const OF_CLIENTS: &[Row] = &[
    ("spec: {tls: {mode: Secrets}}", "spec.tls.secrets", Definition),
    ("spec: {tls: {extraNames: [etcd.example.com, '*.example.com', 192.0.2.7, '2001:db8::1']}}", "", Nobody),
    ("spec: {tls: {extraNames: [etcd.example.com:2379]}}", "spec.tls.extraNames[0]", Gate),
    (
        "spec: {tls: {extraNames: [192.0.2.300, 192.0.2]}}",
        "spec.tls.extraNames[0], spec.tls.extraNames[1]",
        Gate,
    ),
    ("spec: {tls: {extraNames: [<a*64>.example.com]}}", "spec.tls.extraNames[0]", Gate),
    ("spec: {tls: {extraNames: [a, '*.*.example.com']}}", "spec.tls.extraNames[1]", Gate),
    ("spec: {tls: {mode: Disabled, extraNames: [etcd.example.com]}}", "spec.tls.extraNames", Gate),
    ("spec: {clientService: {type: LoadBalancer, annotations: {example.com/pool: outside}}}", "", Nobody),
    ("spec: {clientService: {annotations: {'a b': c}}}", "spec.clientService.annotations[a b]", Gate),
    (
        "spec: {clientService: {annotations: {gatehouse.dev/a: b}}}",
        "spec.clientService.annotations[gatehouse.dev/a]",
        Gate,
    ),
];
