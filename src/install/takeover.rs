//! By whose settings this replica writes, where it was started with other settings than what is installed.
//!
//! ```text
//! the noted settings are its own    by those
//! they are others, and it leads     by its own, unless the noted address takes connections and its own does not
//! they are others, and it follows   by the noted ones, unless its own address takes connections and the noted one does not
//! ```
//!
//! Guarantees: of two replicas one at most writes other settings than the noted ones, unless an address has ceased to
//! answer, and then the other keeps to what that one has written; after a rolling change, whose last leader is a new
//! replica, the new settings are in force; the API server is never pointed from an address that answers at one that does
//! not.
//! Assumes: a replica of the installation leads, or will. Settings are noted with each object, and those of the validating
//! configuration, which is written last, stand for all.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{Api, Client};
use tokio::net::TcpStream;

use super::settings::Settings;
use super::{Address, NAME, Plan, apply};

/// How long a connection may take.
const LIMIT: Duration = Duration::from_secs(3);

/// By whose settings objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// This replica's.
    Own,
    /// Those that are noted on the object, and this replica's where none are.
    Noted,
}

/// By whose settings this replica writes now, and the noted ones where they are others.
///
/// # Errors
/// When the API server does not say what is noted.
pub async fn whose(
    client: &Client,
    plan: &Plan,
    leads: bool,
) -> Result<(By, Option<Settings>), apply::Error> {
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let annotations = apply::annotations(&api, NAME).await?;
    let noted = Settings::noted(&annotations).filter(|noted| *noted != Settings::of(plan));
    let (ours, theirs) = match &noted {
        Some(noted) if noted.address != plan.address => {
            futures::join!(answers(&plan.address), answers(&noted.address))
        }
        _ => (true, true),
    };
    Ok((decide(leads, ours, theirs), noted))
}

/// `ours` and `theirs`: whether the address takes connections.
const fn decide(leads: bool, ours: bool, theirs: bool) -> By {
    let takes_over = if leads { ours || !theirs } else { ours && !theirs };
    if takes_over { By::Own } else { By::Noted }
}

async fn answers(address: &Address) -> bool {
    let (host, port) = match address {
        Address::Service { port, .. } | Address::Url { port, .. } => (address.server_name(), *port),
    };
    matches!(tokio::time::timeout(LIMIT, TcpStream::connect((host.as_str(), port))).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_takes_over_and_others_only_from_an_address_that_does_not_answer() {
        for (leads, ours, theirs, expected) in [
            (true, true, true, By::Own),
            (true, true, false, By::Own),
            (true, false, false, By::Own),
            (true, false, true, By::Noted),
            (false, true, true, By::Noted),
            (false, true, false, By::Own),
            (false, false, false, By::Noted),
            (false, false, true, By::Noted),
        ] {
            assert_eq!(decide(leads, ours, theirs), expected, "{leads} {ours} {theirs}");
        }
    }

    /// A replica that leads and one that follows, with any addresses: once one has written, the other lets it be.
    #[test]
    fn no_two_replicas_undo_each_other() {
        for (leader, follower) in [(true, true), (true, false), (false, true), (false, false)] {
            let leaders = decide(true, leader, follower) == By::Own;
            let followers = decide(false, follower, leader) == By::Own;
            assert!(!(leaders && followers), "{leader} {follower}");
        }
    }

    #[tokio::test]
    async fn an_address_answers_as_long_as_something_listens_there() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = Address::Url { host: "127.0.0.1".to_owned(), port };
        assert!(answers(&address).await);
        drop(listener);
        assert!(!answers(&address).await);
    }
}
