//! What an operator logged of its reconciliations, from its own log or the node's copy of it.

use std::collections::HashMap;

use gatehouse::kinds::etcdcluster::observation::{Desired, Observation};
use gatehouse::kinds::etcdcluster::trace::TARGET;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line that an operator logged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Which operator.
    pub run: String,
    /// The place of the line among those of that operator, from 0.
    pub number: u64,
    /// What it says.
    pub event: Event,
}

/// What a line says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A reconciliation begins.
    Pass(Box<Pass>),
    /// An action of a reconciliation has an outcome.
    Action(Action),
}

/// A reconciliation, up to its first action.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Namespace and name.
    pub object: String,
    /// The uid of the object.
    pub uid: String,
    /// What was asked for.
    pub desired: Desired,
    /// What was read.
    pub seen: Observation,
    /// What was planned.
    pub plan: Value,
}

/// What came of an action of a reconciliation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The number of the line of its reconciliation.
    pub pass: u64,
    /// The kind of action, such as `member-add`.
    pub name: String,
    /// `done`, or why not.
    pub outcome: String,
}

/// All lines of some logs, in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Passes and actions.
    pub lines: Vec<Line>,
    /// How many of the lines had been written when a fail point answered a read with what was so before.
    pub stale: Vec<usize>,
    /// Lines that are no JSON any more: a process ended while it wrote them, or two wrote at once.
    pub broken: usize,
    /// Lines of the trace that say something else than a reconciliation or an action.
    pub unread: Vec<String>,
}

/// What a line of a log is about.
enum Said {
    Passes(Value),
    Stale,
}

impl Log {
    /// Reads logs: of processes that write JSON, as nodes keep them, or the lines of the trace alone.
    #[must_use]
    pub fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut log = Self::default();
        let mut said = Vec::new();
        for text in texts {
            for line in whole(text) {
                match serde_json::from_str::<Value>(&line) {
                    Ok(line) => said.extend(passes_in(line)),
                    Err(_) if line.starts_with('{') || line.contains(TARGET) => log.broken += 1,
                    Err(_) => {}
                }
            }
        }
        // By time, which has the same form everywhere; those without one stay as they came.
        said.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, said) in said {
            match said {
                Said::Stale => log.stale.push(log.lines.len()),
                Said::Passes(said) => match Line::deserialize(&said) {
                    Ok(line) => log.lines.push(line),
                    Err(error) => log.unread.push(format!("{error}: {said}")),
                },
            }
        }
        log
    }

    /// The reconciliations of the cluster of a namespace with their actions, numbered as if there were nothing
    /// else. Of several in a row that plan the same, the first.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Self {
        let mut of = Self::default();
        let mut next: HashMap<&str, u64> = HashMap::new();
        let mut passes: HashMap<(&str, u64), u64> = HashMap::new();
        let mut before = None;
        for line in &self.lines {
            let number = next.entry(&line.run).or_default();
            let event = match &line.event {
                Event::Pass(pass) => {
                    let planned = Some((&pass.plan["actions"], &pass.plan["record"]));
                    if pass.object.split('/').next() != Some(namespace) || planned == before {
                        continue;
                    }
                    before = planned;
                    passes.insert((&line.run, line.number), *number);
                    line.event.clone()
                }
                Event::Action(action) => {
                    let Some(pass) = passes.get(&(line.run.as_str(), action.pass)) else { continue };
                    Event::Action(Action { pass: *pass, ..action.clone() })
                }
            };
            of.lines.push(Line { run: line.run.clone(), number: *number, event });
            *number += 1;
        }
        of
    }

    /// The lines alone, one below the other.
    #[must_use]
    pub fn written(&self) -> String {
        self.lines.iter().map(|line| serde_json::to_string(line).expect("a line is written") + "\n").collect()
    }
}

/// What a line of a log says of reconciliations, and when.
fn passes_in(said: Value) -> Option<(String, Said)> {
    let time = || said["timestamp"].as_str().unwrap_or_default().to_owned();
    if said["target"] == TARGET {
        let line = said["line"].as_str().unwrap_or_default();
        let inner = serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned()));
        return Some((time(), Said::Passes(inner)));
    }
    let fate = said["point"].as_str().and_then(|point| point.rsplit_once('.'));
    if fate.is_some_and(|(_, fate)| fate == "stale") && said["message"] == "acts" {
        return Some((time(), Said::Stale));
    }
    said.get("event").is_some().then(|| (String::new(), Said::Passes(said)))
}

/// The lines of a log. A container runtime puts time, stream and a tag before each, and breaks up long ones: those are
/// put together again.
fn whole(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut begun: HashMap<&str, String> = HashMap::new();
    for line in text.lines() {
        let mut parts = line.splitn(4, ' ');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(_time), Some(stream @ ("stdout" | "stderr")), Some("P"), Some(part)) => {
                begun.entry(stream).or_default().push_str(part);
            }
            (Some(_time), Some(stream @ ("stdout" | "stderr")), Some("F"), Some(part)) => {
                lines.push(begun.remove(stream).unwrap_or_default() + part);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}
