//! Objects of TDSet, each with one fault or none.

mod autoscalers;
mod changes;
mod old;
mod targets;

use super::{Base, By, Row};
use By::{Anybody, Definition, Gate, Nobody};
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
    ("spec: {timeZone: '+02:00'}", "spec.timeZone", Definition),
    ("spec: {timeZone: ''}", "spec.timeZone", Definition),
    ("spec: {timeZone: <a*65>}", "spec.timeZone", Definition),
    ("spec: {timeZone: 1}", "spec.timeZone", Definition),
    ("spec: {suspend: 'yes'}", "spec.suspend", Definition),
    ("spec: {suspend: true}", "", Nobody),
    ("spec: {defaultReplicas: null}", "spec.defaultReplicas", Gate),
    ("spec: {defaultReplicas: -1}", "spec.defaultReplicas", Definition),
    ("spec: {defaultReplicas: 10001}", "spec.defaultReplicas", Definition),
    ("spec: {defaultReplicas: 10000}", "", Nobody),
    ("spec: {defaultReplicas: many}", "spec.defaultReplicas", Definition),
    ("spec: {defaultReplicas: null, replicas: 1}", "spec.defaultReplicas", Gate),
    // Kubernetes 1.34 does not judge the format of an integer; 1.36 does.
    (
        "spec: {target: {create: {pod: {affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3000000000, podAffinityTerm: {topologyKey: a}}]}}}}}}",
        "spec.target.create.pod.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
        Anybody,
    ),
    ("spec: {resyncMinutes: 3000000000}", "spec.resyncMinutes", Definition),
    ("spec: {overlap: First}", "spec.overlap", Definition),
    ("spec: {overlap: Max}", "", Nobody),
    ("spec: {windows: []}", "", Nobody),
    ("spec: {windows: null}", "", Nobody),
    ("spec: {windows: [<{name: w#, from: '08:00', to: '09:00', replicas: 1}, *64>]}", "", Nobody),
    (
        "spec: {windows: [<{name: w#, from: '08:00', to: '09:00', replicas: 1}, *65>]}",
        "spec.windows",
        Definition,
    ),
    ("spec: {windows: {}}", "spec.windows", Definition),
    ("spec: {windows: [{from: '08:00', to: '09:00', replicas: 1}]}", "spec.windows[0].name", Definition),
    (
        "spec: {windows: [{name: '', from: '08:00', to: '09:00', replicas: 1}]}",
        "spec.windows[0].name",
        Definition,
    ),
    (
        "spec: {windows: [{name: A, from: '08:00', to: '09:00', replicas: 1}]}",
        "spec.windows[0].name",
        Definition,
    ),
    (
        "spec: {windows: [{name: <a*64>, from: '08:00', to: '09:00', replicas: 1}]}",
        "spec.windows[0].name",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1}, {name: a, from: '10:00', to: '11:00', replicas: 1}]}",
        "spec.windows[1]",
        Definition,
    ),
    ("spec: {windows: [{name: a, to: '09:00', replicas: 1}]}", "spec.windows[0].from", Definition),
    (
        "spec: {windows: [{name: a, from: '8:00', to: '09:00', replicas: 1}]}",
        "spec.windows[0].from",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '24:00', to: '09:00', replicas: 1}]}",
        "spec.windows[0].from",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:60', to: '09:00', replicas: 1}]}",
        "spec.windows[0].from",
        Definition,
    ),
    ("spec: {windows: [{name: a, from: 8, to: '09:00', replicas: 1}]}", "spec.windows[0].from", Definition),
    ("spec: {windows: [{name: a, from: '08:00', replicas: 1}]}", "spec.windows[0].to", Definition),
    ("spec: {windows: [{name: a, from: '08:00', to: '24:00', replicas: 1}]}", "", Nobody),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '24:01', replicas: 1}]}",
        "spec.windows[0].to",
        Definition,
    ),
    ("spec: {windows: [{name: a, from: '22:00', to: '06:00', replicas: 1}]}", "", Nobody),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '08:00', replicas: 1}]}",
        "spec.windows[0].to",
        Definition,
    ),
    ("spec: {windows: [{name: a, from: '00:00', to: '24:00', replicas: 1}]}", "", Nobody),
    ("spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, days: [Mon, Sun]}]}", "", Nobody),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, days: []}]}",
        "spec.windows[0].days",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, days: [Mon, Mon]}]}",
        "spec.windows[0].days[1]",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, days: [Montag]}]}",
        "spec.windows[0].days[0]",
        Definition,
    ),
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
    ("spec: {windows: [{name: a, from: '08:00', to: '09:00'}]}", "spec.windows[0].replicas", Definition),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: -1}]}",
        "spec.windows[0].replicas",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 10001}]}",
        "spec.windows[0].replicas",
        Definition,
    ),
    (
        "spec: {windows: [{name: a, from: '08:00', to: '09:00', replicas: 1, enabled: 1}]}",
        "spec.windows[0].enabled",
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
    (
        "spec: {exceptions: [<{name: e#, dates: ['2026-12-25'], replicas: 0}, *65>]}",
        "spec.exceptions",
        Definition,
    ),
    ("spec: {exceptions: [{dates: ['2026-12-25'], replicas: 0}]}", "spec.exceptions[0].name", Definition),
    (
        "spec: {exceptions: [{name: A, dates: ['2026-12-25'], replicas: 0}]}",
        "spec.exceptions[0].name",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], replicas: 0}, {name: a, dates: ['2026-12-26'], replicas: 0}]}",
        "spec.exceptions[1]",
        Definition,
    ),
    ("spec: {exceptions: [{name: a, replicas: 0}]}", "spec.exceptions[0]", Definition),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], datesFrom: {configMapKeyRef: {name: a, key: b}}, replicas: 0}]}",
        "spec.exceptions[0]",
        Definition,
    ),
    ("spec: {exceptions: [{name: a, dates: ['2026-12-25']}]}", "spec.exceptions[0].replicas", Definition),
    ("spec: {exceptions: [{name: a, dates: [], replicas: 0}]}", "spec.exceptions[0].dates", Definition),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-13-01'], replicas: 0}]}",
        "spec.exceptions[0].dates[0]",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: [Christmas], replicas: 0}]}",
        "spec.exceptions[0].dates[0]",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25', '2026-12-25'], replicas: 0}]}",
        "spec.exceptions[0].dates[1]",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], skipWindows: []}]}",
        "spec.exceptions[0].skipWindows",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], skipWindows: ['']}]}",
        "spec.exceptions[0].skipWindows[0]",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], skipWindows: [office, office]}]}",
        "spec.exceptions[0].skipWindows[1]",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], skipWindows: [night]}]}",
        "spec.exceptions[0].skipWindows[0]",
        Gate,
    ),
    (
        "spec: {exceptions: [{name: a, datesFrom: {}, replicas: 0}]}",
        "spec.exceptions[0].datesFrom.configMapKeyRef",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, datesFrom: {configMapKeyRef: {name: '', key: b}}, replicas: 0}]}",
        "spec.exceptions[0].datesFrom.configMapKeyRef.name",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, datesFrom: {configMapKeyRef: {name: a}}, replicas: 0}]}",
        "spec.exceptions[0].datesFrom.configMapKeyRef.key",
        Definition,
    ),
    (
        "spec: {exceptions: [{name: a, dates: ['2026-12-25'], replicas: -1}]}",
        "spec.exceptions[0].replicas",
        Definition,
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
        "spec: {exceptions: [{name: a, between: {start: tomorrow, end: '2999-01-02T00:00:00Z'}, replicas: 0}]}",
        "spec.exceptions[0].between.start",
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
    (
        "spec: {exceptions: [{name: a, between: {start: '2999-01-01T00:00:00Z'}, replicas: 0}]}",
        "spec.exceptions[0].between.end",
        Definition,
    ),
    ("spec: {ramp: {up: {step: 5, every: 30s}, down: {step: 50%, every: 1m30s}}}", "", Nobody),
    ("spec: {ramp: {up: {step: 0, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: 10001, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: 0%, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: 101%, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: '5', every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {step: true, every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {up: {every: 30s}}}", "spec.ramp.up.step", Definition),
    ("spec: {ramp: {down: {step: 5}}}", "spec.ramp.down.every", Definition),
    ("spec: {ramp: {down: {step: 5, every: 500ms}}}", "spec.ramp.down.every", Definition),
    ("spec: {ramp: {down: {step: 5, every: 25h}}}", "spec.ramp.down.every", Definition),
    ("spec: {ramp: {down: {step: 5, every: 1d}}}", "spec.ramp.down.every", Definition),
    ("spec: {ramp: {down: {step: 5, every: 1.5s}}}", "", Nobody),
    ("spec: {ramp: {down: {step: 5, every: 999999999999999999999h}}}", "spec.ramp.down.every", Definition),
    ("spec: {manualScalePolicy: Never}", "spec.manualScalePolicy", Definition),
    ("spec: {resyncMinutes: 0}", "spec.resyncMinutes", Definition),
    ("spec: {resyncMinutes: 1441}", "spec.resyncMinutes", Definition),
    ("spec: {resyncMinutes: 1440}", "", Nobody),
    ("spec: {autoscaler: {}}", "spec.autoscaler.name", Definition),
    ("spec: {autoscaler: {hpaRef: a}}", "spec.autoscaler.name", Definition),
    ("spec: {autoscaler: {name: ''}}", "spec.autoscaler.name", Definition),
    ("spec: null", "spec", Definition),
    ("spec: [1]", "spec", Definition),
];
