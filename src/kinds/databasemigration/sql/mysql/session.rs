//! What of a session a later statement needs that an earlier one has set, for a script that goes on in another session.
//!
//! Guarantees: a script goes on only where each statement finds the session that it would have had. What can be set again is
//! set again: SET of values that are written in the script, USE, and all that only sets the session directly before the
//! statement to go on with, since no other statement has used it yet. Another value is lost, and the statement that uses it
//! is named.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Statement;
use super::modes::Modes;
use super::read::{Read, plain, read};
use super::set::Target;
use super::tokens::Kind;
use crate::kinds::databasemigration::api::v1::Engine;

/// The statements, from 1 on, that are to run again so that the script can go on with the statement `from`.
///
/// # Errors
/// Which statement needs what is lost, and which statement had set it.
pub fn again(
    engine: Engine,
    text: &str,
    statements: &[Statement],
    from: u32,
    modes: Modes,
) -> Result<Vec<u32>, String> {
    let all = read(engine, text, statements, modes);
    let done = usize::try_from(from).unwrap_or(usize::MAX).saturating_sub(1).min(all.len());
    let (before, rest) = all.split_at(done);
    let mut lost = Lost::of(before, rest);
    for one in rest {
        lost.compare(one)?;
    }
    Ok(lost.again.iter().filter_map(|number| u32::try_from(*number).ok()).collect())
}

/// What is lost of a session, each with the statement that had set it.
#[derive(Default)]
struct Lost {
    variables: BTreeMap<String, String>,
    prepared: BTreeMap<String, String>,
    tables: BTreeMap<String, String>,
    /// Temporary tables that a program makes as soon as it is called.
    of_programs: BTreeSet<String>,
    /// The words of all programs of the script.
    in_programs: BTreeSet<String>,
    /// The statement that may have set any variable.
    all: Option<String>,
    /// The statement that may have generated an id. Another one need not generate any, so that it changes nothing here.
    id: Option<String>,
    /// The statement that may have taken a number from a sequence.
    sequence: Option<String>,
    /// A variable of the session that cannot be set again.
    session: Option<String>,
    known: BTreeSet<String>,
    again: BTreeSet<usize>,
    is_first: bool,
}

impl Lost {
    fn of(before: &[Read<'_>], rest: &[Read<'_>]) -> Self {
        let mut lost = Self { is_first: true, ..Self::default() };
        let programs = before.iter().chain(rest).filter(|one| one.is_program());
        let words = programs.flat_map(|one| one.tokens.iter().map(|token| plain(token.text(one.text))));
        lost.in_programs.extend(words);
        let tail = before.iter().rev().take_while(|one| one.sets_session_alone()).count();
        for (at, one) in before.iter().enumerate() {
            lost.take(one, at >= before.len() - tail);
        }
        let prepared = |one: &Read<'_>| Some((one.named(&["PREPARE"])?, one.number));
        let newest: BTreeMap<_, _> = before.iter().filter_map(prepared).collect();
        let used = used_before_prepared(rest);
        lost.again.retain(|number| {
            let one = &before[number - 1];
            match one.named(&["PREPARE"]) {
                Some(name) => used.contains(&name) && newest.get(&name) == Some(number),
                None => one.first() != "DEALLOCATE",
            }
        });
        lost
    }

    fn take(&mut self, one: &Read<'_>, is_tail: bool) {
        if one.is_program() {
            self.of_programs.append(&mut one.temporary_tables_of_program());
            return;
        }
        let place = one.place();
        let needs_lost = one.needed().iter().any(|name| self.lost_by(name).is_some())
            || one.sets_session_alone() && self.lost_table(one).is_some();
        let is_set_again = !needs_lost && (is_tail && one.sets_session_alone() || one.is_pure());
        if is_set_again {
            self.again.insert(one.number);
        }
        for target in one.targets() {
            match target {
                Target::User(name) if is_set_again => self.define(name),
                Target::User(name) => {
                    self.variables.insert(name, place.clone());
                }
                Target::Session(_) if is_set_again => {}
                Target::Session(name) => self.session = Some(format!("{name} of {place}")),
                Target::Elsewhere(_) => {}
            }
        }
        for name in one.filled() {
            if is_set_again {
                self.define(name);
            } else {
                self.variables.insert(name, place.clone());
            }
        }
        if one.may_set_all() {
            self.all = Some(place.clone());
            self.known.clear();
            let made = one.temporary_tables_of_program();
            self.tables.extend(self.of_programs.union(&made).map(|name| (name.clone(), place.clone())));
        }
        if matches!(one.first(), "INSERT" | "REPLACE" | "LOAD")
            || one.may_set_all()
            || one.of_session().is_some()
        {
            self.id = Some(place.clone());
        }
        if self.id.as_ref() == Some(&place) || one.uses_sequence() {
            self.sequence = Some(place.clone());
        }
        self.take_named(one, place);
    }

    /// The statement by which the value of a variable is lost.
    fn lost_by(&self, name: &str) -> Option<&String> {
        let by = self.variables.get(name);
        by.or_else(|| self.all.as_ref().filter(|_| !self.known.contains(name)))
    }

    fn define(&mut self, name: String) {
        self.variables.remove(&name);
        self.known.insert(name);
    }

    /// What has a name of its own: prepared statements and temporary tables.
    fn take_named(&mut self, one: &Read<'_>, place: String) {
        if let Some(name) = one.named(&["PREPARE"]) {
            if one.needed().iter().any(|name| self.lost_by(name).is_some()) {
                self.again.remove(&one.number);
                self.prepared.insert(name, place);
            } else {
                self.again.insert(one.number);
                self.prepared.remove(&name);
            }
        } else if let Some(name) = one.temporary_table() {
            self.tables.insert(name, place);
        } else if one.statement.begins(&["DROP"]) {
            for token in &one.tokens {
                self.tables.remove(&plain(token.text(one.text)));
            }
        }
    }

    /// Whether a statement that is still to run finds what it needs.
    fn compare(&mut self, one: &Read<'_>) -> Result<(), String> {
        let is_first = std::mem::take(&mut self.is_first);
        if one.is_program() {
            return Ok(());
        }
        if let Some(session) = &self.session {
            return Err(format!(
                "the session variable {session} got a value that is not written in the script, and that is lost"
            ));
        }
        let set: Vec<_> = one
            .targets()
            .into_iter()
            .filter_map(|target| match target {
                Target::User(name) => Some(name),
                Target::Session(_) | Target::Elsewhere(_) => None,
            })
            .collect();
        for name in &one.needed() {
            if let Some(by) = self.lost_by(name) {
                return Err(needs(one, name, by));
            }
        }
        if one.may_set_all()
            && let Some((name, by)) = self.tables.iter().find(|(name, _)| self.in_programs.contains(*name))
        {
            return Err(needs(one, &format!("the temporary table {name}"), by));
        }
        self.compare_session(one, is_first)?;
        for name in set.into_iter().chain(one.filled()) {
            self.define(name);
        }
        self.compare_named(one)
    }

    fn compare_session(&mut self, one: &Read<'_>, is_first: bool) -> Result<(), String> {
        if one.reads_last_of_sequence()
            && let Some(by) = &self.sequence
        {
            return Err(needs(one, "the last number of a sequence", by));
        }
        if one.uses_sequence() {
            self.sequence = None;
        }
        let Some(value) = one.of_session() else { return Ok(()) };
        let is_id = value.ends_with("IDENTITY") || value.ends_with("LAST_INSERT_ID");
        match &self.id {
            Some(by) if is_id => Err(needs(one, &value, by)),
            _ if !is_id && is_first && one.number > 1 => Err(needs(one, &value, "the statement before it")),
            _ => Ok(()),
        }
    }

    fn compare_named(&mut self, one: &Read<'_>) -> Result<(), String> {
        // A statement that deallocates it is done already.
        if let Some((name, by)) = one.named(&["EXECUTE"]).and_then(|name| self.prepared.get_key_value(&name))
        {
            return Err(needs(one, &format!("the prepared statement {name}"), by));
        }
        if let Some(name) = one.named(&["PREPARE"]) {
            self.prepared.remove(&name);
        }
        if let Some(name) = one.temporary_table() {
            self.tables.remove(&name);
        }
        if one.statement.begins(&["DROP"]) && one.statement.has("EXISTS") {
            return Ok(());
        }
        let found = self.lost_table(one);
        found.map_or(Ok(()), |(name, by)| Err(needs(one, &format!("the temporary table {name}"), by)))
    }

    /// The temporary table that a statement names, and which statement had made it.
    fn lost_table(&self, one: &Read<'_>) -> Option<(&String, &String)> {
        let mut named = one.tokens.iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Name));
        named.find_map(|token| self.tables.get_key_value(&plain(token.text(one.text))))
    }
}

/// The prepared statements that are used before they are prepared.
fn used_before_prepared(rest: &[Read<'_>]) -> BTreeSet<String> {
    const USES: [&[&str]; 3] = [&["EXECUTE"], &["DEALLOCATE", "PREPARE"], &["DROP", "PREPARE"]];
    let (mut used, mut prepared) = (BTreeSet::new(), BTreeSet::new());
    for one in rest {
        prepared.extend(one.named(&["PREPARE"]));
        let name = USES.iter().find_map(|words| one.named(words));
        used.extend(name.filter(|name| !prepared.contains(name)));
    }
    used
}

fn needs(one: &Read<'_>, what: &str, by: &str) -> String {
    format!("{} uses {what}, which was of the session of {by} and is lost", one.place())
}

#[cfg(test)]
mod tests {
    use super::super::split;
    use super::*;

    fn resumed(text: &str, from: u32) -> Result<Vec<u32>, String> {
        let statements = split(Engine::MariaDB, text, Modes::default()).unwrap();
        again(Engine::MariaDB, text, &statements, from, Modes::default())
    }

    #[test]
    fn what_is_written_in_the_script_is_set_again() {
        for (text, from, expected) in [
            (
                "SET @a = 7; USE x; SET NAMES utf8; INSERT INTO t VALUES (1); CREATE TABLE u (i int); SELECT @a",
                5,
                &[1, 2, 3][..],
            ),
            ("SET @a = 'x', @b = CONCAT(@a, 1); CREATE TABLE u (i int); SELECT @b", 2, &[1]),
            ("SET @old = @@sql_mode, sql_mode = ''; CREATE TABLE u (i int); SET sql_mode = @old", 2, &[1]),
            (
                "SET @s = (SELECT COUNT(*) FROM x); PREPARE st FROM @s; EXECUTE st; DEALLOCATE PREPARE st",
                3,
                &[1, 2],
            ),
            ("SELECT COUNT(*) INTO @n FROM x; CREATE TABLE u (i int); INSERT INTO t VALUES (@n)", 2, &[1]),
            (
                "PREPARE st FROM 'SELECT 1'; EXECUTE st; CREATE TABLE u (i int); DEALLOCATE PREPARE st",
                3,
                &[1],
            ),
            (
                "PREPARE st FROM 'INSERT INTO t VALUES (1)'; EXECUTE st; PREPARE st FROM 'SELECT 1'; SELECT 2; EXECUTE st",
                4,
                &[3],
            ),
            (
                "PREPARE st FROM 'INSERT INTO t VALUES (1)'; EXECUTE st; ALTER TABLE t ADD c int; \
                 PREPARE st FROM 'SELECT 1'; EXECUTE st",
                3,
                &[],
            ),
            (
                "CREATE PROCEDURE p() BEGIN CREATE TEMPORARY TABLE tt (i int); DROP TEMPORARY TABLE tt; END; CALL p(); \
                 CREATE TABLE tt (i int); SELECT * FROM tt",
                3,
                &[],
            ),
            ("SELECT a INTO @s FROM t; DELETE FROM t; PREPARE st FROM @s; DEALLOCATE PREPARE st", 4, &[]),
            ("SET @u = UUID(); INSERT INTO t VALUES (@u); CREATE TABLE u (i int); SELECT 1", 3, &[]),
            (
                "SET @u = UUID(); INSERT INTO t VALUES (@u); CREATE TABLE u (i int); SET @u = 1; SELECT @u",
                3,
                &[],
            ),
            ("CREATE USER a@localhost; CREATE TABLE u (i int); GRANT ALL ON *.* TO a@localhost", 2, &[]),
            (
                "CREATE TEMPORARY TABLE tt (i int); DROP TABLE tt; CREATE TABLE tt (i int); SELECT * FROM tt",
                3,
                &[],
            ),
            (
                "CREATE PROCEDURE p() BEGIN SELECT LAST_INSERT_ID() INTO @x; END; CREATE TABLE u (i int); SELECT 1",
                2,
                &[],
            ),
            ("SET @u = UUID(); INSERT INTO t VALUES (@u); CREATE PROCEDURE p() SELECT @u; SELECT 1", 3, &[]),
        ] {
            assert_eq!(resumed(text, from).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one script after the other")]
    fn what_is_lost_is_named_where_it_is_used() {
        for (text, from, parts) in [
            (
                "INSERT INTO p (n) VALUES ('x');\nSET @pid = LAST_INSERT_ID();\nINSERT INTO k VALUES (@pid);\n\
                 INSERT INTO nope VALUES (1);\nINSERT INTO k VALUES (@pid)",
                4,
                ["statement 5 in line 5", "@PID", "statement 2 in line 2"],
            ),
            (
                "SET @u = UUID(); INSERT INTO t VALUES (@u); ALTER TABLE x ADD y int; SELECT @u",
                3,
                ["statement 4", "@U", "statement 1"],
            ),
            (
                "SET @n = (SELECT COUNT(*) FROM t); INSERT INTO t VALUES (1); ALTER TABLE x ADD y int; SELECT @n",
                3,
                ["statement 4", "@N", "1"],
            ),
            (
                "SELECT id INTO @x FROM t; DELETE FROM t; ALTER TABLE x ADD y int; SELECT @x",
                3,
                ["statement 4", "@X", "statement 1"],
            ),
            (
                "SELECT @x := 1; DELETE FROM t; SET @y = @x + 1; SELECT @y",
                3,
                ["statement 3", "@X", "statement 1"],
            ),
            (
                "SET @a = LAST_INSERT_ID(); SET @b = @a + 1; SELECT @b",
                3,
                ["statement 3", "@B", "statement 2"],
            ),
            (
                "INSERT INTO p VALUES (1); INSERT INTO k VALUES (LAST_INSERT_ID())",
                2,
                ["statement 2", "LAST_INSERT_ID", "statement 1"],
            ),
            (
                "INSERT INTO p VALUES (1); INSERT INTO no_id VALUES (2); INSERT INTO k VALUES (LAST_INSERT_ID())",
                2,
                ["statement 3", "LAST_INSERT_ID", "statement 1"],
            ),
            ("INSERT INTO p VALUES (1); SELECT @@identity", 2, ["statement 2", "@@IDENTITY", "statement 1"]),
            (
                "UPDATE p SET a = 1; INSERT INTO k VALUES (ROW_COUNT())",
                2,
                ["statement 2", "ROW_COUNT", "before"],
            ),
            (
                "CREATE TEMPORARY TABLE `tt` AS SELECT 1; ALTER TABLE x ADD y int; INSERT INTO k SELECT * FROM tt",
                2,
                ["statement 3", "TT", "statement 1"],
            ),
            (
                "SELECT a INTO @s FROM t; DELETE FROM t; PREPARE st FROM @s; EXECUTE st",
                4,
                ["statement 4", "ST", "statement 3"],
            ),
            (
                "CREATE TEMPORARY TABLE tt (i int); INSERT INTO tt VALUES (1); SET @n = (SELECT SUM(i) FROM tt); \
                 CREATE TABLE u (i int); SELECT @n",
                4,
                ["statement 5", "@N", "statement 3"],
            ),
            (
                "CREATE PROCEDURE p() CREATE TEMPORARY TABLE IF NOT EXISTS tt (i int); CALL p(); \
                 CREATE TABLE u AS SELECT * FROM tt",
                3,
                ["statement 3", "TT", "statement 2"],
            ),
            (
                "CREATE PROCEDURE p() BEGIN DROP TEMPORARY TABLE IF EXISTS x.tt; CREATE TEMPORARY TABLE x.tt (i int); END; \
                 CALL p(); SELECT * FROM x.tt",
                3,
                ["statement 3", "TT", "statement 2"],
            ),
            (
                "SET @id = (SELECT NEXT VALUE FOR s); INSERT INTO p VALUES (@id); ALTER TABLE x ADD y int; SELECT @id",
                3,
                ["statement 4", "@ID", "statement 1"],
            ),
            (
                "SET @now = CURRENT_TIMESTAMP; INSERT INTO p VALUES (@now); ALTER TABLE x ADD y int; SELECT @now",
                3,
                ["statement 4", "@NOW", "statement 1"],
            ),
            (
                "SET @s = 'DELETE FROM a'; CALL build(); PREPARE st FROM @s; ALTER TABLE b ADD c int; EXECUTE st",
                4,
                ["statement 5", "ST", "statement 3"],
            ),
            (
                "SET @n = 1; CALL p(); SET @m = @n + 1; ALTER TABLE b ADD c int; SELECT @m",
                4,
                ["statement 5", "@M", "statement 3"],
            ),
            (
                "INSERT INTO p VALUES (NEXTVAL(s)); ALTER TABLE x ADD y int; INSERT INTO c VALUES (LASTVAL(s))",
                2,
                ["statement 3", "last number", "statement 1"],
            ),
            (
                "CREATE TEMPORARY TABLE tt (i int); CREATE PROCEDURE p() INSERT INTO u SELECT * FROM tt; CALL p()",
                3,
                ["statement 3", "TT", "statement 1"],
            ),
            ("CALL p(@out); ALTER TABLE x ADD y int; SELECT @out", 2, ["statement 3", "@OUT", "statement 1"]),
            (
                "CALL p(); ALTER TABLE x ADD y int; SELECT @hidden",
                2,
                ["statement 3", "@HIDDEN", "statement 1"],
            ),
            (
                "SET timestamp = (SELECT MAX(a) FROM t); DELETE FROM t; ALTER TABLE x ADD y int",
                3,
                ["TIMESTAMP", "statement 1", "not written"],
            ),
        ] {
            let error = resumed(text, from).expect_err(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
