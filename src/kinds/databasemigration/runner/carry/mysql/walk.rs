//! Runs the remaining statements of a MySQL or MariaDB script, one by one.
//!
//! Guarantees: the history has a statement before the server does. A statement that only changes rows is committed together
//! with the row of the history. Short inserts one after the other share a transaction for a moment: the history has the first
//! of them until all are committed. If the server refuses one of them, those before it stay. A statement that is tried again
//! finds the session that it had. If a run dies before the transaction of an insert into a table with generated ids is
//! committed, that insert is in doubt.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use tokio::time::Instant;

use super::super::super::effects::{self, Side};
use super::super::{
    Carrier, Class, End, Entry, Failure, State, Task, Text, count, fail_point, in_doubt, milliseconds,
};
use crate::api::checksum::hexadecimal;
use crate::kinds::databasemigration::sql::Statement;
use crate::kinds::databasemigration::sql::mysql::effect::{Effect, Object};
use crate::kinds::databasemigration::sql::mysql::read::runs_program;
use crate::runtime::clock;

/// For how long short statements share a transaction, whose locks others wait for.
const SHARED: Duration = Duration::from_millis(50);

impl Carrier<'_> {
    /// Runs the remaining statements of a script. `goes_on`: the same session ran the statements before them.
    pub(in super::super) async fn one_by_one(
        &mut self,
        task: &mut Task<'_>,
        begun: Instant,
        goes_on: bool,
    ) -> Result<(), End> {
        let (first, last) = (task.from, count(task.text));
        if !goes_on {
            self.set_again(*task).await?;
        }
        // A script that may run again from its start has no doubts. The text of a down script may change after it was begun.
        let is_apart = task.is_down || task.script().idempotent;
        let effects = if is_apart { Vec::new() } else { effects::foreseen(self.connection, task.text) };
        let mut walk = Walk {
            carrier: self,
            is_resumed: first > 1 && !goes_on,
            text: task.text,
            sums: Sums::of(task.text),
            effects,
            // If no statement is left, the history has the number behind the last one.
            stands: (0, State::Resumable),
            shared: None,
            may_share: may_share(&task.text.all),
            is_limited: false,
            has_plain_tables: None,
            numbers: BTreeMap::new(),
        };
        for number in first..=last {
            walk.step(task, number).await?;
        }
        walk.commit(task, last.saturating_add(1), State::Resumable).await?;
        let (_, state) = walk.stands;
        self.leave_session().await.map_err(|failure| unanswered(*task, last, state, failure))?;
        let entry =
            Entry { statement: last, duration_ms: Some(milliseconds(begun)), ..task.entry(task.done()) };
        let written = self.log.write_alone(self.connection, &entry).await;
        written.map_err(|failure| unanswered(*task, last, state, failure))
    }
}

/// A way through the statements of a text.
struct Walk<'w, 'c, 't> {
    carrier: &'w mut Carrier<'c>,
    /// The session is not the one of the first statements.
    is_resumed: bool,
    text: &'t Text,
    sums: Sums<'t>,
    effects: Vec<Option<Effect>>,
    /// The statement that the history has, and in which state.
    stands: (u32, State),
    shared: Option<Shared>,
    may_share: bool,
    /// The limit of the session for locks is as it has to be.
    is_limited: bool,
    /// There are tables whose changes no transaction takes back, if that is known.
    has_plain_tables: Option<bool>,
    /// Whether a table, with its schema, gives its rows numbers.
    numbers: BTreeMap<(Option<String>, String), bool>,
}

/// A transaction that is open, and may have several statements.
struct Shared {
    /// Its first statement.
    from: u32,
    /// The checksum of what lies before that.
    done: Option<String>,
    /// All of its statements are short.
    is_short: bool,
    /// The state that the history has for its first statement.
    state: State,
    since: Instant,
}

impl Shared {
    /// Whether no statement of that state joins it.
    fn is_due(&self, state: State) -> bool {
        !self.is_short || self.state != state || self.since.elapsed() > SHARED
    }
}

impl Walk<'_, '_, '_> {
    async fn step(&mut self, task: &mut Task<'_>, number: u32) -> Result<(), End> {
        let Some(statement) = task.text.statement(number) else { return Ok(()) };
        let place = usize::try_from(number - 1).unwrap_or_default();
        let effect = self.effects.get_mut(place).and_then(Option::take);
        // Before the history has the statement: it says then how a later run finds out how the statement ended.
        let effect = self.shown(effect).await;
        let state = self.state(effect.as_ref()).await;
        let is_short = matches!(effect, Some(Effect::Rows { is_short: true, .. })) && self.may_share;
        if !is_short || self.shared.as_ref().is_some_and(|shared| shared.is_due(state)) {
            self.commit(task, number, state).await?;
        }
        let done = self.sums.before(number);
        if self.shared.is_none() {
            self.note(task, number, state, done.as_deref()).await?;
        }
        if !self.is_limited {
            self.carrier.limit_locks(*task).await?;
        }
        fail_point::reached("migrate.statement.before");
        let ran = if matches!(effect, Some(Effect::Rows { .. })) {
            self.within(task, number, done.clone(), (is_short, state)).await
        } else {
            self.has_plain_tables = None;
            self.numbers.clear();
            self.carrier.run_one(*task, number).await.map(|_| ())
        };
        fail_point::reached("migrate.statement.after");
        // Such a statement may set the limit to another value.
        self.is_limited = !runs_program(statement) && !statement.begins(&["SET"]);
        match ran {
            // What was prepared went with its session.
            Err(failure) if self.is_resumed && is_deallocated(statement, &failure) => Ok(()),
            Err(failure) => self.refused(task, number, done, failure.of(task.id()).at(number)).await,
            Ok(()) => Ok(()),
        }
    }

    /// The history has that a statement is next, where another try would begin.
    async fn note(
        &mut self,
        task: &mut Task<'_>,
        number: u32,
        state: State,
        done: Option<&str>,
    ) -> Result<(), Failure> {
        task.from = number;
        let entry = Entry { statement: number, done, ..task.entry(state) };
        let Carrier { log, connection, .. } = &mut *self.carrier;
        match self.stands {
            (0, _) => log.write_alone(connection, &entry).await?,
            stands if stands == (number, state) => {}
            _ => log.advance(connection, &entry).await?,
        }
        self.stands = (number, state);
        Ok(())
    }

    /// Runs a statement that only changes rows in the open transaction. If no transaction is open, it begins one.
    async fn within(
        &mut self,
        task: &Task<'_>,
        number: u32,
        done: Option<String>,
        (is_short, state): (bool, State),
    ) -> Result<(), Failure> {
        if self.shared.is_none() {
            self.carrier.log.begin(self.carrier.connection, None).await?;
            self.shared = Some(Shared { from: number, done, is_short, state, since: clock::instant() });
        }
        self.carrier.run_one(*task, number).await.map(|_| ())
    }

    /// Commits the transaction that is open, together with the statement that is next in the history.
    async fn commit(&mut self, task: &Task<'_>, next: u32, state: State) -> Result<(), End> {
        let Some(shared) = self.shared.take() else { return Ok(()) };
        let done = self.sums.before(next);
        let entry = Entry { statement: next, done: done.as_deref(), ..task.entry(state) };
        let Carrier { log, connection, .. } = &mut *self.carrier;
        let advanced = log.advance_within(connection, &entry).await;
        fail_point::reached("migrate.commit.before");
        let ended = log.end(connection, advanced).await;
        fail_point::reached("migrate.commit.after");
        let Err(failure) = ended else {
            self.stands = (next, state);
            return Ok(());
        };
        let failure = failure.of(task.id());
        if failure.is_unanswered {
            // The history has whether the transaction was committed.
            return Err(unanswered(*task, next - 1, State::Resumable, failure));
        }
        // The transaction is rolled back for certain.
        if shared.state == State::Running {
            let refused =
                Entry { statement: shared.from, done: shared.done.as_deref(), ..task.entry(State::Failed) };
            if let Err(failure) = log.write_alone(connection, &refused).await {
                tracing::warn!(failure = failure.message, "the history does not have the failure");
            }
        }
        Err(failure.at(next - 1).into())
    }

    /// The server did not do a statement.
    async fn refused(
        &mut self,
        task: &mut Task<'_>,
        number: u32,
        done: Option<String>,
        failure: Failure,
    ) -> Result<(), End> {
        let (_, state) = self.stands;
        if failure.is_unanswered {
            let first = self.shared.as_ref().map_or(number, |shared| shared.from);
            return Err(unanswered(*task, first, state, failure));
        }
        let (next, done) = match self.shared.take() {
            None => (number, done),
            Some(shared) => {
                let first = shared.from;
                match self.keep(task, shared, number, done).await {
                    Ok(kept) => kept,
                    Err(failure) if failure.is_unanswered => {
                        return Err(unanswered(*task, first, state, failure));
                    }
                    Err(failure) => return Err(failure.of(task.id()).at(first).into()),
                }
            }
        };
        if let Some(statement) = task.text.statement(number)
            && self.carrier.may_have_done_some(*task, statement, &failure).await
        {
            return Err(in_doubt(*task, number, failure));
        }
        self.carrier.refused(*task, next, done.as_deref(), &failure).await?;
        Err(failure.into())
    }

    /// Keeps what the open transaction has done before a statement that was refused, if the server has not rolled back all of
    /// it; the statement to go on with, and the checksum of what lies before that.
    async fn keep(
        &mut self,
        task: &mut Task<'_>,
        shared: Shared,
        number: u32,
        done: Option<String>,
    ) -> Result<(u32, Option<String>), Failure> {
        let Carrier { log, connection, .. } = &mut *self.carrier;
        // The answer says whether the transaction is still open.
        connection.control("DO 0").await?;
        if shared.from == number || !connection.is_in_transaction() {
            connection.roll_back().await?;
            task.from = shared.from;
            return Ok((shared.from, shared.done));
        }
        let entry = Entry { statement: number, done: done.as_deref(), ..task.entry(State::Resumable) };
        let advanced = log.advance_within(connection, &entry).await;
        log.end(connection, advanced).await?;
        task.from = number;
        Ok((number, done))
    }

    /// The state of a statement in the history. A statement is in doubt if its run dies and a rollback uses up numbers: later
    /// statements may name the numbers that the rows would have had.
    async fn state(&mut self, effect: Option<&Effect>) -> State {
        match effect {
            None => State::Running,
            Some(Effect::Rows { into: Some(into), .. }) if self.numbers_rows(into).await => State::Running,
            Some(Effect::Rows { .. } | Effect::Objects(_) | Effect::Repeatable) => State::Resumable,
        }
    }

    async fn numbers_rows(&mut self, into: &Object) -> bool {
        let key = (into.schema.clone(), into.name.clone());
        if let Some(numbers) = self.numbers.get(&key) {
            return *numbers;
        }
        let numbers = effects::numbers_rows(self.carrier.connection, into).await.unwrap_or(true);
        self.numbers.insert(key, numbers);
        numbers
    }

    /// The effect of a statement, if the database shows later whether the statement took effect.
    async fn shown(&mut self, effect: Option<Effect>) -> Option<Effect> {
        let effect = effect?;
        if effect == Effect::Repeatable {
            return Some(effect);
        }
        let has_plain_tables = match self.has_plain_tables {
            Some(has) => has,
            None => self.carrier.may_change_plain_tables(&self.text.all).await,
        };
        self.has_plain_tables = Some(has_plain_tables);
        let is_own = self.shared.is_some() || self.carrier.connection.commits_by_itself();
        if has_plain_tables || !is_own {
            return None;
        }
        if let Effect::Objects(signs) = &effect
            && !matches!(effects::look(self.carrier.connection, signs).await, Ok(Some(Side::Before)))
        {
            return None;
        }
        Some(effect)
    }
}

/// Whether a statement was to deallocate a prepared statement that is not there (error 1243).
fn is_deallocated(statement: &Statement, failure: &Failure) -> bool {
    let deallocates = statement.begins(&["DEALLOCATE", "PREPARE"]) || statement.begins(&["DROP", "PREPARE"]);
    deallocates && failure.number == Some(1243)
}

/// Whether statements of a text may share a transaction: if the server rolls back all of it, the session has nothing of the
/// statements that run again.
fn may_share(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    !["LAST_INSERT_ID", "@@IDENTITY", ":=", "TEMPORARY"].iter().any(|word| text.contains(word))
}

/// A statement was not answered: the database shows later whether it took effect, or its script is in doubt.
fn unanswered(task: Task<'_>, statement: u32, state: State, failure: Failure) -> End {
    if state != State::Resumable {
        return in_doubt(task, statement, failure);
    }
    End::Failed(Failure { class: Class::Connection, ..failure.of(task.id()).at(statement) })
}

/// The checksums of what lies before each statement, of which no byte is read twice.
struct Sums<'a> {
    text: &'a Text,
    hash: Context,
    end: usize,
}

impl<'a> Sums<'a> {
    fn of(text: &'a Text) -> Self {
        Self { text, hash: Context::new(&SHA256), end: 0 }
    }

    /// As [`Text::done_before`] has it, for numbers that grow.
    fn before(&mut self, number: u32) -> Option<String> {
        let last = usize::try_from(number).ok()?.checked_sub(2)?;
        let end = self.text.statements.get(last)?.end;
        self.hash.update(self.text.all.as_bytes().get(self.end..end)?);
        self.end = end;
        Some(format!("sha256:{}", hexadecimal(self.hash.clone().finish().as_ref())))
    }
}
