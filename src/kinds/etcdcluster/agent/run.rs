//! Etcd's own container, at each of its starts: the last check before etcd starts.

use std::path::Path;

use super::decision::{self, Decision, Moment, PodIdentity};
use super::entry::Purpose;
use super::marker::{Marker, Stage};
pub use super::work::{FLAGS, FLAGS_AGAIN};
use super::{Error, Refusal, volume, work};

/// How etcd is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// By the flags that the operator wrote.
    ByEntry,
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
    let permit = work::permit(work)?.ok_or(Error::NotLet)?;
    let own = PodIdentity {
        pod: &permit.pod,
        template: &permit.entry.template,
        cluster: &permit.cluster,
        is_in_memory: permit.is_in_memory,
    };
    let found = volume::read(data)?;
    match decision::decide(Moment::Each, &own, Some(&permit.entry), &found) {
        Decision::Wait(_) => Err(Error::NotLet),
        Decision::Refuse(cause, words) => Ok(Err(Refusal { cause, words })),
        Decision::Start(marker) => {
            let forces = permit.entry.purpose == Purpose::Force;
            let start = if forces && marker.forced.as_ref() == Some(&permit.pod) {
                Start::Again
            } else {
                Start::ByEntry
            };
            let last = forces.then(|| permit.pod.clone()).or(marker.forced);
            let marker = Marker { stage: marker.stage.max(Stage::Started), forced: last, ..marker };
            if found.marker.as_ref() != Some(&marker) {
                volume::make_folder(data)?; // first: a marker that says so is not to come without it
                volume::write_marker(data, &marker)?;
            }
            Ok(Ok(start))
        }
    }
}
