//! What members say of their own data that do not start over them.
//!
//! Guarantees: a log is read only of a container of ours that ended because its data differ from another member's, and
//! once; nothing of it is kept but the hash. Without the right to read logs there is none.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use tracing::debug;

use super::{Reader, kubernetes, phase};
use crate::kinds::etcdcluster::observation::{self as seen, Fact, Ordinal, OwnPrint, Owner, StatefulSet};
use crate::kinds::etcdcluster::state::ReconcileState;
use crate::kinds::etcdcluster::{last_words, names};
use crate::runtime::call::call;

/// Lines of the end of a log, of which etcd writes some twenty after its hash.
const LINES: i64 = 200;

/// The pods, of which `set` should be the StatefulSet, with the hash with which etcd ended in them.
pub async fn read(
    reader: &Reader,
    (pods, set): (&Fact<BTreeMap<Ordinal, Pod>>, &Fact<StatefulSet>),
    state: &mut ReconcileState,
) -> Fact<BTreeMap<Ordinal, seen::Pod>> {
    let Some(pods) = pods.known() else { return pods.as_ref().map(|_| BTreeMap::new()) };
    let (mut told, mut known) = (kubernetes::pods(pods, set), BTreeMap::new());
    for (ordinal, pod) in told.iter_mut().filter(|(_, pod)| pod.owner == Owner::Ours) {
        let Some(ended) = pods.get(ordinal).and_then(phase::different) else { continue };
        let before = state.own_prints.get(&ended.container).copied();
        let print = match before {
            Some(print) => Some(print),
            None => of_log(reader, *ordinal, ended.is_previous).await,
        };
        pod.own_print = print;
        known.extend(print.map(|print| (ended.container, print)));
    }
    state.own_prints = known;
    Fact::Known(told)
}

async fn of_log(reader: &Reader, ordinal: Ordinal, previous: bool) -> Option<OwnPrint> {
    let name = names::member(&reader.name, ordinal);
    let container = Some(names::ETCD.to_owned());
    let params = LogParams { container, previous, tail_lines: Some(LINES), ..LogParams::default() };
    match call(reader.api::<Pod>().logs(&name, &params)).await {
        Ok(log) => last_words::print(&log),
        Err(error) => {
            debug!(pod = name, %error, "the log of a member that does not start could not be read");
            None
        }
    }
}
