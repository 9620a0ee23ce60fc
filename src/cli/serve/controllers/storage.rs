//! The migration of stored objects of our kinds, for as long as this replica leads.

use std::pin::pin;

use futures::future::{Either, select};
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::install::definitions;
use crate::runtime::leader::Stop;
use crate::storage::keep::Keeper;
use crate::storage::numbers::Numbers;
use crate::storage::requests::Requests;

/// Migrates what is stored in older versions, until it is stopped; then what is under way is answered first.
pub(super) async fn keep(client: Client, requests: Requests, numbers: Numbers, stop: &Stop) {
    let definitions = definitions::names().collect();
    let keeper = Keeper { requests, client, definitions, numbers };
    let ends = CancellationToken::new();
    let work = pin!(keeper.run(&ends));
    if let Either::Right(((), work)) = select(work, pin!(stop.stopped())).await {
        ends.cancel();
        work.await;
    }
}
