//! What an operator told, as its log has it, or the node's copy of that log.

use std::collections::HashMap;

use gatehouse::controllers::etcdcluster::observation::{Desired, Observation};
use gatehouse::controllers::etcdcluster::trace::TARGET;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line that an operator told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Which operator.
    pub run: String,
    /// The so-many-th of it, from 0.
    pub number: u64,
    pub event: Event,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    Pass(Box<Pass>),
    Effect(Effect),
}

/// A pass, up to its first effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Namespace and name.
    pub object: String,
    pub uid: String,
    pub desired: Desired,
    pub seen: Observation,
    /// What was planned.
    pub plan: Value,
}

/// What came of an effect of a pass.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// The number of the pass.
    pub pass: u64,
    pub name: String,
    pub outcome: String,
}

/// What was told, in the order in which it was.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub lines: Vec<Line>,
    /// Lines that are no JSON any more: a process ended while it wrote them, or two wrote at once.
    pub broken: usize,
    /// Lines that say something else than a pass or an effect.
    pub unread: Vec<String>,
}

impl Log {
    /// What was told in these logs: of processes that write JSON, or as nodes keep them, or the told lines alone.
    pub fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut log = Self::default();
        let mut told = Vec::new();
        for text in texts {
            for line in whole(text) {
                match serde_json::from_str::<Value>(&line) {
                    Ok(said) => told.extend(passes_in(said)),
                    Err(_) if line.starts_with('{') || line.contains(TARGET) => log.broken += 1,
                    Err(_) => {}
                }
            }
        }
        // By time, which has the same form everywhere; those without one stay as they came.
        told.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, said) in told {
            match Line::deserialize(&said) {
                Ok(line) => log.lines.push(line),
                Err(error) => log.unread.push(format!("{error}: {said}")),
            }
        }
        log
    }
}

/// What a line of a log tells of a pass, and when that was.
fn passes_in(said: Value) -> Option<(String, Value)> {
    if said["target"] == TARGET {
        let line = said["line"].as_str().unwrap_or_default();
        let inner = serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned()));
        return Some((said["timestamp"].as_str().unwrap_or_default().to_owned(), inner));
    }
    said.get("event").is_some().then(|| (String::new(), said))
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
