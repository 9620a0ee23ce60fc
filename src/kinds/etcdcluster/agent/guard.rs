//! The init container: it waits until its member is to run in this pod, and says whose the volume is. Where the member
//! is to make a cluster of its own, it copies the data first.

use std::path::PathBuf;
use std::time::Duration;

use super::config::MountedConfig;
use super::decision::{self, Decision, Moment, PodIdentity};
use super::entry::Purpose;
use super::marker::Marker;
use super::work::{self, StartPermit};
use super::{Error, Refusal, config, copy, volume};

/// Between two looks: a mounted ConfigMap does not notify its readers of a change.
const POLL: Duration = Duration::from_millis(200);

/// Who is guarded, and where its things are.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Name of the member: of its pod.
    pub member: String,
    /// Uid of the pod.
    pub pod: String,
    /// Uid of the EtcdCluster.
    pub cluster: String,
    /// The template that the pod was made from, as its annotation has it.
    pub template: String,
    /// Whether data lie in memory.
    pub is_in_memory: bool,
    /// Where the ConfigMap is mounted.
    pub config: PathBuf,
    /// Where the volume is mounted.
    pub data: PathBuf,
    /// The folder that the containers of the pod share.
    pub work: PathBuf,
}

impl Guard {
    /// Waits until etcd may start, and leaves what it starts by. To stop is to drop this.
    ///
    /// # Errors
    /// Something could not be read or written. An entry that cannot be parsed is waited for: the operator will write
    /// another one.
    pub async fn stand(&self) -> Result<Result<(), Refusal>, Error> {
        work::copy_program(&self.work)?;
        let mut said = String::new();
        loop {
            let why = match self.look()? {
                Seen::Start(marker, mounted) => return self.let_start(&marker, &mounted).await,
                Seen::Refused(refusal) => return Ok(Err(refusal)),
                Seen::Nothing(why) => why,
            };
            if said != why {
                tracing::info!(member = self.member, reason = why, "waiting");
                said = why;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn look(&self) -> Result<Seen, Error> {
        let mounted = match config::read(&self.config, &self.member) {
            Err(error @ Error::Content { .. }) => return Ok(Seen::Nothing(error.to_string())),
            mounted => mounted?,
        };
        let found = volume::read(&self.data)?;
        let entry = mounted.as_ref().map(|mounted| &mounted.entry);
        match (decision::decide(Moment::First, &self.own(), entry, &found), mounted) {
            (Decision::Wait(why), _) => Ok(Seen::Nothing(why.as_str().to_owned())),
            (Decision::Refuse(cause, words), _) => Ok(Seen::Refused(Refusal { cause, words })),
            (Decision::Start(marker), Some(mounted)) => Ok(Seen::Start(marker, Box::new(mounted))),
            (Decision::Start(_), None) => Err(Error::NotLet), // no member starts without its entry
        }
    }

    async fn let_start(
        &self,
        marker: &Marker,
        mounted: &MountedConfig,
    ) -> Result<Result<(), Refusal>, Error> {
        if mounted.entry.purpose == Purpose::Force
            && let Err(refusal) = copy::make(&self.data, mounted.entry.raft_index.unwrap_or(0)).await?
        {
            return Ok(Err(refusal));
        }
        if volume::read(&self.data)?.marker.as_ref() != Some(marker) {
            volume::write_marker(&self.data, marker)?;
        }
        let permit = StartPermit {
            entry: mounted.entry.clone(),
            pod: self.pod.clone(),
            cluster: self.cluster.clone(),
            is_in_memory: self.is_in_memory,
        };
        work::leave(&self.work, &permit, mounted)?;
        tracing::info!(member = self.member, purpose = ?mounted.entry.purpose, "etcd may start");
        Ok(Ok(()))
    }

    fn own(&self) -> PodIdentity<'_> {
        PodIdentity {
            pod: &self.pod,
            template: &self.template,
            cluster: &self.cluster,
            is_in_memory: self.is_in_memory,
        }
    }
}

/// What one look came to.
enum Seen {
    Start(Marker, Box<MountedConfig>),
    Refused(Refusal),
    Nothing(String),
}
