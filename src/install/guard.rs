//! Keeps the installation as it was written.
//!
//! A `helm upgrade` or a `kubectl apply` of plain manifests takes the `caBundle` away, and from then on every write
//! to our kinds fails. Therefore our definitions and configurations are watched and put right.
//!
//! Guarantees: no write when nothing differs; before each correction the certificates are read afresh, so that a
//! replica which has not seen the newest bundle yet does not take it back; after it the bundles are read back, and only
//! what is in force then counts as trusted, before the certificates rely on it; settings of other replicas stay as
//! [`super::takeover`] says; a client that keeps undoing a correction is met with growing pauses of up to [`LONGEST`].

use std::convert::Infallible;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures::future::{self, FutureExt as _};
use futures::stream::{BoxStream, StreamExt as _, select_all};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;

use super::apply::{Policy, describe};
use super::settings::Settings;
use super::write::Writing;
use super::{Error, NAME, Plan, definitions, look};
use crate::certs::Handle;
use crate::runtime::clock;

/// The longest pause between two corrections.
pub const LONGEST: Duration = Duration::from_mins(1);
/// The first pause, after a correction that did not last or one that failed.
const FIRST: Duration = Duration::from_secs(1);
/// After so much calm the next correction is made at once again.
const CALM: Duration = Duration::from_mins(5);
/// Changes come in groups: what follows within this time is met by one correction.
const GROUP: Duration = Duration::from_millis(250);
/// Between two looks without a change: an authority that is not wanted any more leaves the bundles some time.
const ROUNDS: Duration = Duration::from_hours(1);
/// The same as long as other settings are installed than this replica's, whose address may cease to answer.
const OTHERS: Duration = Duration::from_secs(10);

/// What is guarded, and how.
pub struct Guarded {
    /// What writes.
    pub client: Client,
    /// What this replica would install; its bundle is kept up with what the certificates say.
    pub plan: Plan,
    /// What is served, and has to be trusted.
    pub certificates: Handle,
    /// Whether this replica leads.
    pub leads: watch::Receiver<bool>,
    /// 1 while the last correction failed.
    pub failing: Gauge,
}

/// How fast corrections follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pace {
    pause: Duration,
}

impl Pace {
    /// A correction was made, or failed: the next one waits longer.
    fn slow_down(&mut self) {
        self.pause = (self.pause * 2).clamp(FIRST, LONGEST);
    }

    /// There was nothing to correct for so long.
    fn recover(&mut self, calm: Duration) {
        if calm >= CALM {
            self.pause = Duration::ZERO;
        }
    }
}

/// Watches and corrects without end; dropping the future ends it.
pub async fn run_drift_guard(mut guarded: Guarded) -> Infallible {
    let mut changes = pin!(changes(&guarded.client));
    let mut pace = Pace::default();
    let mut corrected = clock::instant();
    let mut is_due = false;
    let mut theirs = None;
    loop {
        let Guarded { plan, certificates, leads, .. } = &mut guarded;
        if !is_due {
            tokio::select! {
                Some(()) = changes.next() => {}
                () = certificates.bundle_other_than(plan.bundle.as_ref()) => {}
                Ok(()) = leads.changed() => {}
                () = tokio::time::sleep(if theirs.is_some() { OTHERS } else { ROUNDS }) => {}
            }
        }
        pace.recover(corrected.elapsed());
        // Our own changes do not wait, and are no conflict with another client.
        let is_news = certificates.has_bundle_other_than(plan.bundle.as_ref());
        tokio::time::sleep(if is_news { GROUP } else { GROUP.max(pace.pause) }).await;
        while let Some(Some(())) = changes.next().now_or_never() {}
        plan.bundle = certificates.fresh().await.facts.bundle.or_else(|| plan.bundle.take());
        let outcome = guarded.restore_and_look(&mut theirs).await;
        tracing::debug!("looked at the installation");
        if let Err(error) = &outcome {
            tracing::warn!(reason = %error, "failed to correct the installation");
        }
        is_due = outcome.is_err();
        guarded.failing.set(i64::from(is_due));
        if outcome.unwrap_or(true) && (is_due || !is_news) {
            pace.slow_down();
            corrected = clock::instant();
        }
    }
}

impl Guarded {
    /// Corrects, and reports what is in force to the certificates, also where this replica could not write: another one
    /// may have. Whether anything differed.
    async fn restore_and_look(&mut self, theirs: &mut Option<Settings>) -> Result<bool, Error> {
        let outcome = self.restore(theirs).await;
        match look(&self.client, &self.certificates).await {
            Ok(()) => outcome,
            Err(error) => outcome.and(Err(error)),
        }
    }

    /// Writes everything again as far as it differs; whether anything did. `theirs`: the settings of other replicas that
    /// are installed.
    async fn restore(&mut self, theirs: &mut Option<Settings>) -> Result<bool, Error> {
        let leads = *self.leads.borrow_and_update();
        let Self { client, plan, certificates, .. } = self;
        let writing = Writing::begin(client, plan, certificates, Policy::UnlessOtherRelease, leads).await?;
        if let Some(installed) = writing.theirs.as_ref().filter(|_| !leads && writing.theirs != *theirs) {
            tracing::warn!(
                ?installed,
                ours = ?Settings::of(plan),
                "a replica with other settings has installed: its settings stay until this one leads, or their address \
                 does not answer"
            );
        }
        theirs.clone_from(&writing.theirs);
        let definitions = writing.definitions().await?;
        let configurations = writing.configurations().await?;
        Ok(definitions || configurations)
    }
}

/// One item for each change of one of our objects, by any client.
fn changes(client: &Client) -> BoxStream<'static, ()> {
    let streams =
        definitions::names().map(|name| changes_of::<CustomResourceDefinition>(client, &name)).chain([
            changes_of::<MutatingWebhookConfiguration>(client, NAME),
            changes_of::<ValidatingWebhookConfiguration>(client, NAME),
        ]);
    select_all(streams).boxed()
}

fn changes_of<K>(client: &Client, name: &str) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    let api = Api::<PartialObjectMeta<K>>::all(client.clone());
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let (object, mut is_failing) = (describe::<K>(name), false);
    let seen = move |event: watcher::Result<watcher::Event<_>>| {
        let failed = event.as_ref().err();
        // It begins again by itself, at most half a minute later, and may fail for good.
        if let Some(error) = failed.filter(|_| !is_failing) {
            tracing::warn!(object, %error, "failed to watch what is installed");
        }
        is_failing = failed.is_some();
        future::ready(event.ok().map(|_| ()))
    };
    watcher(api, config).default_backoff().filter_map(seen).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_correction_is_made_at_once_and_further_ones_wait_longer_and_longer() {
        let mut pace = Pace::default();
        let mut pauses = vec![pace.pause.as_secs()];
        for _ in 0..8 {
            pace.slow_down();
            pauses.push(pace.pause.as_secs());
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn only_a_long_calm_makes_the_guard_quick_again() {
        let mut pace = Pace { pause: LONGEST };
        pace.recover(CALM / 2);
        assert_eq!(pace.pause, LONGEST);
        pace.recover(CALM);
        assert_eq!(pace.pause, Duration::ZERO);
    }
}
