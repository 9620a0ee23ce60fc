//! The rules in CEL that the API server's policies enforce on DatabaseMigrations. Pure.
//!
//! What an object has done is done by Jobs with Secrets of its namespace, and a plan that asks for approval is run only
//! once it is approved. So its author needs the right to do the same without us.

use crate::api::policy::{AuthorRule, Workload};

/// A Job runs the scripts.
pub const WORKLOADS: [Workload; 1] =
    [Workload { group: "batch", resource: "jobs", asked: "true", field: "spec.scripts" }];

/// What else an author has to be allowed. What is stored may be of another type, such as a list, of which no field can be
/// asked for.
pub const AUTHOR_RULES: [AuthorRule; 4] = [
    AuthorRule {
        holds: "type(object.spec) != map || !has(object.spec.database) || \
                !has(object.spec.database.credentialsSecret) || \
                authorizer.group('').resource('secrets').namespace(request.namespace)\
                .name(object.spec.database.credentialsSecret.name).check('get').allowed()",
        message: "spec.database.credentialsSecret: names a Secret that its author may not read",
    },
    AuthorRule {
        holds: "(!has(object.spec.database.tls) || !has(object.spec.database.tls.caSecret) && \
                !has(object.spec.database.tls.clientCertSecret)) && \
                object.spec.scripts.all(script, !has(script.up.secretKeyRef) && \
                (!has(script.down) || !has(script.down.secretKeyRef))) || \
                authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()",
        message: "spec: names Secrets for scripts or certificates, and its author may not read the Secrets of the namespace",
    },
    AuthorRule {
        holds: "!has(object.spec.approval) || !has(object.spec.approval.planHash) || \
                object.spec.approval.planHash == '' || \
                (oldObject != null && type(oldObject.spec) == map && has(oldObject.spec.approval) && \
                has(oldObject.spec.approval.planHash) && \
                object.spec.approval.planHash == oldObject.spec.approval.planHash) || \
                authorizer.group('gatehouse.dev').resource('databasemigrations').namespace(request.namespace)\
                .name(object.metadata.name).check('approve').allowed()",
        message: "spec.approval.planHash: only users who may approve databasemigrations (verb approve) can set it",
    },
    AuthorRule {
        holds: "oldObject == null || type(oldObject.spec) != map || !has(oldObject.spec.approval) || \
                !oldObject.spec.approval.required || \
                (has(object.spec.approval) && object.spec.approval.required) || \
                authorizer.group('gatehouse.dev').resource('databasemigrations').namespace(request.namespace)\
                .name(object.metadata.name).check('approve').allowed()",
        message: "spec.approval.required: only users who may approve databasemigrations (verb approve) can take it back",
    },
];
