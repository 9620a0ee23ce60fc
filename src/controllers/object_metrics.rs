//! Metrics of single objects, for the metrics page.
//!
//! Guarantees: an object that is gone is gone from the page, also where a reconciliation of it ends later; so are all
//! objects when another replica reconciles them.
//! Assumes: an object is admitted before any reconciliation of it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::state_store::StateStore;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that goes up and down.
    Gauge,
    /// A counter that only goes up while one replica reconciles the object.
    Counter,
}

/// A metric that has series of each object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without what all metrics of the kind begin with, and a counter's without `_total`.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// What it is.
    pub kind: MetricKind,
}

/// A metric that goes up and down.
#[must_use]
pub const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, kind: MetricKind::Gauge }
}

/// A metric that only goes up while one replica reconciles the object.
#[must_use]
pub const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, kind: MetricKind::Counter }
}

/// One number of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Labels beside namespace and name.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub value: i64,
}

impl Sample {
    /// A number that needs no further label.
    #[must_use]
    pub const fn plain(value: i64) -> Self {
        Self { labels: Vec::new(), value }
    }

    /// A number with further labels.
    #[must_use]
    pub fn labelled(labels: &[(&'static str, &str)], value: i64) -> Self {
        Self { labels: labels.iter().map(|(label, text)| (*label, (*text).to_owned())).collect(), value }
    }

    /// One thing that needs attention.
    #[must_use]
    pub fn problem(reason: &str) -> Self {
        Self::labelled(&[("problem", reason)], 1)
    }
}

/// The samples of an object, each with the name of its metric.
pub type Rows = Vec<(&'static str, Sample)>;

/// The samples of the metric of that name.
#[must_use]
pub fn samples(rows: &[(&'static str, Sample)], metric: &str) -> Vec<Sample> {
    rows.iter().filter(|(name, _)| *name == metric).map(|(_, sample)| sample.clone()).collect()
}

/// What is shown of an object.
pub trait Line: Clone + fmt::Debug + Send + 'static {
    /// All metrics, in the order of the page.
    const METRICS: &'static [Metric];

    /// The samples of the metric of that name.
    fn samples(&self, metric: &str) -> Vec<Sample>;
}

/// What one operator shows.
#[derive(Debug)]
pub struct ObjectMetrics<L: Line>(StateStore<Option<Box<Shown<L>>>>);

#[derive(Clone, Debug)]
struct Shown<L> {
    namespace: String,
    name: String,
    line: L,
}

impl<L: Line> Default for ObjectMetrics<L> {
    fn default() -> Self {
        Self(StateStore::default())
    }
}

impl<L: Line> ObjectMetrics<L> {
    /// The object of that metadata is there: what is shown of it stays until it is forgotten.
    pub fn admit(&self, metadata: &ObjectMeta) {
        self.0.update(uid(metadata), |_| ());
    }

    /// Shows that of an object from now on, unless it is gone.
    pub fn show(&self, metadata: &ObjectMeta, line: L) {
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let name = metadata.name.clone().unwrap_or_default();
        let shows = Box::new(Shown { namespace, name, line });
        self.0.update_known(uid(metadata), |shown| *shown = Some(shows));
    }

    /// Shows nothing of an object until something is shown again.
    pub fn hide(&self, metadata: &ObjectMeta) {
        self.0.update_known(uid(metadata), |shown| *shown = None);
    }

    /// The object of that uid is gone.
    pub fn forget(&self, uid: &str) {
        self.0.forget(uid);
    }
}

fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

/// The boards of all operators of a kind that run.
#[derive(Debug)]
pub struct ObjectMetricsRegistries<L: Line>(Arc<Mutex<Vec<Weak<ObjectMetrics<L>>>>>);

impl<L: Line> Default for ObjectMetricsRegistries<L> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<L: Line> Clone for ObjectMetricsRegistries<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L: Line> ObjectMetricsRegistries<L> {
    /// A new one. When it is dropped, so is what it showed.
    #[must_use]
    pub fn add(&self) -> Arc<ObjectMetrics<L>> {
        let board = Arc::new(ObjectMetrics::default());
        let mut boards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        boards.retain(|board| board.strong_count() > 0);
        boards.push(Arc::downgrade(&board));
        board
    }

    fn each(&self, mut look: impl FnMut(&Shown<L>) -> fmt::Result) -> fmt::Result {
        let boards: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for board in boards.iter().filter_map(Weak::upgrade) {
            board.0.each(|shown| shown.as_deref().map_or(Ok(()), &mut look))?;
        }
        Ok(())
    }
}

impl<L: Line> Collector for ObjectMetricsRegistries<L> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for metric in L::METRICS {
            let of_type = match metric.kind {
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Counter => MetricType::Counter,
            };
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, of_type)?;
            self.each(|Shown { namespace, name, line }| {
                for Sample { labels, value } in line.samples(metric.name) {
                    let mut all = vec![("namespace", namespace.clone()), ("name", name.clone())];
                    all.extend(labels);
                    let labels = all.as_slice();
                    let sample = family.encode_family(&labels)?;
                    match metric.kind {
                        MetricKind::Gauge => ConstGauge::new(value).encode(sample)?,
                        MetricKind::Counter => {
                            ConstCounter::new(u64::try_from(value).unwrap_or(0)).encode(sample)?;
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::metrics::Page;

    #[derive(Clone, Debug)]
    struct Legs(i64);

    impl Line for Legs {
        const METRICS: &'static [Metric] = &[gauge("legs", "Legs"), counter("steps", "Steps")];

        fn samples(&self, metric: &str) -> Vec<Sample> {
            match metric {
                "legs" => vec![Sample::plain(self.0)],
                _ => vec![Sample::labelled(&[("leg", "left")], 2)],
            }
        }
    }

    fn page(boards: &ObjectMetricsRegistries<Legs>) -> Vec<String> {
        let page = Page::new(|registry| registry.register_collector(Box::new(boards.clone())));
        let text = page.text().unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn metadata(uid: &str) -> ObjectMeta {
        ObjectMeta {
            uid: Some(uid.to_owned()),
            namespace: Some("shop".to_owned()),
            name: Some(uid.to_owned()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn what_is_shown_of_an_object_has_its_name_until_it_is_gone() {
        let boards = ObjectMetricsRegistries::default();
        let board = boards.add();
        board.admit(&metadata("a"));
        assert_eq!(page(&boards), [""; 0]);
        board.show(&metadata("a"), Legs(4));
        assert_eq!(
            page(&boards),
            [
                r#"legs{namespace="shop",name="a"} 4"#,
                r#"steps_total{namespace="shop",name="a",leg="left"} 2"#
            ]
        );
        board.hide(&metadata("a"));
        assert_eq!(page(&boards), [""; 0]);
        board.show(&metadata("a"), Legs(2));
        board.forget("a");
        assert_eq!(page(&boards), [""; 0]);
    }

    #[test]
    fn a_pass_that_ends_after_its_object_has_gone_shows_nothing() {
        let boards = ObjectMetricsRegistries::default();
        let board = boards.add();
        for uid in ["a", "b"] {
            board.admit(&metadata(uid));
        }
        for uid in ["a", "b"] {
            board.forget(uid);
        }
        for uid in ["a", "b"] {
            board.show(&metadata(uid), Legs(4));
        }
        assert_eq!(page(&boards), [""; 0]);
    }

    #[test]
    fn a_replica_that_works_no_more_shows_nothing() {
        let boards = ObjectMetricsRegistries::default();
        let board = boards.add();
        board.admit(&metadata("a"));
        board.show(&metadata("a"), Legs(4));
        drop(board);
        assert_eq!(page(&boards), [""; 0]);
    }
}
