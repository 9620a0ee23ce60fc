//! Pages of objects, and the patches that these get.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::super::observation::{Definition, ObjectMeta};
use super::super::plan::checkpoint::Checkpoint;
use super::super::plan::object::{Answer, Conclusion, Patch, Tries, conclude};
use super::super::plan::pace::Work;
use super::super::plan::tally::{Fate, Tally};
use super::super::plan::{self};
use super::super::requests::{Item, Page};
use super::{Error, Event, Migration, Patience, Workers, refused};
use crate::runtime::{clock, fail_point};

/// The smallest page that is asked for where larger ones take too long.
const SMALLEST: u32 = 25;

/// An object and its patch, to be tried after a pause.
struct Attempt {
    object: ObjectMeta,
    patch: Patch,
    tries: Tries,
    pause: Duration,
}

impl Migration<'_> {
    /// The page at a place. A token that is too old is replaced by the one that the API server gives for it, with which
    /// the pages go on among the objects of now.
    pub(super) async fn page(
        &self,
        patience: Patience,
        definition: &Definition,
        place: &mut Checkpoint,
        chunk: &mut u32,
    ) -> Result<Page, Error> {
        loop {
            let (size, next) = (*chunk, place.next.clone());
            match self.insist(patience, || self.requests.page(definition, size, &next)).await {
                Answer::Done(page) => return Ok(page),
                Answer::Refused(status, _) if status.code == 410 && !next.is_empty() => {
                    let instead = status.metadata.and_then(|meta| meta.continue_);
                    *place = place.after_expiry(instead);
                }
                // A page that a webhook converts may take longer than a request may.
                Answer::Nothing(_) if size > SMALLEST && !self.stop.is_cancelled() => {
                    *chunk = (size / 4).max(SMALLEST);
                }
                other => return Err(refused("list", definition.name.clone(), other)),
            }
        }
    }

    /// The page at a place, while something else is done; none where that place is the end of the pass, or the migration
    /// is to end.
    pub(super) async fn following(
        &self,
        definition: &Definition,
        place: &mut Checkpoint,
        chunk: &mut u32,
    ) -> Option<Result<Page, Error>> {
        if place.next.is_empty() {
            return None;
        }
        let listed = pin!(self.page(Patience::Unbounded, definition, place, chunk));
        match select(pin!(self.stop.cancelled()), listed).await {
            Either::Left(_) => None,
            Either::Right((listed, _)) => Some(listed),
        }
    }

    /// Makes sure that what converts the objects of a page answers. Without it, an API server writes what its cache has
    /// converted before, and up to Kubernetes 1.36 forgets the managed fields of the version that it cannot convert.
    pub(super) async fn is_convertible(&self, definition: &Definition, page: &Page) -> Result<(), Error> {
        let Some(Item { metadata: first }) = page.items.first() else { return Ok(()) };
        for version in definition.converted_versions() {
            let ask = || self.requests.converted(definition, first, version);
            match self.insist(Patience::Unbounded, ask).await {
                Answer::Done(_) => {}
                // It is gone: the next page has another one.
                Answer::Refused(status, _) if status.code == 404 => {}
                other => {
                    let what = format!("{} of {} to {version}", first.name, definition.name);
                    return Err(refused("convert", what, other));
                }
            }
        }
        Ok(())
    }

    /// Deals with the objects of a page, after which about so many follow; whether with all of them.
    pub(super) async fn objects(
        &self,
        definition: &Definition,
        (objects, remaining): (Vec<ObjectMeta>, u64),
        rewrites: bool,
        tally: &mut Tally,
        workers: &mut Workers,
    ) -> bool {
        let mut queue: VecDeque<_> = objects.into();
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < workers.pace.limit() && !self.stop.is_cancelled() {
                let Some(object) = queue.pop_front() else { break };
                match plan::patch(definition, self.goal.managed_fields, &object, rewrites) {
                    None => tally.add(&object, Fate::AsWanted, false),
                    Some(patch) => {
                        let attempt =
                            Attempt { object, patch, tries: Tries::default(), pause: Duration::ZERO };
                        under_way.push(self.attempt(definition, attempt));
                    }
                }
            }
            let Some((mut attempt, answer, took)) = under_way.next().await else { break };
            if let Answer::Unreached(why) = &answer {
                self.watch.see(Event::Unreached(why));
            }
            match conclude(&attempt.object, answer, &mut attempt.tries) {
                Conclusion::Is(fate) => {
                    workers.pace.answered(Work::of(&fate), took, workers.since.elapsed());
                    tally.add(&attempt.object, fate, attempt.patch.cleans);
                    fail_point::reached("storage: an object is written");
                    let remaining = remaining + (queue.len() + under_way.len()) as u64;
                    self.watch.see(Event::Moves { tally, remaining, pace: workers.pace.limit() });
                }
                // What is not tried again is dealt with by who takes the page up.
                _ if self.stop.is_cancelled() => queue.push_front(attempt.object),
                again @ (Conclusion::Again(pause)
                | Conclusion::Throttled(pause)
                | Conclusion::Unheard(pause)) => {
                    if matches!(again, Conclusion::Throttled(_)) {
                        workers.pace.throttled();
                    }
                    under_way.push(self.attempt(definition, Attempt { pause, ..attempt }));
                }
            }
        }
        queue.is_empty()
    }

    async fn attempt(
        &self,
        definition: &Definition,
        attempt: Attempt,
    ) -> (Attempt, Answer<ObjectMeta>, Duration) {
        if !attempt.pause.is_zero() && !self.waited(attempt.pause).await {
            return (attempt, Answer::Nothing("the migration was asked to end".to_owned()), Duration::ZERO);
        }
        let begun = clock::instant();
        let (object, patch) = (&attempt.object, &attempt.patch);
        let answer = self.requests.patch(definition, object, patch, self.options.is_dry).await;
        (attempt, answer, begun.elapsed())
    }
}
