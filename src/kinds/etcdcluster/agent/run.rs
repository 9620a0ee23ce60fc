//! Etcd's own container, at each of its starts: the last look before etcd takes over.

use std::path::Path;

use super::decision::{self, Decision, Moment, Own};
use super::entry::Purpose;
use super::mark::{Mark, Stage};
pub use super::work::{FLAGS, FLAGS_AGAIN};
use super::{Error, Refusal, volume, work};

/// How etcd is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// By the flags that the operator wrote.
    AsTold,
    /// By the same, but for a cluster of its own: it was let make one in this pod before.
    Again,
}

/// Looks at the volume once more and prepares it for etcd, which is to be started next. In each pod etcd is let make a
/// cluster of its data once, whether or not it then did: members that joined it since would be dropped. One that did
/// not is one without a quorum, and its pod is recreated.
///
/// # Errors
/// Something could not be read or written, or no guard has stood here.
pub fn prepare(work: &Path, data: &Path) -> Result<Result<Start, Refusal>, Error> {
    let pass = work::pass(work)?.ok_or(Error::NotLet)?;
    let own = Own {
        pod: &pass.pod,
        template: &pass.entry.template,
        cluster: &pass.cluster,
        is_in_memory: pass.is_in_memory,
    };
    let found = volume::read(data)?;
    match decision::decide(Moment::Each, &own, Some(&pass.entry), &found) {
        Decision::Wait(_) => Err(Error::NotLet),
        Decision::Refuse(cause, words) => Ok(Err(Refusal { cause, words })),
        Decision::Start(mark) => {
            let forces = pass.entry.purpose == Purpose::Force;
            let start =
                if forces && mark.forced.as_ref() == Some(&pass.pod) { Start::Again } else { Start::AsTold };
            let last = forces.then(|| pass.pod.clone()).or(mark.forced);
            let mark = Mark { stage: mark.stage.max(Stage::Started), forced: last, ..mark };
            if found.mark.as_ref() != Some(&mark) {
                volume::make_folder(data)?; // first: a mark that says so is not to come without it
                volume::mark(data, &mark)?;
            }
            Ok(Ok(start))
        }
    }
}
