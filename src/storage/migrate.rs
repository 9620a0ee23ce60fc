//! Runs a migration.

mod begin;
mod event;
mod page;
mod save;

use std::time::Duration;

use futures::future::{Either, select};
use std::pin::pin;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::observation::{Definition, ObjectMeta};
use super::plan::checkpoint::Checkpoint;
use super::plan::object::{Answer, LONGEST_PAUSE, PAUSE_UNREACHED, TRIES_THROTTLED, reason};
use super::plan::pace::Pace;
use super::plan::tally::{Failure, Tally};
use super::plan::usage::Usage;
use super::plan::{self, End, Goal, Held, Kept};
use super::requests::{Page, Requests};
use crate::runtime::{clock, fail_point};
use begin::Beginning;

pub use event::{Event, Silent, Watch};

/// How often a request is made that the API server fails at, and the first pause between two.
const TRIES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// How it is gone about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many objects are listed at a time.
    pub chunk: u32,
    /// How many patches are under way at most.
    pub workers: u16,
    /// Whether nothing is to be written: the API server is asked what it would say.
    pub is_dry: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { chunk: 500, workers: 16, is_dry: false }
    }
}

/// How a migration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every object is stored in the storage version.
    Migrated {
        /// The versions that `storedVersions` named besides.
        dropped: Vec<String>,
        /// What the last pass has done.
        last: Tally,
    },
    /// No object was stored in another version; managed fields were looked at.
    Cleaned(Tally),
    /// `storedVersions` stays as it is.
    Kept {
        /// Why.
        why: Kept,
        /// What the last pass has done.
        last: Tally,
    },
    /// Nothing was to be written; what the API server would say.
    Tried(Tally),
    /// It was asked to end.
    Interrupted(Tally),
}

impl Outcome {
    /// The first objects that could not be written.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        match self {
            Self::Kept { last, .. } | Self::Cleaned(last) => &last.failures,
            Self::Migrated { .. } | Self::Tried(_) | Self::Interrupted(_) => &[],
        }
    }
}

/// It could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be done about the definition.
    #[error(transparent)]
    Held(#[from] Held),
    /// There is no such definition.
    #[error(
        "there is no definition {0}: expected the name of a CustomResourceDefinition, such as tdsets.gatehouse.dev"
    )]
    NoDefinition(String),
    /// The API server does not do what it is asked for.
    #[error("unable to {verb} {what}: {why}")]
    Refused {
        /// What was to be done.
        verb: &'static str,
        /// To what.
        what: String,
        /// What was wrong.
        why: String,
    },
}

/// One migration.
pub struct Migration<'a> {
    /// The way to the API server.
    pub requests: &'a Requests,
    /// What is asked for.
    pub goal: Goal,
    /// How it is gone about.
    pub options: Options,
    /// Ends it early, in good order.
    pub stop: CancellationToken,
    /// The receiver of events.
    pub watch: &'a dyn Watch,
}

/// How long an API server is waited for that cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// For a few tries: nothing has been begun, or who asks does so again later.
    Short,
    /// Until the migration is to end.
    Unbounded,
}

/// How many patches are under way, by a clock that does not jump.
struct Workers {
    pace: Pace,
    since: Instant,
}

impl Workers {
    fn new(most: u16) -> Self {
        Self { pace: Pace::new(most), since: clock::instant() }
    }
}

impl Migration<'_> {
    /// Carries it out for the definition of that name.
    ///
    /// # Errors
    /// It cannot be begun, or the API server does not do what it is asked for. What was done is done, the place is kept,
    /// and the condition says why.
    pub async fn run(&self, name: &str) -> Result<Outcome, Error> {
        let Some(Beginning { definition, place, rewrites }) = self.begin(name).await? else {
            return Ok(Outcome::Interrupted(Tally::default()));
        };
        let outcome = self.passes(&definition, place, rewrites).await;
        if rewrites && let Err(error) = &outcome {
            self.say_failed(&definition, error).await;
        }
        outcome
    }

    /// All passes from that place on, and what they lead to.
    async fn passes(
        &self,
        definition: &Definition,
        mut place: Checkpoint,
        rewrites: bool,
    ) -> Result<Outcome, Error> {
        if rewrites {
            self.say_begun(definition).await?;
        }
        let mut workers = Workers::new(self.options.workers);
        loop {
            self.watch.see(Event::Begins { place: &place });
            if !self.pass(definition, &mut place, rewrites, &mut workers).await? {
                if rewrites {
                    self.say_interrupted(definition, &place).await?;
                }
                return Ok(Outcome::Interrupted(place.tally));
            }
            self.watch.see(Event::Ends { pass: place.pass, tally: &place.tally });
            fail_point::reached("storage: a pass has ended");
            if self.options.is_dry || !plan::has_next(place.pass, &place.tally, rewrites) {
                break;
            }
            place.pass += 1;
            place = place.again();
            if rewrites {
                self.save(definition, &place).await;
            }
        }
        if self.options.is_dry {
            return Ok(Outcome::Tried(place.tally));
        }
        self.finish(definition, place.tally, rewrites).await
    }

    /// One pass, from its place on; whether it came to its end. While the objects of a page are written, the next page is
    /// listed, and the place is saved at which this one begins.
    async fn pass(
        &self,
        definition: &Definition,
        place: &mut Checkpoint,
        rewrites: bool,
        workers: &mut Workers,
    ) -> Result<bool, Error> {
        let mut chunk = self.options.chunk;
        let mut saved = clock::instant();
        workers.pace.begin_pass();
        let mut ahead = place.clone();
        let mut listed = self.page(Patience::Unbounded, definition, &mut ahead, &mut chunk).await;
        loop {
            place.clone_from(&ahead);
            let checked = match listed {
                Ok(page) => self.is_convertible(definition, &page).await.map(|()| page),
                Err(error) => Err(error),
            };
            if checked.is_err() {
                self.save(definition, place).await;
            }
            let page = checked?;
            let mut tally = place.tally.clone();
            let remaining = page.metadata.remaining_item_count.unwrap_or_default();
            let objects = page.items.into_iter().map(|item| item.metadata).collect();
            let next = page.metadata.next;
            ahead.next.clone_from(&next);
            let work = self.objects(definition, (objects, remaining), rewrites, &mut tally, workers);
            let list = self.following(definition, &mut ahead, &mut chunk);
            let save = async {
                if saved.elapsed() >= save::INTERVAL {
                    self.save(definition, place).await;
                    saved = clock::instant();
                }
            };
            let (is_whole, following, ()) = futures::join!(work, list, save);
            if !is_whole {
                self.save(definition, place).await;
                place.tally = tally;
                return Ok(false);
            }
            // Where the token for it was too old and no other is given, the pass begins again.
            if next.is_empty() || !ahead.next.is_empty() {
                ahead.tally = tally;
            }
            let Some(following) = following else {
                place.clone_from(&ahead);
                if !next.is_empty() {
                    self.save(definition, place).await;
                }
                return Ok(next.is_empty());
            };
            listed = following;
        }
    }

    /// Whether an object still cannot be written of those that could not when this definition was migrated before: that is
    /// known by writing these alone. Where they can be by now, they are written, and a migration finds out about all.
    pub async fn still_fails(&self, definition: &Definition, failures: &[Failure]) -> bool {
        let Some(asked) = definition.asked_version() else { return true };
        let mut page = Page::default();
        for (namespace, name) in failures.iter().map(Failure::place) {
            let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
            let named = ObjectMeta { name, namespace, ..ObjectMeta::default() };
            match self.requests.converted(definition, &named, &asked.name).await {
                Answer::Done(item) => page.items.push(item),
                Answer::Refused(status, _) if status.code == 404 => {}
                _ => return true,
            }
        }
        if self.is_convertible(definition, &page).await.is_err() {
            return true;
        }
        let rewrites = !plan::is_stored_as_wanted(definition);
        let objects = page.items.into_iter().map(|item| item.metadata).collect();
        let (mut tally, mut workers) = (Tally::default(), Workers::new(self.options.workers));
        let is_whole = self.objects(definition, (objects, 0), rewrites, &mut tally, &mut workers).await;
        !is_whole || tally.failed > 0
    }

    /// Writes what the last pass leads to.
    async fn finish(&self, before: &Definition, last: Tally, rewrites: bool) -> Result<Outcome, Error> {
        for _ in 0..TRIES {
            let now = match self.read(Patience::Unbounded, &before.name).await {
                Ok(now) => Some(now),
                Err(Error::NoDefinition(_)) => None,
                Err(error) => return Err(error),
            };
            let end = plan::end(before, now.as_ref(), &last, rewrites);
            fail_point::reached("storage: storedVersions is to be written");
            let Some(now) = now.filter(|now| now.uid == before.uid) else {
                return Ok(Outcome::Kept { why: Kept::Deleted, last });
            };
            if !self.say_ended(&now, &end, (&last, rewrites)).await? {
                continue;
            }
            self.forget(&now).await;
            return Ok(match end {
                End::Keep(why) => Outcome::Kept { why, last },
                End::Reduce(dropped) => Outcome::Migrated { dropped, last },
                End::Said if rewrites => Outcome::Migrated { dropped: Vec::new(), last },
                End::Said => Outcome::Cleaned(last),
            });
        }
        Ok(Outcome::Kept { why: Kept::Changed, last })
    }

    /// Reads all objects, and reports which managers have written them in which version.
    ///
    /// # Errors
    /// The API server does not list them.
    pub async fn usage(&self, definition: &Definition) -> Result<Usage, Error> {
        let mut usage = Usage::default();
        let mut place = Checkpoint::at_pass(1, &definition.uid, definition.generation, "");
        let mut chunk = self.options.chunk;
        loop {
            let page = self.page(Patience::Short, definition, &mut place, &mut chunk).await?;
            page.items.iter().for_each(|item| usage.add(definition, &item.metadata));
            place.next = page.metadata.next;
            if place.next.is_empty() || self.stop.is_cancelled() {
                return Ok(usage);
            }
        }
    }

    /// All definitions.
    ///
    /// # Errors
    /// The API server does not list them.
    pub async fn definitions(&self) -> Result<Vec<Definition>, Error> {
        match self.insist(Patience::Short, || self.requests.definitions()).await {
            Answer::Done(all) => Ok(all),
            other => Err(refused("list", "the definitions".to_owned(), other)),
        }
    }

    /// The definition of that name.
    ///
    /// # Errors
    /// There is none, or the API server does not answer.
    pub async fn definition(&self, name: &str) -> Result<Definition, Error> {
        self.read(Patience::Short, name).await
    }

    async fn read(&self, patience: Patience, name: &str) -> Result<Definition, Error> {
        match self.insist(patience, || self.requests.definition(name)).await {
            Answer::Done(definition) => Ok(definition),
            Answer::Refused(status, _) if status.code == 404 => Err(Error::NoDefinition(name.to_owned())),
            other => Err(refused("read", format!("the definition {name}"), other)),
        }
    }

    /// Asks until there is an answer that is not about the moment, a few times at most. How often the API server cannot
    /// be reached matters only to who has no patience; who has some asks it as often as about an object where it has no
    /// time.
    async fn insist<T, F: Future<Output = Answer<T>>>(
        &self,
        patience: Patience,
        ask: impl Fn() -> F,
    ) -> Answer<T> {
        let is_patient = patience == Patience::Unbounded;
        let (mut tried, mut throttled) = (1, 1);
        loop {
            let answer = ask().await;
            if let Answer::Unreached(why) = &answer {
                self.watch.see(Event::Unreached(why));
            }
            let (count, most) = match &answer {
                Answer::Unreached(_) if is_patient => {
                    if !self.waited(PAUSE_UNREACHED).await {
                        return answer;
                    }
                    continue;
                }
                Answer::Refused(status, _) if is_patient && matches!(status.code, 429 | 502 | 503) => {
                    (&mut throttled, TRIES_THROTTLED)
                }
                Answer::Refused(status, _) if status.code != 429 && status.code < 500 => return answer,
                Answer::Refused(..) | Answer::Nothing(_) | Answer::Unreached(_) => (&mut tried, TRIES),
                Answer::Done(_) => return answer,
            };
            let longer = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(*count - 1)).min(LONGEST_PAUSE);
            let pause = if let Answer::Refused(_, Some(wait)) = &answer { *wait } else { longer };
            if *count == most || !self.waited(pause).await {
                return answer;
            }
            *count += 1;
        }
    }

    /// Waits so long; false where it is to end.
    async fn waited(&self, time: Duration) -> bool {
        let (stopped, slept) = (pin!(self.stop.cancelled()), pin!(tokio::time::sleep(time)));
        matches!(select(stopped, slept).await, Either::Right(_))
    }
}

/// Says of a definition that all objects are stored in its storage version, where nothing else can be and it is not said
/// yet: of one that was made a moment ago.
///
/// # Errors
/// The API server does not do what it is asked for.
pub async fn say_settled(requests: &Requests, name: &str) -> Result<(), Error> {
    let (goal, options, stop) = (Goal::default(), Options::default(), CancellationToken::new());
    Migration { requests, goal, options, stop, watch: &Silent }.say_settled(name).await
}

/// The error for an answer that is none that was hoped for.
fn refused<T>(verb: &'static str, what: String, answer: Answer<T>) -> Error {
    let why = match answer {
        Answer::Done(_) => "an answer that was not expected".to_owned(),
        Answer::Refused(status, _) => reason(&status),
        Answer::Nothing(why) | Answer::Unreached(why) => why,
    };
    Error::Refused { verb, what, why }
}

#[cfg(test)]
mod tests;
