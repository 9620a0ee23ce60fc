//! Sequences that were run on real members, in files: each step, the answer, and what was seen of the members then. The
//! model can be compared with them at any time.

use std::path::Path;

use gatehouse::kinds::etcdcluster::etcd::Refusal;
use gatehouse::kinds::etcdcluster::observation::{Member, MemberId, Ordinal};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::belief::{Belief, Rules, Seen, Surprise};
use super::{Answer, Call, Replica, Window};

/// A sequence that was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trace {
    /// Of etcd, such as `3.6.16`.
    pub release: String,
    /// Chose the steps.
    pub seed: u64,
    /// Voters that formed the cluster, at the first places, with the first identities.
    pub size: u32,
    /// The steps, in order.
    #[serde(skip)]
    pub lines: Vec<Line>,
}

/// A step, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What was done.
    pub step: Step,
    /// What was answered, if something was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What the members said then; absent: none of them saw a leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<View>,
}

/// Something that is done to members. They go by small numbers, in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Nothing but a look.
    Look,
    /// A learner is added.
    Add {
        /// The member that is asked.
        asked: u64,
        /// The number that the learner gets.
        id: u64,
        /// Its place, which is its address.
        place: u32,
    },
    /// A learner is to get a vote.
    Promote {
        /// The member that is asked.
        asked: u64,
        /// The learner.
        id: u64,
    },
    /// A member is to leave the list.
    Remove {
        /// The member that is asked.
        asked: u64,
        /// The one to leave.
        id: u64,
    },
    /// Another member is to lead.
    MoveLeader {
        /// The member that is asked.
        asked: u64,
        /// The one to lead.
        to: u64,
    },
    /// A new key is written.
    Write {
        /// The member that is asked.
        asked: u64,
    },
    /// The members are listed, linearizably.
    List {
        /// The member that is asked.
        asked: u64,
    },
    /// A member that was added starts, without data.
    Join(u64),
    /// The process of a member ends without a word.
    Kill(u64),
    /// A member that was killed starts again on its data.
    Restart(u64),
    /// A member is killed, and its data are removed.
    Wipe(u64),
    /// Nothing starts or ends until connections count.
    Wait,
}

/// What members say of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The member that leads.
    pub leader: u64,
    /// The list of members, by number.
    pub members: Vec<Seat>,
}

/// A member as the list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seat {
    /// Its number.
    pub id: u64,
    /// Its place, which is its address.
    pub place: u32,
    /// Whether it has no vote.
    pub is_learner: bool,
    /// Whether it has said what it is called, as a member does when it first follows a leader.
    pub is_started: bool,
}

/// A line that the model does not explain.
#[derive(Debug, thiserror::Error)]
#[error("line {line} ({step:?}): {surprise}")]
pub struct Unexplained {
    /// Its number in the file.
    pub line: usize,
    /// What was done.
    pub step: Step,
    /// What does not go together.
    pub surprise: Surprise,
}

impl Step {
    /// The member that is asked and what for, if one is.
    #[must_use]
    pub fn call(self) -> Option<(MemberId, Call)> {
        let (asked, call) = match self {
            Self::Add { asked, id, place } => {
                (asked, Call::Add { id: MemberId(id), ordinal: Ordinal(place), is_learner: true })
            }
            Self::Promote { asked, id } => (asked, Call::Promote(MemberId(id))),
            Self::Remove { asked, id } => (asked, Call::Remove(MemberId(id))),
            Self::MoveLeader { asked, to } => (asked, Call::MoveLeader(MemberId(to))),
            Self::Write { asked } => (asked, Call::Write),
            Self::List { asked } => (asked, Call::List),
            Self::Look | Self::Join(_) | Self::Kill(_) | Self::Restart(_) | Self::Wipe(_) | Self::Wait => {
                return None;
            }
        };
        Some((MemberId(asked), call))
    }
}

impl Belief<'_> {
    /// Takes in what a step did to processes, where it asked for nothing.
    pub fn stepped(&mut self, step: Step) {
        let runs = |id: u64, runs: bool, keeps: bool| {
            move |cluster: &mut super::Cluster| {
                if let Some(replica) = cluster.replicas.get_mut(&MemberId(id)) {
                    replica.runs = runs;
                    replica.index = if keeps { replica.index } else { 0 };
                }
            }
        };
        match step {
            Step::Join(id) => self.change(|cluster| {
                let replica = Replica { index: 0, runs: true, is_heard: false };
                if cluster.member(MemberId(id)).is_some() {
                    cluster.replicas.insert(MemberId(id), replica);
                }
            }),
            Step::Kill(id) => self.change(runs(id, false, true)),
            Step::Wipe(id) => self.change(runs(id, false, false)),
            Step::Restart(id) => self.change(runs(id, true, true)),
            Step::Wait => self.window = Window::Past,
            _ => {}
        }
    }
}

impl View {
    /// The same in the terms of the model.
    #[must_use]
    pub fn seen(&self) -> Seen {
        let members = self.members.iter().map(|seat| Member {
            id: MemberId(seat.id),
            ordinal: Some(Ordinal(seat.place)),
            is_learner: seat.is_learner,
            is_started: seat.is_started,
        });
        Seen { members: members.collect(), leader: MemberId(self.leader) }
    }
}

/// An answer is written as a word: its own name, or that of the refusal.
impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&match self {
            Self::Refused(refusal) => format!("{refusal:?}"),
            other => format!("{other:?}"),
        })
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let refusals = Refusal::ALL.iter().map(|refusal| Self::Refused(*refusal));
        let known = [Self::Done, Self::Unsure, Self::Unreachable].into_iter().chain(refusals);
        let written = |answer: &Self| serde_json::to_value(answer).is_ok_and(|written| written == word);
        let mut meant = known.filter(written);
        meant.next().ok_or_else(|| de::Error::custom(format!("{word} is no answer")))
    }
}

impl Trace {
    /// The voters that formed the cluster.
    #[must_use]
    pub fn start<'a>(&self, rules: &'a Rules) -> Belief<'a> {
        let members = (0..self.size).map(|place| Member {
            id: MemberId(u64::from(place) + 1),
            ordinal: Some(Ordinal(place)),
            is_learner: false,
            is_started: true,
        });
        Belief::formed(rules, members.collect())
    }

    /// Compares it with the model.
    ///
    /// # Errors
    /// The model does not allow what happened.
    pub fn replay(&self, rules: &Rules) -> Result<(), Unexplained> {
        let mut belief = self.start(rules);
        for (line, number) in self.lines.iter().zip(2..) {
            let step = line.step;
            line.explain(&mut belief).map_err(|surprise| Unexplained { line: number, step, surprise })?;
        }
        Ok(())
    }

    /// One line for what it is, and one for each step.
    #[must_use]
    pub fn text(&self) -> String {
        let head = serde_json::to_string(self).expect("it can be written");
        let lines = self.lines.iter().map(|line| serde_json::to_string(line).expect("it can be written"));
        std::iter::once(head).chain(lines).map(|line| line + "\n").collect()
    }

    /// The sequence that a file holds.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a trace");
        let mut lines = text.lines();
        let mut trace: Self = serde_json::from_str(lines.next().unwrap_or_default()).expect("its head");
        trace.lines = lines.map(|line| serde_json::from_str(line).expect("a step")).collect();
        trace
    }
}

impl Line {
    /// Has the model explain it.
    ///
    /// # Errors
    /// It does not allow it.
    pub fn explain(&self, belief: &mut Belief<'_>) -> Result<(), Surprise> {
        match (self.step.call(), self.answer) {
            (Some((asked, call)), Some(answer)) => belief.answered(asked, call, answer)?,
            _ => belief.stepped(self.step),
        }
        belief.seen(self.seen.as_ref().map(View::seen).as_ref())
    }
}
