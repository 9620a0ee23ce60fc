//! Texts that are kept once, so that a world is copied and compared by their numbers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gatehouse::kinds::databasemigration::api::v1::DatabaseMigrationStatus;
use gatehouse::kinds::databasemigration::assignment::{Assignment, Planned, plan_hash};
use gatehouse::kinds::databasemigration::resources::assignment::ASSIGNMENT;
use gatehouse::kinds::databasemigration::result::RunResult;
use serde_json::Value;

/// A text that is kept once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(usize);

#[derive(Default)]
struct Texts {
    numbers: HashMap<Rc<str>, usize>,
    all: Vec<Rc<str>>,
    statuses: HashMap<Text, Rc<DatabaseMigrationStatus>>,
    told: HashMap<Text, Rc<Told>>,
}

/// The assignment of a run, and what it reads.
#[derive(Debug)]
pub struct Told {
    pub assignment: Assignment,
    /// The hash of the plan, as the run finds it.
    pub hash: Text,
    /// The ConfigMap.
    pub object: Value,
}

thread_local! {
    static TEXTS: RefCell<Texts> = RefCell::default();
}

impl Text {
    pub fn of(text: &str) -> Self {
        TEXTS.with_borrow_mut(|Texts { numbers, all, .. }| {
            if let Some(number) = numbers.get(text) {
                return Self(*number);
            }
            let kept: Rc<str> = text.into();
            all.push(Rc::clone(&kept));
            numbers.insert(kept, all.len() - 1);
            Self(all.len() - 1)
        })
    }

    pub fn get(self) -> Rc<str> {
        TEXTS.with_borrow(|texts| Rc::clone(&texts.all[self.0]))
    }

    pub fn of_status(status: &DatabaseMigrationStatus) -> Self {
        Self::of(&serde_json::to_string(status).expect("JSON"))
    }

    /// What it says as a status.
    pub fn status(self) -> Rc<DatabaseMigrationStatus> {
        if let Some(known) = TEXTS.with_borrow(|texts| texts.statuses.get(&self).map(Rc::clone)) {
            return known;
        }
        let status = Rc::new(serde_json::from_str(&self.get()).expect("a status"));
        TEXTS.with_borrow_mut(|texts| texts.statuses.insert(self, Rc::clone(&status)));
        status
    }

    /// What it says as the ConfigMap of a run.
    pub fn told(self) -> Rc<Told> {
        if let Some(known) = TEXTS.with_borrow(|texts| texts.told.get(&self).map(Rc::clone)) {
            return known;
        }
        let object: Value = serde_json::from_str(&self.get()).expect("a ConfigMap");
        let assignment = object["data"][ASSIGNMENT].as_str().expect("an assignment");
        let assignment = Assignment::read(assignment).expect("an assignment");
        let hash = Self::of(&hash(&assignment));
        let told = Rc::new(Told { assignment, hash, object });
        TEXTS.with_borrow_mut(|texts| texts.told.insert(self, Rc::clone(&told)));
        told
    }

    /// What it says as a report.
    pub fn result(self) -> RunResult {
        serde_json::from_str(&self.get()).expect("a report")
    }
}

/// The hash of the plan of an assignment, whose texts are all known.
fn hash(told: &Assignment) -> String {
    let scripts = told.scripts.iter().map(|script| Planned {
        id: &script.id,
        kind: script.kind,
        transaction: script.transaction,
        checksum: script.planned.as_deref().expect("a text that is known"),
        down: script.planned_down.as_deref(),
    });
    plan_hash(told, scripts)
}
