//! A chain of edits, drawn by numbers that are given.
//!
//! Never: asks for less room, for another `tls.mode`, for a way between versions that etcd does not go, or for more
//! members while fewer have been asked for and are not there yet, nor the other way round.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// Versions that a cluster may begin with. All of them, and those that they lead to, are images of the local cluster.
const FIRST: [&str; 4] = ["3.5.9", "3.5.33", "3.6.16", "3.7.3"];

/// From one version to another, those to a lower minor too.
const STEPS: [(&str, &str); 5] = [
    ("3.5.9", "3.5.33"),
    ("3.5.33", "3.6.16"),
    ("3.6.16", "3.7.3"),
    ("3.7.3", "3.6.16"),
    ("3.6.16", "3.5.33"),
];

/// Most members; a third one is what a quorum outlives one by.
const MOST: u64 = 3;

/// Largest volume, in Gi.
const LARGEST: u64 = 3;

/// The longest pause between two hasty edits, in milliseconds: some come before the first reconciliation, some in the
/// midst.
const LONGEST_PAUSE: u64 = 8000;

/// One in so many edits comes before the one before it has come about.
const HASTY: usize = 3;

/// What may be in `options`, besides what is always there, by the name of the field. None has etcd drop revisions
/// within a test: its history has to be there. A first value is that of an absent field.
fn options() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("quotaBackendBytes", vec![Value::Null, json!("512Mi"), json!("1Gi")]),
        (
            "autoCompaction",
            vec![
                Value::Null,
                json!({"mode": "Periodic", "retention": "24h"}),
                json!({"mode": "Revision", "retention": 100_000_000}),
            ],
        ),
        ("snapshotCount", vec![Value::Null, json!(5000), json!(20000)]),
        ("electionTimeout", vec![json!("1s"), json!("2s")]),
        ("extra", vec![Value::Null, json!({"max-txn-ops": "256"}), json!({"max-concurrent-streams": "512"})]),
    ]
}

/// The same of `pod`.
fn overlays() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("labels", vec![Value::Null, json!({"team": "a"}), json!({"team": "b"})]),
        ("annotations", vec![Value::Null, json!({"restarted": "once"})]),
        (
            "resources",
            vec![
                Value::Null,
                json!({"requests": {"cpu": "10m", "memory": "32Mi"}}),
                json!({"requests": {"cpu": "20m"}, "limits": {"memory": "1Gi"}}),
            ],
        ),
        ("env", vec![Value::Null, json!([{"name": "GOGC", "value": "80"}])]),
        ("terminationGracePeriodSeconds", vec![Value::Null, json!(20)]),
        ("nodeSelector", vec![Value::Null, json!({"kubernetes.io/os": "linux"})]),
        ("tolerations", vec![Value::Null, json!([{"key": "reserved", "operator": "Exists"}])]),
    ]
}

/// What lets no pod come up: a name, and the fields of the spec that it is written into. Of an image, a node, room, a
/// variable that etcd does not start with, and what the API server refuses the pod for. The gate refuses every flag that
/// etcd does not start with.
fn breaks(version: &str) -> Vec<(&'static str, Value)> {
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    vec![
        ("a patch that there is no image of", json!({"version": format!("{minor}.99")})),
        ("a repository without images", json!({"image": {"repository": "quay.io/coreos/none"}})),
        ("a node that there is not", json!({"pod": {"nodeSelector": {"nowhere": "true"}}})),
        (
            "more memory than there is",
            json!({"pod": {"resources": {"requests": {"memory": "4Ti"}, "limits": {"memory": "4Ti"}}}}),
        ),
        (
            "less memory than etcd takes",
            json!({"pod": {"resources": {"limits": {"memory": "10Mi"}, "requests": {"memory": "10Mi"}}}}),
        ),
        (
            "a limit of memory that etcd does not read",
            json!({"pod": {"env": [{"name": "GOMEMLIMIT", "value": "many"}]}}),
        ),
        ("a ServiceAccount that there is not", json!({"pod": {"serviceAccountName": "nobody"}})),
        ("a scheduler that there is not", json!({"pod": {"schedulerName": "nobody"}})),
        (
            "a user that pods may not run as",
            json!({"pod": {"securityContext": {"runAsUser": 0, "runAsNonRoot": true}}}),
        ),
        (
            "a variable of a Secret that there is not",
            json!({"pod": {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "none", "key": "a"}}}]}}),
        ),
    ]
}

/// What is asked for at first, and then.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The spec that the cluster is made with.
    pub first: Value,
    /// One after the other.
    pub edits: Vec<Edit>,
}

/// Another spec.
#[derive(Clone, Debug)]
pub struct Edit {
    /// What is new in it.
    pub what: String,
    /// All of it.
    pub spec: Value,
    /// What is waited for before the next one.
    pub pace: Pace,
}

/// What is waited for after an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// That the cluster is as the spec says.
    Settles,
    /// That it rests, as the spec says.
    Rests,
    /// Nothing: the next edit comes so soon.
    Hurries(Duration),
    /// That the status has that this does not come up. The next edit sets it back.
    Breaks,
}

impl Chain {
    /// What is asked for in the end.
    #[must_use]
    pub fn last(&self) -> &Value {
        self.edits.last().map_or(&self.first, |edit| &edit.spec)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |field: &str| self.first[field].to_string().replace('"', "");
        let tls = self.first["tls"]["mode"].as_str().unwrap_or_default();
        write!(formatter, "{} of {}, TLS {tls}", of("replicas"), of("version"))?;
        self.edits.iter().try_for_each(|edit| write!(formatter, "; {edit}"))
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pace {
            Pace::Hurries(pause) => write!(formatter, "{} (and {pause:.1?} later)", self.what),
            Pace::Settles | Pace::Rests | Pace::Breaks => write!(formatter, "{}", self.what),
        }
    }
}

/// A spec, and what hangs on the way to it.
#[derive(Clone)]
struct Walk {
    replicas: u64,
    version: &'static str,
    /// In Gi.
    size: u64,
    tls: &'static str,
    is_paused: bool,
    options: Map<String, Value>,
    overlay: Map<String, Value>,
    /// What members came to run last. While another version is asked for, and there are no members to run it or they
    /// are on their way, no third one is let in.
    runs: &'static str,
    /// Which way members were asked for since the cluster was last as it was asked for.
    direction: Option<Direction>,
    /// Kinds of edits so far: those that have not been come first.
    done: Vec<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
    /// To none.
    Stop,
    /// To none, and up again.
    Start,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Replicas,
    Version,
    Option,
    Overlay,
    Size,
    Pause,
}

const KINDS: [Kind; 6] =
    [Kind::Replicas, Kind::Version, Kind::Option, Kind::Overlay, Kind::Size, Kind::Pause];

/// A chain of so many edits, three at least: all but two of them change what is asked for for good, one breaks the
/// cluster and one sets that back. `draw` gives any numbers.
pub fn chain(draw: &mut dyn FnMut() -> u64, length: usize) -> Chain {
    let mut walk = Walk::begin(draw);
    let first = walk.spec();
    let mut edits: Vec<Edit> = Vec::new();
    let mut broken = false;
    while edits.len() < length {
        let left = length - edits.len();
        let waits = edits.last().is_none_or(|edit| edit.pace == Pace::Settles);
        let can_break = !broken && waits && walk.replicas > 0 && left >= 3;
        // Once, wherever that falls; the last edit is no setting back.
        if can_break && (pick(draw, 3) == 0 || left == 3) {
            edits.extend(walk.broken(draw));
            broken = true;
            continue;
        }
        // What breaks it begins with members that work.
        let works = left == 1 || (!broken && left == 4);
        let what = if works { walk.work(draw) } else { walk.step(draw, false) };
        let pace = walk.pace(draw, works);
        edits.push(Edit { what, spec: walk.spec(), pace });
    }
    Chain { first, edits }
}

impl Walk {
    fn begin(draw: &mut dyn FnMut() -> u64) -> Self {
        let version = FIRST[pick(draw, FIRST.len())];
        Self {
            replicas: 1 + pick(draw, 3) as u64,
            version,
            size: 1,
            tls: ["Disabled", "Automatic"][pick(draw, 2)],
            is_paused: false,
            options: Map::from_iter([
                ("heartbeatInterval".to_owned(), json!("100ms")),
                ("electionTimeout".to_owned(), json!("1s")),
            ]),
            overlay: Map::new(),
            runs: version,
            direction: None,
            done: Vec::new(),
        }
    }

    fn spec(&self) -> Value {
        let mut spec = json!({
            "replicas": self.replicas, "version": self.version, "tls": {"mode": self.tls},
            "storage": {"size": format!("{}Gi", self.size), "reclaimPolicy": "Delete"},
            "options": self.options,
        });
        if !self.overlay.is_empty() {
            spec["pod"] = json!(self.overlay);
        }
        if self.is_paused {
            spec["paused"] = json!(true);
        }
        spec
    }

    /// Another spec that cannot come up, and this one again.
    fn broken(&self, draw: &mut dyn FnMut() -> u64) -> [Edit; 2] {
        let all = breaks(self.version);
        let (what, fields) = &all[pick(draw, all.len())];
        let mut spec = self.spec();
        json_patch::merge(&mut spec, fields);
        [
            Edit { what: (*what).to_owned(), spec, pace: Pace::Breaks },
            Edit { what: "set back".to_owned(), spec: self.spec(), pace: Pace::Settles },
        ]
    }

    /// Asks for something else, which leaves members that work where it `works`; what.
    fn step(&mut self, draw: &mut dyn FnMut() -> u64, works: bool) -> String {
        let possible: Vec<_> = KINDS.into_iter().filter(|kind| self.can(*kind, works)).collect();
        let new: Vec<_> = possible.iter().copied().filter(|kind| !self.done.contains(kind)).collect();
        let among = if new.is_empty() { possible } else { new };
        let kind = among[pick(draw, among.len())];
        self.done.push(kind);
        match kind {
            Kind::Replicas => {
                let counts = self.counts(works);
                self.scale(counts[pick(draw, counts.len())])
            }
            Kind::Version => {
                let to: Vec<_> = STEPS.into_iter().filter(|(from, _)| *from == self.version).collect();
                self.version = to[pick(draw, to.len())].1;
                format!("version {}", self.version)
            }
            Kind::Option => other(draw, "options", &options(), &mut self.options),
            Kind::Overlay => other(draw, "pod", &overlays(), &mut self.overlay),
            Kind::Size => {
                self.size += 1;
                format!("storage.size {}Gi", self.size)
            }
            Kind::Pause => {
                self.is_paused = !self.is_paused;
                format!("paused {}", self.is_paused)
            }
        }
    }

    /// Asks for members that work.
    fn work(&mut self, draw: &mut dyn FnMut() -> u64) -> String {
        let mut whats = Vec::new();
        if self.replicas == 0 {
            whats.push(self.scale(1 + pick(draw, 3) as u64));
        }
        if self.is_paused {
            self.is_paused = false;
            whats.push("paused false".to_owned());
        }
        if whats.is_empty() {
            whats.push(self.step(draw, true));
        }
        whats.join(", ")
    }

    fn pace(&mut self, draw: &mut dyn FnMut() -> u64, waits: bool) -> Pace {
        if self.is_paused {
            return Pace::Rests;
        }
        if !waits && pick(draw, HASTY) == 0 {
            return Pace::Hurries(Duration::from_millis(draw() % LONGEST_PAUSE));
        }
        self.direction = None;
        if self.replicas > 0 {
            self.runs = self.version;
        }
        Pace::Settles
    }

    fn can(&self, kind: Kind, works: bool) -> bool {
        match kind {
            Kind::Replicas => !self.counts(works).is_empty(),
            Kind::Version => self.version == self.runs && STEPS.iter().any(|(from, _)| *from == self.version),
            Kind::Option | Kind::Overlay => true,
            Kind::Pause => !works,
            Kind::Size => self.size < LARGEST,
        }
    }

    /// Other counts of members that are let in.
    fn counts(&self, works: bool) -> Vec<u64> {
        let least = u64::from(works);
        let is_let_in = |count: &u64| match self.direction {
            None => true,
            Some(Direction::Up | Direction::Start) => *count > self.replicas,
            Some(Direction::Down) => *count < self.replicas && *count > 0,
            Some(Direction::Stop) => *count > 0,
        };
        (least..=MOST).filter(|count| *count != self.replicas).filter(is_let_in).collect()
    }

    fn scale(&mut self, count: u64) -> String {
        self.direction = Some(match self.direction {
            Some(Direction::Stop) => Direction::Start,
            _ if count == 0 => Direction::Stop,
            _ if count > self.replicas => Direction::Up,
            _ => Direction::Down,
        });
        self.replicas = count;
        format!("replicas {count}")
    }
}

/// Another value for one of these fields.
fn other(
    draw: &mut dyn FnMut() -> u64,
    parent: &str,
    fields: &[(&str, Vec<Value>)],
    written: &mut Map<String, Value>,
) -> String {
    let (field, values) = &fields[pick(draw, fields.len())];
    let now = written.get(*field).cloned().unwrap_or_default();
    let others: Vec<_> = values.iter().filter(|value| **value != now).collect();
    let value = others[pick(draw, others.len())];
    if value.is_null() {
        written.remove(*field);
        return format!("{parent}.{field} taken out");
    }
    written.insert((*field).to_owned(), value.clone());
    format!("{parent}.{field} {value}")
}

fn pick(draw: &mut dyn FnMut() -> u64, count: usize) -> usize {
    usize::try_from(draw() % count as u64).unwrap_or_default()
}

/// What makes `after` of `before` as a merge patch (RFC 7386).
#[must_use]
pub fn patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(*value)).map(|(key, value)| {
        (key.clone(), before.get(key).map_or_else(|| value.clone(), |before| patch(before, value)))
    });
    Value::Object(gone.chain(changed).collect())
}
