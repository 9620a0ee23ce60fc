//! What TDSets are doing, for the metrics page.
//!
//! Guarantees: what is shown is what the status says; an object that is gone is gone from the page, and so are all when
//! another replica works them.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::api::tdset::v1::TDSetStatus;
use crate::controllers::memory::Memory;

/// What one operator shows.
#[derive(Debug, Default)]
pub struct Board(Memory<Line>);

#[derive(Clone, Debug, Default)]
struct Line {
    namespace: String,
    name: String,
    window: Option<String>,
    scheduled: Option<i32>,
    next: Option<i64>,
}

impl Board {
    /// Shows what the status of an object says.
    pub fn show(&self, metadata: &ObjectMeta, status: &TDSetStatus) {
        let line = Line {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            window: status.active_window.clone(),
            scheduled: status.scheduled_replicas,
            next: status.next_transition.as_ref().map(|next| next.time.0.as_second()),
        };
        self.0.update(metadata.uid.as_deref().unwrap_or_default(), |shown| *shown = line);
    }

    /// The object of that uid is gone.
    pub fn forget(&self, uid: &str) {
        self.0.forget(uid);
    }

    /// Only the objects of these uids are left.
    pub fn forget_all_but(&self, uids: &HashSet<String>) {
        self.0.forget_all_but(uids);
    }
}

/// The boards of all operators that run.
#[derive(Clone, Default)]
pub struct Boards(Arc<Mutex<Vec<Weak<Board>>>>);

impl Boards {
    /// A new one.
    #[must_use]
    pub fn add(&self) -> Arc<Board> {
        let board = Arc::new(Board::default());
        let mut boards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        boards.retain(|board| board.strong_count() > 0);
        boards.push(Arc::downgrade(&board));
        board
    }

    fn each(&self, mut look: impl FnMut(&Line) -> fmt::Result) -> fmt::Result {
        let boards: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for board in boards.iter().filter_map(Weak::upgrade) {
            board.0.each(&mut look)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Boards {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Boards")
    }
}

impl Collector for Boards {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let names = |line: &Line| [("namespace", line.namespace.clone()), ("name", line.name.clone())];
        let help = "Replicas that the timetable asks for now";
        let mut gauge = encoder.encode_descriptor("scheduled_replicas", help, None, MetricType::Gauge)?;
        self.each(|line| {
            let Some(value) = line.scheduled else { return Ok(()) };
            ConstGauge::new(i64::from(value)).encode(gauge.encode_family(&names(line))?)
        })?;
        let help = "The window or exception that decides now; empty outside all of them";
        let mut gauge = encoder.encode_descriptor("active_window_info", help, None, MetricType::Gauge)?;
        self.each(|line| {
            let Some(window) = &line.window else { return Ok(()) };
            let [namespace, name] = names(line);
            let labels = [namespace, name, ("window", window.clone())];
            ConstGauge::new(1_i64).encode(gauge.encode_family(&labels)?)
        })?;
        let help = "When the timetable asks for something else next, in seconds since 1970";
        let name = "next_transition_timestamp_seconds";
        let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        self.each(|line| {
            let Some(value) = line.next else { return Ok(()) };
            ConstGauge::new(value).encode(gauge.encode_family(&names(line))?)
        })
    }
}
