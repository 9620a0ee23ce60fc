//! Reads the CronJob and Jobs of backups, and their results.
//!
//! Never: looks for a CronJob again in the same process that none is asked for and that was seen not to be there.

use futures::join;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use super::Reader;
use super::{altered, backups};
use crate::kinds::etcdcluster::api::v1::EtcdCluster;
use crate::kinds::etcdcluster::names;
use crate::kinds::etcdcluster::observation::{Backup, Backups, Desired, Fact, Found, Observation};
use crate::kinds::etcdcluster::resources::backup;
use crate::kinds::etcdcluster::spec::Spec;
use crate::kinds::etcdcluster::state::ReconcileState;
use crate::runtime::clock;

/// What was read of backups.
pub struct Read {
    /// What takes them.
    pub cron_job: Fact<CronJob>,
    /// The one that an upgrade waits for.
    pub awaited: Fact<Backup>,
    /// What became of them.
    pub told: Backups,
}

impl Read {
    /// How what takes backups was found, as against how it should be by all that was `seen`.
    pub fn schedule(
        &self,
        image: &str,
        (cluster, spec): (&EtcdCluster, &Spec),
        seen: &Observation,
        state: &mut ReconcileState,
    ) -> Fact<Found> {
        let (status, is_suspect) = (cluster.status.as_ref(), seen.suspects_data());
        let wanted = backup::cron_job(spec, status, is_suspect, image);
        let applied = (&mut state.cron_job, clock::instant());
        altered::backup_schedule(wanted.as_ref(), &self.cron_job, spec.uid(), applied)
    }
}

impl Reader {
    /// What takes backups, and their results.
    pub async fn backups(
        &self,
        (cluster, spec): (&EtcdCluster, &Spec),
        desired: &Desired,
        state: &mut ReconcileState,
    ) -> Read {
        let is_asked = spec.backup_destination().is_some();
        if !is_asked && state.has_no_backups {
            return Read { cron_job: Fact::Absent, awaited: Fact::Absent, told: Backups::default() };
        }
        let selector = backup::selector_text(spec);
        let name = names::backup(&self.name);
        let (found, mut jobs, awaited, claim) = join!(
            self.get::<CronJob>(&name),
            self.labelled::<Job>(&selector),
            self.awaited(cluster, desired),
            self.destination(spec)
        );
        state.has_no_backups = !is_asked && found.is_absent();
        let since = found.known().and_then(|found| backups::written(&found.metadata));
        let destination = backups::unavailable(&claim);
        let mut told = Backups { destination, since, ..Backups::default() };
        if let Some(asked) = spec.backup_destination() {
            told.is_elsewhere = backups::is_elsewhere(&found, asked, &self.uid);
            jobs = jobs.map(|jobs| jobs.into_iter().filter(|job| backups::goes_to(job, asked)).collect());
        }
        let cron_job = found.known().and_then(|found| found.metadata.uid.as_deref());
        let owners: Vec<_> = cron_job.into_iter().chain([self.uid.as_str()]).collect();
        let said = cluster.status.as_ref().and_then(|status| status.backup.as_ref());
        let said = said.filter(|_| !told.is_elsewhere);
        if let Fact::Known(jobs) = &jobs
            && jobs.iter().any(|job| backups::is_news(job, said))
            && let Fact::Known(pods) = self.labelled::<Pod>(&selector).await
        {
            (told.success, told.failure) = backups::told(jobs, &pods, &owners);
        }
        Read { cron_job: found, awaited: backups::awaited(&awaited, &self.uid), told }
    }

    /// The claim that backups go to.
    async fn destination(&self, spec: &Spec) -> Fact<PersistentVolumeClaim> {
        match spec.backup_destination() {
            Some(destination) => self.get(&destination.claim).await,
            None => Fact::Unknown,
        }
    }

    /// The Job that takes the backup before the upgrade that is asked for, by its name, whosever it is; none where no
    /// upgrade may wait for one.
    async fn awaited(&self, cluster: &EtcdCluster, desired: &Desired) -> Fact<Job> {
        let wanted = desired.template.version;
        let runs = cluster.status.as_ref().and_then(|status| status.version.as_deref());
        let may_wait = desired.backs_up_before_upgrade && runs != Some(wanted.to_string().as_str());
        if !may_wait {
            return Fact::Absent;
        }
        self.get(&names::backup_before(&self.name, wanted)).await
    }
}
