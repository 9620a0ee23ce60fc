//! Taking a backup: which member is asked, and what is done with what it sends.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::Error;
use super::decision::{Clock, Retention, are_suspect, longest, next_number, order, superseded};
use super::folder::{Folder, Writer, Written};
use super::manifest::{Manifest, Owner, SNAPSHOT, Success, stem};
use crate::kinds::etcdcluster::etcd::{Client, Limits, SnapshotError, Status, Tls};
use crate::runtime::supervisor::chain;
use crate::runtime::{blocking, clock};

/// How long a folder that was too slow may take to delete what it has taken.
const DISCARD: Duration = Duration::from_secs(10);

/// A backup that is wanted.
#[derive(Debug)]
pub struct Request {
    /// URLs of the members, for clients.
    pub endpoints: Vec<String>,
    /// What members are trusted by, and what they are shown; none: plain HTTP.
    pub tls: Option<Tls>,
    /// Where it goes.
    pub folder: PathBuf,
    /// Whose it is.
    pub owner: Owner,
    /// The etcd cluster that is meant.
    pub cluster_id: u64,
    /// Which older ones stay.
    pub retention: Retention,
    /// Whether something else than the schedule asks for it.
    pub on_demand: bool,
    /// What is known of the clock.
    pub clock: Clock,
}

/// A member that answered.
struct Asked {
    client: Client,
    status: Status,
}

/// Takes a backup, verifies it, and deletes those that nothing asks to keep. To stop is to drop this.
///
/// # Errors
/// There is no new backup. All older ones are as they were.
pub async fn take(request: &Request) -> Result<Success, Error> {
    let members = candidates(request).await?;
    let folder = Folder::open(&request.folder, &request.owner.uid).await?;
    let number = next_number(&folder.backups()?);
    let mut last = None;
    for member in members {
        match of(member, request, number, &folder).await {
            Ok(manifest) => return Ok(retained(&folder, manifest, request)),
            // The next one may do better. What is wrong with the folder or the data is so for all of them.
            Err(error @ (Error::Snapshot(_) | Error::Alarms(_) | Error::Unsound(_))) => {
                tracing::warn!(error = chain(&error), "no backup of this member");
                last = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| Error::NoVoter("none was left to be asked".to_owned())))
}

/// The members that can be asked, the best first.
async fn candidates(request: &Request) -> Result<Vec<Asked>, Error> {
    let clients = request.endpoints.iter();
    let clients = clients.map(|endpoint| Client::new(endpoint, request.tls.as_ref(), Limits::default()));
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    let asked = join_all(clients.iter().map(Client::status)).await;
    let (mut members, mut silent) = (Vec::new(), Vec::new());
    for (client, answer) in clients.into_iter().zip(asked) {
        match answer {
            Ok(status) => members.push(Asked { client, status }),
            Err(error) => silent.push(chain(&error)),
        }
    }
    for Asked { client, status } in &members {
        let found = status.header.cluster_id;
        if found != request.cluster_id {
            let endpoint = client.endpoint().to_owned();
            return Err(Error::Stranger { endpoint, found, expected: request.cluster_id });
        }
    }
    if members.is_empty() {
        return Err(Error::Silent(silent.join("; ")));
    }
    let order = order(&members.iter().map(|member| member.status.clone()).collect::<Vec<_>>());
    if order.is_empty() {
        let errors = members.iter().flat_map(|member| member.status.errors.clone()).chain(silent);
        return Err(Error::NoVoter(errors.collect::<Vec<_>>().join("; ")));
    }
    let mut members: Vec<_> = members.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|place| members.get_mut(place)?.take()).collect())
}

/// A verified backup of a member.
async fn of(member: Asked, request: &Request, number: u64, folder: &Folder) -> Result<Manifest, Error> {
    let Asked { client, status } = member;
    check_alarms(&client).await?;
    folder.tidy()?;
    let time = clock::now();
    let (stem, revision) = (stem(time, status.header.revision), status.header.revision);
    let (writer, limit) = (folder.begin(&stem)?, longest(status.db_size));
    let written = match timeout(limit, fetched(&client, writer)).await {
        Ok(Ok(writer)) => writer.verified(u64::try_from(revision).unwrap_or(0))?,
        Ok(Err(error)) => {
            folder.discard(&stem).await;
            return Err(error);
        }
        Err(_) => {
            // The member is free again. The folder may take nothing at all, and is not waited for.
            let _is_gone = timeout(DISCARD, folder.discard(&stem)).await;
            return Err(Error::Slow { endpoint: client.endpoint().to_owned(), limit });
        }
    };
    // An alarm may have been raised while it came.
    if let Err(error) = check_alarms(&client).await {
        folder.discard(&stem).await;
        return Err(error);
    }
    let manifest = Manifest {
        name: format!("{stem}{SNAPSHOT}"),
        time,
        cluster: request.owner.clone(),
        cluster_id: format!("{:x}", request.cluster_id),
        endpoint: client.endpoint().to_owned(),
        version: status.version,
        revision,
        sha256: hexadecimal(&written),
        size: written.size,
        number,
        on_demand: request.on_demand,
    };
    folder.finish(&written, &stem, &manifest)?;
    Ok(manifest)
}

/// Fails while an alarm says that the data of members may differ.
async fn check_alarms(client: &Client) -> Result<(), Error> {
    let alarms = client.alarms().await.map_err(Error::Alarms)?;
    if are_suspect(&alarms) { Err(Error::Corrupt) } else { Ok(()) }
}

/// Writes what the member sends, up to its end: the whole, and with the hash that the member has put behind it. Another
/// thread writes, so that a folder that takes nothing does not keep the member from being let go.
async fn fetched(client: &Client, mut writer: Writer) -> Result<Writer, Error> {
    let snapshot = client.snapshot().await;
    let mut snapshot = snapshot.map_err(|error| Error::Snapshot(SnapshotError::Call(error)))?;
    while let Some(piece) = snapshot.piece().await.map_err(Error::Snapshot)? {
        let written = blocking(move || writer.write(&piece).map(|()| writer)).await;
        writer = written.map_err(|_| Error::BrokeOff)??;
    }
    Ok(writer)
}

/// Deletes what nothing asks to keep. The new backup stands whether or not that can be done.
fn retained(folder: &Folder, manifest: Manifest, request: &Request) -> Success {
    let (mut removed, now) = (0, clock::now());
    let done = folder.backups().and_then(|backups| {
        for backup in superseded(&backups, &manifest, request.retention, (now, request.clock)) {
            folder.remove(backup)?;
            removed += 1;
        }
        Ok(())
    });
    let not_removed = match request.clock {
        Clock::Wrong { due } => Some(format!(
            "the clock of the node shows {}, and the Job was due at {due}: no backup is deleted by it",
            now.strftime("%Y-%m-%dT%H:%M:%SZ")
        )),
        Clock::Confirmed | Clock::Unconfirmed => done.err().map(|error| chain(&error)),
    };
    Success { manifest, removed, not_removed }
}

fn hexadecimal(written: &Written) -> String {
    written.sha256.as_ref().iter().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
}
