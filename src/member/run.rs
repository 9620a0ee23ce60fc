//! Etcd's own container, at each of its starts: the last look before etcd takes over.

use std::path::Path;

use super::decision::{self, Decision, Moment, Own};
use super::mark::{Mark, Stage};
use super::{Error, Refusal, volume, work};

/// Looks at the volume once more and prepares it for etcd, which is to be started next.
///
/// # Errors
/// Something could not be read or written, or no guard has stood here.
pub fn prepare(work: &Path, data: &Path) -> Result<Result<(), Refusal>, Error> {
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
            let mark = Mark { stage: mark.stage.max(Stage::Started), ..mark };
            if found.mark.as_ref() != Some(&mark) {
                volume::make_folder(data)?; // first: a mark that says so is not to come without it
                volume::mark(data, &mark)?;
            }
            Ok(Ok(()))
        }
    }
}
