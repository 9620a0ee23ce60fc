//! The scripts of a folder, by the names of its files.
//!
//! Guarantees: the order is the order of the numbers in the names. A file that looks like a script and has no sure place in
//! the order is refused by its name, and what else is left out is listed.
//! Never: reads a file.

mod dialect;
mod number;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::kinds::databasemigration::assignment::Engine;
use number::{Number, natural};

/// What counts as a script.
const COUNTS: &str =
    "scripts are the files NAME.sql or NAME.up.sql of the folder itself, and NAME.down.sql takes NAME back";

/// Most names in one message.
const MOST_NAMES: usize = 8;

/// A script of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What the history calls it.
    pub(super) id: String,
    /// The file that runs.
    pub(super) up: String,
    /// The file that takes it back.
    pub(super) down: Option<String>,
}

/// What lies in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// The names of the files, without hidden ones.
    files: Vec<String>,
    /// The names of the folders, each with the scripts in it.
    folders: BTreeMap<String, Vec<String>>,
}

/// What of a folder runs, in this order, and what is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scripts {
    pub(super) found: Vec<Found>,
    pub(super) skipped: Vec<String>,
}

impl Listing {
    /// Lists a folder.
    pub(super) fn of(folder: &Path) -> Result<Self, String> {
        let mut listing = Self::default();
        for (name, is_folder) in entries(folder)? {
            if is_folder {
                let inner =
                    entries(&folder.join(&name)).unwrap_or_default().into_iter().map(|(name, _)| name);
                listing.folders.insert(name, inner.filter(|name| is_sql(name)).collect());
            } else {
                listing.files.push(name);
            }
        }
        listing.files.sort();
        Ok(listing)
    }

    /// The scripts for an engine.
    ///
    /// # Errors
    /// A file that has no place, by its name, and what counts.
    pub(super) fn scripts(&self, engine: Engine) -> Result<Scripts, String> {
        self.check_folders()?;
        let (scripts, others): (Vec<&str>, Vec<&str>) =
            self.files.iter().map(String::as_str).partition(|name| is_script(name));
        check_others(&others)?;
        for name in &scripts {
            check_name(name)?;
        }
        dialect::check(engine, &scripts)?;
        check_pairs(&scripts)?;
        let found = ordered(paired(&scripts)?)?;
        let folders = self.folders.keys().map(|name| format!("{name}/"));
        let skipped: Vec<_> = others.into_iter().map(str::to_owned).chain(folders).collect();
        if found.is_empty() {
            let skipped = if skipped.is_empty() {
                String::new()
            } else {
                format!("; {} does not count", list(&skipped))
            };
            return Err(format!("no script is there: {COUNTS}{skipped}"));
        }
        Ok(Scripts { found, skipped })
    }

    /// A folder for each script, or for each engine.
    fn check_folders(&self) -> Result<(), String> {
        let with_scripts = || self.folders.iter().filter(|(_, scripts)| !scripts.is_empty());
        let is_of_one = |(_, scripts): &(&String, &Vec<String>)| {
            scripts.iter().all(|name| matches!(name.as_str(), "migration.sql" | "up.sql" | "down.sql"))
        };
        if let Some((name, scripts)) = with_scripts().find(is_of_one) {
            return Err(format!(
                "{name}/{}: a folder for each script, as Prisma and Diesel have, is not read: copy each to NAME.sql, and \
                 what takes it back to NAME.down.sql; {COUNTS}",
                scripts.first().map(String::as_str).unwrap_or_default()
            ));
        }
        let names: Vec<_> = with_scripts().map(|(name, _)| format!("{name}/")).collect();
        if !names.is_empty() && !self.files.iter().any(|name| is_script(name)) {
            return Err(format!(
                "no script is there, and {} has some: name such a folder itself; {COUNTS}",
                list(&names)
            ));
        }
        Ok(())
    }
}

/// What lies in a folder, with whether it is a folder itself. Hidden files do not count.
fn entries(folder: &Path) -> Result<Vec<(String, bool)>, String> {
    let failed = |error: std::io::Error| format!("failed to read {}: {error}", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            entries.push((name, entry.path().is_dir()));
        }
    }
    entries.sort();
    Ok(entries)
}

/// Whether a file counts as a script: the ending counts as it is written.
fn is_script(name: &str) -> bool {
    name.strip_suffix(".sql").is_some_and(|id| !id.is_empty())
}

/// Whether a person would take it for one.
fn is_sql(name: &str) -> bool {
    name.to_lowercase().ends_with(".sql")
}

fn is_down(name: &str) -> bool {
    name.ends_with(".down.sql")
}

/// The id of a script, from the name of the file that runs.
fn id(name: &str) -> &str {
    name.trim_end_matches(".sql").trim_end_matches(".up")
}

pub(super) fn list(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", "))
}

/// Files that are no scripts by their names, and change which scripts there are or how one runs.
fn check_others(others: &[&str]) -> Result<(), String> {
    for name in others {
        if is_sql(name) {
            return Err(format!("{name}: the ending has to be .sql in small letters; {COUNTS}"));
        }
        if name.ends_with(".sql.conf") {
            return Err(format!(
                "{name}: settings of Flyway for a script are not read: give them as options, such as \
                 --without-transaction, and move the file away"
            ));
        }
        if let Some(engine) = dialect::behind_sql(name) {
            return Err(format!("{name}: a script for {engine} has to end with .sql to count; {COUNTS}"));
        }
    }
    Ok(())
}

/// Names that other tools run otherwise.
fn check_name(name: &str) -> Result<(), String> {
    let stem = name.trim_end_matches(".sql");
    let is_versioned = |rest: &str| {
        let version = rest.split("__").next().unwrap_or_default();
        rest.contains("__") && version.starts_with(|one: char| one.is_ascii_digit())
    };
    let what = match stem.split_at_checked(1) {
        Some(("U", rest)) if is_versioned(rest) => {
            "Flyway's undo of a script: name it after the script, as in V1__a.down.sql for V1__a.sql"
        }
        Some(("B", rest)) if is_versioned(rest) => {
            "Flyway's baseline, which stands for the scripts up to its number: leave it out, or leave those out"
        }
        Some(("R", rest)) if rest.starts_with("__") => {
            "Flyway's repeatable script: a script runs once here; give each change of it a number and a file"
        }
        _ if matches!(stem.to_lowercase().as_str(), "down" | "undo" | "rollback" | "revert") => {
            "what takes a script back: name it NAME.down.sql"
        }
        _ => return Ok(()),
    };
    Err(format!("{name}: {what}"))
}

/// Words by which the name of a file says that it takes a script back, each with the words of the script itself.
const BACK: [(&str, &[&str]); 5] = [
    ("down", &["up", ""]),
    ("undo", &["do", "up", ""]),
    ("rollback", &["up", "deploy", ""]),
    ("revert", &["up", "deploy", "apply", ""]),
    ("downgrade", &["upgrade"]),
];

/// A script and another one that takes it back, by other names than NAME.down.sql.
fn check_pairs(scripts: &[&str]) -> Result<(), String> {
    let ups = scripts.iter().filter(|name| !is_down(name));
    for name in ups {
        let words = name.split_inclusive(['.', '_', '-']);
        let mut at = 0;
        for word in words {
            let bare = word.trim_end_matches(['.', '_', '-']);
            let known = BACK.iter().find(|(back, _)| bare.eq_ignore_ascii_case(back));
            for counterpart in known.map(|(_, ups)| *ups).unwrap_or_default() {
                let (before, after) = (&name[..at], &name[at + bare.len()..]);
                let other = if counterpart.is_empty() {
                    format!("{}{after}", before.trim_end_matches(['.', '_', '-']))
                } else {
                    format!("{before}{counterpart}{after}")
                };
                if scripts.contains(&other.as_str()) {
                    return Err(format!(
                        "{name} looks like what takes {other} back, and would run behind or before it: name it {}.down.sql",
                        id(&other)
                    ));
                }
            }
            at += word.len();
        }
    }
    Ok(())
}

/// Scripts with what takes them back.
fn paired(scripts: &[&str]) -> Result<Vec<Found>, String> {
    let (downs, ups): (Vec<_>, Vec<_>) = scripts.iter().copied().partition(|name| is_down(name));
    let found: Vec<_> = ups
        .into_iter()
        .map(|up| {
            let down = format!("{}.down.sql", id(up));
            let down = downs.contains(&down.as_str()).then_some(down);
            Found { id: id(up).to_owned(), up: up.to_owned(), down }
        })
        .collect();
    let is_of_none = |down: &&&str| !found.iter().any(|one| one.down.as_deref() == Some(**down));
    if let Some(down) = downs.iter().find(is_of_none) {
        let id = down.trim_end_matches(".down.sql");
        return Err(format!("{down} takes no script back: neither {id}.sql nor {id}.up.sql is there"));
    }
    Ok(found)
}

/// Scripts in the order of their numbers, or of their names where none has one.
fn ordered(mut found: Vec<Found>) -> Result<Vec<Found>, String> {
    let numbers: Vec<_> = found.iter().map(|one| Number::of(&one.id)).collect();
    let without: Vec<_> = found
        .iter()
        .zip(&numbers)
        .filter(|(_, number)| number.is_none())
        .map(|(one, _)| one.up.clone())
        .collect();
    if !without.is_empty() && without.len() < found.len() {
        return Err(format!(
            "{}: without a number beside scripts that have numbers, so that the order is not sure: give it a number",
            list(&without)
        ));
    }
    found.sort_by(|one, other| {
        Number::of(&one.id).cmp(&Number::of(&other.id)).then_with(|| natural(&one.id, &other.id))
    });
    let twins = found.windows(2).find(|pair| {
        let [one, other] = pair else { return false };
        one.id == other.id || Number::of(&one.id).is_some_and(|number| Some(number) == Number::of(&other.id))
    });
    match twins {
        Some([one, other]) => Err(format!(
            "{} and {} have the same number, so that the order is not sure: give one of them another number",
            one.up, other.up
        )),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests;
