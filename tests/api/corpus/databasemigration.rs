//! Objects of DatabaseMigration, each with one fault or none.

use super::{Base, By, Edit, Row};
use By::{Definition, Gate, Nobody};

pub const NEW: Base = Base {
    kind: "DatabaseMigration",
    version: "v1",
    object: "spec: {suspend: true, database: {engine: PostgreSQL, host: pg, port: 5432, name: shop, credentialsSecret: {name: db}, tls: {mode: Require}}, \
             scripts: [{id: '001', kind: Schema, up: {inline: CREATE TABLE a (b int)}}]}",
};
pub const OLD: Base = Base {
    kind: "DatabaseMigration",
    version: "v1alpha1",
    object: "spec: {database: {type: postgresql, connectionSecret: db, host: pg, port: 5432, database: shop, sslMode: require}, \
             migration: {scripts: [{name: '001', type: schema, source: 'configmap://nowhere/001.sql'}]}}",
};

pub const OF_NEW: &[Row] = &[
    ("spec: {}", "", Nobody),
    ("spec: {database: {host: null}}", "spec.database.host", Definition),
    ("spec: {database: {host: 'postgres://pg'}}", "spec.database.host", Gate),
    ("spec: {database: {port: null}}", "", Nobody),
    ("spec: {database: {name: null}}", "spec.database.name", Definition),
    ("spec: {database: {credentialsSecret: null}}", "spec.database.credentialsSecret", Definition),
    ("spec: {database: {tls: {mode: VerifyFull}}}", "spec.database.tls.mode", Definition),
    ("spec: {database: {tls: {mode: VerifyFull, caSecret: {name: ca}}}}", "", Nobody),
    ("spec: {database: {tls: {mode: Disable, caSecret: {name: ca}}}}", "spec.database.tls.mode", Definition),
    ("spec: {database: {file: {claimName: a, path: b}}}", "spec.database.file", Definition),
    ("spec: {database: {engine: SQLite, file: {claimName: a, path: b}}}", "spec.database.engine", Definition),
    (
        "spec: {database: {engine: SQLite, host: null, port: null, name: null, credentialsSecret: null, tls: null, file: {claimName: a, path: b/c.db}}}",
        "",
        Nobody,
    ),
    (
        "spec: {database: {engine: SQLite, host: null, port: null, name: null, credentialsSecret: null, tls: null}}",
        "spec.database.file",
        Definition,
    ),
    ("spec: {database: {engine: MariaDB}, history: {schema: a}}", "spec.history.schema", Gate),
    ("spec: {scripts: [<{id: 's#', kind: Data, up: {inline: SELECT 1}}, *256>]}", "", Nobody),
    ("spec: {scripts: [{id: a, kind: Data, up: {}}]}", "spec.scripts[0].up", Definition),
    ("spec: {scripts: [{id: a, kind: Data, up: {inline: ' '}}]}", "spec.scripts[0].up.inline", Gate),
    (
        "spec: {scripts: [{id: a, kind: Data, up: {inline: SELECT 1, configMapKeyRef: {name: a, key: b}}}]}",
        "spec.scripts[0].up",
        Definition,
    ),
    (
        "spec: {scripts: [{id: a, kind: Data, up: {configMapKeyRef: {name: A, key: b}}}]}",
        "spec.scripts[0].up.configMapKeyRef.name",
        Gate,
    ),
    (
        "spec: {scripts: [{id: a, kind: Data, idempotent: true, up: {inline: SELECT 1}}]}",
        "spec.scripts[0].idempotent",
        Definition,
    ),
    (
        "spec: {scripts: [{id: a, kind: Check, up: {inline: SELECT 1}, down: {inline: SELECT 2}}]}",
        "spec.scripts[0].down",
        Definition,
    ),
    (
        "spec: {scripts: [{id: a, kind: Data, dependsOn: [b], up: {inline: SELECT 1}}]}",
        "spec.scripts[0].dependsOn[0]",
        Gate,
    ),
    (
        "spec: {scripts: [{id: a, kind: Data, up: {inline: 'BEGIN; SELECT 1'}}]}",
        "spec.scripts[0].up.inline",
        Gate,
    ),
    (
        "spec: {scripts: [{id: a, kind: Schema, up: {inline: CREATE INDEX CONCURRENTLY a ON b (c)}}]}",
        "spec.scripts[0].up.inline",
        Gate,
    ),
    (
        "spec: {scripts: [{id: a, kind: Schema, transaction: None, up: {inline: CREATE INDEX CONCURRENTLY a ON b (c)}}]}",
        "",
        Nobody,
    ),
    (
        "spec: {scripts: [{id: a, kind: Data, up: {inline: SELECT 1}, timeouts: {statement: soon}}]}",
        "spec.scripts[0].timeouts.statement",
        Definition,
    ),
    (
        "spec: {scripts: [{id: a, kind: Data, up: {inline: SELECT 1}, timeouts: {lock: 1h}}]}",
        "spec.scripts[0].timeouts.lock",
        Gate,
    ),
    ("spec: {baseline: '000'}", "spec.baseline", Gate),
    ("spec: {baseline: '001'}", "", Nobody),
    ("spec: {scripts: [{id: a, kind: Schema, up: {inline: '-- done on another engine'}}]}", "", Nobody),
    (
        "spec: {scripts: [{id: a, kind: Check, up: {inline: '-- nothing'}}]}",
        "spec.scripts[0].up.inline",
        Gate,
    ),
    (
        r#"spec: {scripts: [{id: a, kind: Schema, up: {inline: "-- +goose Up\nSELECT 1;\n-- +goose Down\nSELECT 2"}}]}"#,
        "spec.scripts[0].up.inline",
        Gate,
    ),
    (
        r#"spec: {scripts: [{id: a, kind: Schema, up: {inline: SELECT 1}, down: {inline: "-- migrate:down\nSELECT 2"}}]}"#,
        "spec.scripts[0].down.inline",
        Gate,
    ),
    ("spec: {mode: Plan}", "", Nobody),
    ("spec: {mode: Rehearse}", "", Nobody),
    ("spec: {mode: Rehearse, database: {engine: MariaDB}}", "spec.mode", Gate),
    ("spec: {retry: {backoff: 2h}}", "spec.retry.backoff", Gate),
    ("spec: {onFailure: RevertThisRun}", "spec.scripts[0].down", Gate),
    ("spec: {deletionPolicy: Revert}", "spec.scripts[0].down", Gate),
    ("spec: {runner: {deadline: 1s}}", "spec.runner.deadline", Gate),
    ("spec: {runner: {labels: {a b: x}}}", "spec.runner.labels[a b]", Gate),
    ("spec: {runner: {annotations: {a b: x}}}", "spec.runner.annotations[a b]", Gate),
    ("spec: {runner: {affinity: {nodeAffinity: {}}}}", "", Nobody),
    (
        "spec: {runner: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}",
        "",
        Nobody,
    ),
    (
        "spec: {runner: {priorityClassName: high, schedulerName: second, runtimeClassName: sandbox}}",
        "",
        Nobody,
    ),
    ("spec: {runner: {priorityClassName: High}}", "spec.runner.priorityClassName", Gate),
    ("spec: {runner: {schedulerName: a_b}}", "spec.runner.schedulerName", Gate),
    ("spec: {runner: {runtimeClassName: .}}", "spec.runner.runtimeClassName", Gate),
    ("spec: {runner: {serviceAccountName: a_b}}", "spec.runner.serviceAccountName", Gate),
    ("spec: {runner: {dnsPolicy: Default}}", "", Nobody),
    ("spec: {runner: {dnsPolicy: None}}", "spec.runner.dnsPolicy", Definition),
    ("spec: {runner: {dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.1]}}}", "", Nobody),
    ("spec: {runner: {dnsConfig: {nameservers: [dns]}}}", "spec.runner.dnsConfig.nameservers[0]", Definition),
    ("spec: {runner: {dnsConfig: {searches: [a b]}}}", "spec.runner.dnsConfig.searches[0]", Gate),
    ("spec: {runner: {containerSecurityContext: {readOnlyRootFilesystem: true}}}", "", Nobody),
    ("spec: {runner: {imagePullPolicy: Always}}", "", Nobody),
    ("metadata: {name: <a*45>}", "metadata.name", Gate),
];

pub const OF_OLD: &[Row] = &[
    ("spec: {}", "", Nobody),
    ("spec: {database: {sslMode: null, port: null}}", "", Nobody),
    ("spec: {database: {sslMode: verify-full}}", "spec.database.sslMode", Gate),
    (
        "spec: {migration: {scripts: [{name: a, type: data, source: 'inline://COMMIT'}]}}",
        "spec.migration.scripts[0].source",
        Gate,
    ),
    (
        "spec: {migration: {strategy: shadow-table, parallel: true, batchSize: 7}, rollback: {automatic: true, strategy: graceful}, \
         notifications: {slack: {webhook: a}}, validation: {preChecks: [{type: connection}], performanceThresholds: {maxDowntime: 0s, maxRows: 7}, other: [a]}}",
        "",
        Nobody,
    ),
    (
        "spec: {validation: {performanceThresholds: {maxMigrationTime: 1s}}}",
        "spec.validation.performanceThresholds.maxMigrationTime",
        Gate,
    ),
];

pub const CHANGES_OF_NEW: &[Edit] = &[
    ("", "spec: {database: {host: other}}", "", "", Nobody),
    (
        "",
        "spec: {database: {host: other}}",
        "{appliedCount: 1, applied: [{id: '001'}]}",
        "spec.database.host",
        Gate,
    ),
    (
        "",
        "spec: {database: {credentialsSecret: {name: other}}}",
        "{appliedCount: 1, applied: [{id: '001'}]}",
        "",
        Nobody,
    ),
    (
        "",
        "spec: {history: {series: other}}",
        "{appliedCount: 1, applied: [{id: '001'}]}",
        "spec.history.series",
        Gate,
    ),
    (
        "",
        "spec: {scripts: [{id: '001', kind: Schema, up: {inline: CREATE TABLE a (b bigint)}}]}",
        "{appliedCount: 1, applied: [{id: '001'}]}",
        "spec.scripts[0].up",
        Gate,
    ),
    (
        "",
        "spec: {scripts: [{id: '002', kind: Schema, up: {inline: CREATE TABLE a (b bigint)}}]}",
        "{appliedCount: 1, applied: [{id: '001'}]}",
        "spec.scripts",
        Gate,
    ),
];

pub const CHANGES_OF_OLD: &[Edit] = &[
    ("", "spec: {migration: {batchSize: 9}}", "", "", Nobody),
    (
        "",
        "spec: {database: {database: other}}",
        "{appliedCount: 1, applied: [{id: '001'}]}",
        "spec.database.database",
        Gate,
    ),
];
