//! The database: its history, what scripts have done to it, and what a run does there.
//!
//! Believed of the runner, which `tests/migrate` shows on real servers: what is decided is decided with the lock held; a
//! script that runs in a transaction is applied together with its row of the history; one that cannot is in the history
//! before it begins, and in doubt where the run ends in the middle of it; a run without the approved plan does nothing.

use gatehouse::kinds::databasemigration::assignment::{Assignment, Resolution, Script, checksum};
use gatehouse::kinds::databasemigration::result::BlockedReason;

use crate::look::up;
use crate::text::Text;

/// How a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Course {
    Whole,
    /// It is killed once it has come through so many scripts.
    Killed(usize),
    /// It ends in the middle of a script that cannot run in a transaction: whether the server has carried that out, and
    /// whether the run comes to say that it does not know.
    Doubt {
        has_landed: bool,
        is_told: bool,
    },
    Unreached,
    /// The server refuses a script.
    Fails,
    /// Its Job has no time left before it begins.
    Late,
    /// It is asked to end once it has come through so many scripts, and reports that.
    Interrupted(usize),
}

impl Course {
    pub const ALL: [Self; 12] = [
        Self::Whole,
        Self::Killed(0),
        Self::Killed(1),
        Self::Doubt { has_landed: false, is_told: false },
        Self::Doubt { has_landed: false, is_told: true },
        Self::Doubt { has_landed: true, is_told: false },
        Self::Doubt { has_landed: true, is_told: true },
        Self::Unreached,
        Self::Fails,
        Self::Late,
        Self::Interrupted(0),
        Self::Interrupted(1),
    ];
}

/// A script whose end is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    /// Which doubt it is.
    pub about: u8,
    /// The run that has left it.
    pub run: i64,
    pub has_landed: bool,
    /// Whether it is about what takes the script back.
    pub is_down: bool,
}

/// A row of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub id: u8,
    pub sum: Text,
    /// What takes it back, as it was when it was begun.
    pub down: Text,
    pub doubt: Option<Doubt>,
}

/// The database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Database {
    /// In the order in which they were applied.
    pub rows: Vec<Row>,
    /// How often each script was carried out, less how often it was taken back.
    pub effects: [i8; 5],
    pub doubts: u8,
}

/// What there is to do.
pub enum Decision {
    Blocked(BlockedReason, u8),
    /// The script, and the run that has left it.
    InDoubt(u8, i64),
    Work(Vec<u8>),
}

impl Database {
    /// The script in doubt.
    pub fn doubt(&self) -> Option<(u8, Doubt)> {
        self.rows.iter().find_map(|row| Some((row.id, row.doubt?)))
    }

    /// How many scripts a run finds applied.
    pub fn applied(&self) -> usize {
        self.rows.iter().filter(|row| row.doubt.is_none_or(|doubt| doubt.is_down)).count()
    }

    fn row(&self, id: u8) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Which version of its text a script has that was applied or begun.
    pub fn version_of(&self, id: u8) -> Option<u8> {
        let sum = self.row(id)?.sum.get();
        (1..=9).find(|version| *checksum(up(id, *version).as_bytes()) == *sum)
    }

    /// Whether that script is applied.
    pub fn has(&self, id: u8) -> bool {
        self.row(id).is_some_and(|row| row.doubt.is_none()) && self.is_carried_out(id)
    }

    /// Whether that script has done what it does, also where that is not known yet.
    pub fn is_carried_out(&self, id: u8) -> bool {
        self.row(id).is_some() && self.effects[usize::from(id)] == 1
    }

    pub fn decide(&self, told: &Assignment) -> Decision {
        let mut pending: Vec<u8> = Vec::new();
        for script in &told.scripts {
            let id = number(&script.id);
            if self.is_baseline(told, id) {
                continue;
            }
            let Some(row) = self.row(id) else {
                pending.push(id);
                continue;
            };
            let is_same = script.planned.as_deref() == Some(&*row.sum.get());
            let is_applied = match (row.doubt, row.doubt.and_then(|doubt| answer(told, id, doubt))) {
                (None, _) => true,
                (Some(doubt), None) if script.idempotent && !doubt.is_down => false,
                (Some(doubt), None) => return Decision::InDoubt(id, doubt.run),
                (Some(doubt), Some(resolution)) => (resolution == Resolution::Applied) != doubt.is_down,
            };
            if !is_applied {
                pending.push(id);
                continue;
            }
            if !is_same {
                return Decision::Blocked(BlockedReason::ChecksumMismatch, id);
            }
            if let Some(late) = pending.first() {
                return Decision::Blocked(BlockedReason::OutOfOrder, *late);
            }
        }
        Decision::Work(pending)
    }

    /// Whether a script counts as applied since the first contact.
    fn is_baseline(&self, told: &Assignment, id: u8) -> bool {
        self.rows.is_empty() && told.baseline.as_ref().is_some_and(|last| id <= number(last))
    }

    /// Writes what is settled without a script being run.
    pub fn settle(&mut self, told: &Assignment) {
        let of = |script: &Script| Row {
            id: number(&script.id),
            sum: sum(script),
            down: down(script),
            doubt: None,
        };
        let baseline: Vec<_> =
            told.scripts.iter().filter(|one| self.is_baseline(told, number(&one.id))).map(of).collect();
        self.rows.extend(baseline);
        let Some(at) = self.rows.iter().position(|row| row.doubt.is_some()) else { return };
        let Some(doubt) = self.rows[at].doubt else { return };
        let Some(resolution) = answer(told, self.rows[at].id, doubt) else { return };
        match (doubt.is_down, resolution) {
            (false, Resolution::Applied) | (true, Resolution::Retry) => self.rows[at].doubt = None,
            (true, Resolution::Applied) => drop(self.rows.remove(at)),
            // It is in doubt until it begins again.
            (false, Resolution::Retry) => {}
        }
    }

    pub fn apply(&mut self, script: &Script) {
        let id = number(&script.id);
        self.rows.retain(|row| row.id != id);
        self.rows.push(Row { id, sum: sum(script), down: down(script), doubt: None });
        self.effects[usize::from(id)] += 1;
    }

    pub fn take_back(&mut self, id: u8) {
        self.rows.retain(|row| row.id != id);
        self.effects[usize::from(id)] -= 1;
    }

    /// A script is begun, and nothing says how it ended.
    pub fn leave(&mut self, row: Row, run: i64, has_landed: bool, is_down: bool) {
        self.doubts += 1;
        let doubt = Doubt { about: self.doubts, run, has_landed, is_down };
        self.rows.retain(|one| one.id != row.id);
        self.rows.push(Row { doubt: Some(doubt), ..row });
        let effect = if is_down { -1 } else { 1 };
        self.effects[usize::from(row.id)] += if has_landed { effect } else { 0 };
    }
}

/// The script that cannot run in a transaction.
pub const UNTRANSACTED: u8 = 2;

/// The checksum that a script had when it was planned.
pub fn sum(script: &Script) -> Text {
    Text::of(script.planned.as_deref().expect("a text that is known"))
}

/// The same of what takes it back.
pub fn down(script: &Script) -> Text {
    Text::of(script.planned_down.as_deref().expect("a text that is known"))
}

/// What a person said of a doubt, unless the run that was told so has left it, or a later one.
pub fn answer(told: &Assignment, id: u8, doubt: Doubt) -> Option<Resolution> {
    let resolve = told.resolve.as_ref().filter(|resolve| number(&resolve.id) == id)?;
    let run: i64 = told.run.uid.rsplit_once('.').expect("a run").1.parse().expect("a number");
    (doubt.run < run).then_some(resolve.resolution)
}

pub fn number(id: &str) -> u8 {
    id.parse().expect("a script")
}
