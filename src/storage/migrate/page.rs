//! Pages of objects, and the patches that these get.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};

use super::super::observation::{Definition, ObjectMeta};
use super::super::plan::checkpoint::Checkpoint;
use super::super::plan::object::{Answer, Judgement, Patch, judge};
use super::super::plan::pace::Pace;
use super::super::plan::tally::{Fate, Tally};
use super::super::plan::{self};
use super::super::requests::{Item, Page};
use super::{Error, Event, Migration, refused};
use crate::runtime::{clock, fail_point};

/// The smallest page that is asked for where larger ones take too long.
const SMALLEST: u32 = 25;

/// An object and its patch, tried so often, to be tried after a pause.
struct Attempt {
    object: ObjectMeta,
    patch: Patch,
    tried: u32,
    pause: Duration,
}

impl Migration<'_> {
    /// The page at a place. A token that is too old is replaced by the one that the API server gives for it, with which
    /// the pages go on among the objects of now.
    pub(super) async fn page(
        &self,
        definition: &Definition,
        place: &mut Checkpoint,
        chunk: &mut u32,
    ) -> Result<Page, Error> {
        loop {
            let (size, next) = (*chunk, place.next.clone());
            match self.insist(|| self.requests.page(definition, size, &next)).await {
                Answer::Done(page) => return Ok(page),
                Answer::Refused(status, _) if status.code == 410 && !next.is_empty() => {
                    let fresh =
                        status.metadata.and_then(|meta| meta.continue_).filter(|fresh| *fresh != next);
                    match fresh {
                        Some(fresh) => place.next = fresh,
                        None => *place = place.again(),
                    }
                }
                // A page that a webhook converts may take longer than a request may.
                Answer::Nothing(_) if size > SMALLEST && !self.stop.is_cancelled() => {
                    *chunk = (size / 4).max(SMALLEST);
                }
                other => return Err(refused("list", definition.name.clone(), other)),
            }
        }
    }

    /// The page at a place, whose objects what converts them answers for. Without it, an API server writes what its cache
    /// has converted before, and up to Kubernetes 1.36 forgets the managed fields of the version that it cannot convert.
    pub(super) async fn convertible(
        &self,
        definition: &Definition,
        place: &mut Checkpoint,
        chunk: &mut u32,
    ) -> Result<Page, Error> {
        let page = self.page(definition, place, chunk).await?;
        let Some(Item { metadata: first }) = page.items.first() else { return Ok(page) };
        for version in definition.converted_versions() {
            match self.insist(|| self.requests.converted(definition, first, version)).await {
                Answer::Done(_) => {}
                // It is gone: the next page has another one.
                Answer::Refused(status, _) if status.code == 404 => {}
                other => {
                    let what = format!("{} of {} to {version}", first.name, definition.name);
                    return Err(refused("convert", what, other));
                }
            }
        }
        Ok(page)
    }

    /// Deals with the objects of a page, after which about so many follow; whether with all of them.
    pub(super) async fn objects(
        &self,
        definition: &Definition,
        (objects, remaining): (Vec<ObjectMeta>, u64),
        rewrites: bool,
        tally: &mut Tally,
        pace: &mut Pace,
    ) -> bool {
        let mut queue: VecDeque<_> = objects.into();
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < pace.limit() && !self.stop.is_cancelled() {
                let Some(object) = queue.pop_front() else { break };
                match plan::patch(definition, self.goal.managed_fields, &object, rewrites) {
                    None => tally.add(&object, Fate::AsWanted, false),
                    Some(patch) => {
                        let attempt = Attempt { object, patch, tried: 0, pause: Duration::ZERO };
                        under_way.push(self.attempt(definition, attempt));
                    }
                }
            }
            let Some((attempt, answer, took)) = under_way.next().await else { break };
            match judge(&attempt.object, answer, attempt.tried) {
                Judgement::Is(fate) => {
                    pace.answered(took);
                    tally.add(&attempt.object, fate, attempt.patch.cleans);
                    fail_point::reached("storage: an object is written");
                    let remaining = remaining + (queue.len() + under_way.len()) as u64;
                    self.watch.see(Event::Moves { tally, remaining, pace: pace.limit() });
                }
                // What is not tried again is dealt with by who takes the page up.
                _ if self.stop.is_cancelled() => queue.push_front(attempt.object),
                again @ (Judgement::Again(pause) | Judgement::Throttled(pause)) => {
                    if matches!(again, Judgement::Throttled(_)) {
                        pace.throttled();
                    }
                    let attempt = Attempt { tried: attempt.tried + 1, pause, ..attempt };
                    under_way.push(self.attempt(definition, attempt));
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
