//! Objects of TDSet, each with one fault or none.

mod autoscalers;
mod changes;
mod old;
mod targets;

use super::{Base, By, Row};
use By::{Definition, Gate, Nobody};
pub use autoscalers::OF_AUTOSCALERS;
pub use changes::{CHANGES_OF_NEW, CHANGES_OF_OLD};
pub use old::OF_OLD;
pub use targets::OF_TARGETS;

pub const NEW: Base = Base {
    kind: "TDSet",
    version: "v1",
    object: "spec: {timeZone: Europe/Berlin, defaultReplicas: 2, windows: [{name: office, from: '08:00', to: '18:00', replicas: 6}], \
             target: {create: {image: shop, port: 80}}}",
};
pub const OLD: Base = Base {
    kind: "TDSet",
    version: "v1alpha1",
    object: "spec: {container: {image: shop, port: 80}, schedulingConfig: [{startTime: 8, endTime: 18, replica: 6}], \
             defaultReplica: 2}",
};

pub const OF_NEW: &[Row] = &[
    ("spec: {}", "", Nobody),
    ("spec: {timeZone: null}", "", Nobody),
    ("spec: {timeZone: Etc/UTC}", "", Nobody),
    ("spec: {timeZone: Europe/Atlantis}", "spec.timeZone", Gate),
    ("spec: {timeZone: CET-1CEST}", "spec.timeZone", Gate),
    ("spec: {timeZone: Local}", "spec.timeZone", Definition),
    ("spec: {defaultReplicas: null}", "spec.defaultReplicas", Gate),
    ("spec: {defaultReplicas: null, replicas: 1}", "spec.defaultReplicas", Gate),
    ("spec: {windows: []}", "", Nobody),
    ("spec: {windows: null}", "", Nobody),
    ("spec: {windows: [<{name: w#, from: '08:00', to: '09:00', replicas: 1}, *64>]}", "", Nobody),
    ("spec: {windows: [{name: a, from: '08:00', to: '24:00', replicas: 1}]}", "", Nobody),
    ("spec: {windows: [{name: a, from: '22:00', to: '06:00', replicas: 1}]}", "", Nobody),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '08:00', replicas: 1}]}",
        "spec.windows[0].to",
        Definition,
    ),
    ("spec: {windows: [{name: a, from: '00:00', to: '24:00', replicas: 1}]}", "", Nobody),
    ("spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, days: [Mon, Sun]}]}", "", Nobody),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, season: {first: '2026-11-01'}}]}",
        "",
        Nobody,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, season: {}}]}",
        "spec.windows[0].season",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, season: {first: '2026-02-30'}}]}",
        "spec.windows[0].season.first",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, season: {first: 26-1-1}}]}",
        "spec.windows[0].season.first",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, season: {first: '2026-03-01', last: '2026-02-01'}}]}",
        "spec.windows[0].season.last",
        Definition,
    ),
    ("spec: {exceptions: [{name: a, dates: ['2026-12-25'], replicas: 0}]}", "", Nobody),
    ("spec: {exceptions: [{name: a, dates: ['2026-12-25'], skipWindows: ['*']}]}", "", Nobody),
    ("spec: {exceptions: [{name: a, dates: ['2026-12-25'], skipWindows: [office]}]}", "", Nobody),
    (
        "spec: {exceptions: [{name: a, datesFrom: {configMapKeyRef: {name: a, key: b}}, replicas: 0}]}",
        "",
        Nobody,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-01T00:00:00Z', end: '2999-01-02T00:00:00+01:00'}, replicas: 0}]}",
        "",
        Nobody,
    ),
    ("spec: {exceptions: [{name: a, replicas: 0}]}", "spec.exceptions[0]", Definition),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], datesFrom: {configMapKeyRef: {name: a, key: b}}, replicas: 0}]}",
        "spec.exceptions[0]",
        Definition,
    ),
    ("spec: {exceptions: [{name: a, dates: ['2026-12-25']}]}", "spec.exceptions[0].replicas", Definition),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-13-01'], replicas: 0}]}",
        "spec.exceptions[0].dates[0]",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], skipWindows: [night]}]}",
        "spec.exceptions[0].skipWindows[0]",
        Gate,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-02T00:00:00Z', end: '2999-01-01T00:00:00Z'}, replicas: 0}]}",
        "spec.exceptions[0].between.end",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-01T00:00:00Z', end: '2999-01-01T00:00:00Z'}, replicas: 0}]}",
        "spec.exceptions[0].between.end",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2001-01-01T00:00:00Z', end: '2001-01-02T00:00:00Z'}, replicas: 0}]}",
        "",
        Nobody,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-01T00:00:00Z', end: '2999-01-02T00:00:00Z'}}]}",
        "spec.exceptions[0].replicas",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-01T00:00:00Z', end: '2999-01-02T00:00:00Z'}, replicas: 0, skipWindows: ['*']}]}",
        "spec.exceptions[0].skipWindows",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-01T00:00:00', end: '2999-01-02T00:00:00Z'}, replicas: 0}]}",
        "spec.exceptions[0].between.start",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-01', end: '2999-01-02T00:00:00Z'}, replicas: 0}]}",
        "spec.exceptions[0].between.start",
        Definition,
    ),
    ("spec: {ramp: {up: {step: 5, every: 30s}, down: {step: 50%, every: 1m30s}}}", "", Nobody),
    ("spec: {ramp: {up: {step: 0, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: 10001, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: 0%, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: 101%, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: '5', every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {down: {step: 5, every: 500ms}}}", "spec.ramp.down.every", Definition),
    ("spec: {ramp: {down: {step: 5, every: 25h}}}", "spec.ramp.down.every", Definition),
    ("spec: {ramp: {down: {step: 5, every: 1.5s}}}", "", Nobody),
    ("spec: {ramp: {down: {step: 5, every: 999999999999999999999h}}}", "spec.ramp.down.every", Definition),
    ("spec: null", "spec", Definition),
];
