//! How a member is, and what keeps it so.

use std::process::Command;

use gatehouse::kinds::etcdcluster::etcd::{AlarmKind, Client, Doubt, Downgrade, Reason, Refusal};
use kit::etcd::Calls as _;
use testbed::EtcdVersion;

use crate::support::{Cluster, refused};

pub async fn status_has_the_fields_of_its_version(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let status = cluster.status(0).await;
    assert_eq!(status.version, version.release());
    assert!(status.is_leader() && !status.is_learner && status.errors.is_empty(), "{status:?}");
    assert!(status.db_size >= status.db_size_in_use && status.db_size_in_use > 0, "{status:?}");
    assert!(status.raft_index >= status.raft_applied_index && status.raft_applied_index > 0, "{status:?}");
    assert!(status.raft_term > 0 && status.header.revision > 0, "{status:?}");
    if version == EtcdVersion::V3_5 {
        assert_eq!((status.storage_version.as_str(), status.db_size_quota, status.downgrade), ("", 0, None));
        return;
    }
    assert_eq!(status.db_size_quota, 2 << 30);
    assert!(status.downgrade.is_some_and(|downgrade| !downgrade.enabled));
    let storage = format!("{}.0", version.minor());
    cluster
        .eventually("storage version", async || {
            (cluster.status(0).await.storage_version == storage).then_some(())
        })
        .await;
}

pub async fn a_full_database_is_compacted_defragmented_and_disarmed(version: EtcdVersion) {
    let cluster = Cluster::with(version, 1, &["--quota-backend-bytes=2000000"]).await;
    let client = cluster.client(0);
    assert_eq!(client.alarms().await.unwrap(), []);
    let mut revision = 0;
    let refusal = loop {
        match client.put(b"key", &vec![7; 100_000]).await {
            Ok(done) => revision = done.header.revision,
            failed => break refused(failed),
        }
    };
    assert_eq!(refusal, Refusal::NoSpace);
    let status = cluster.status(0).await;
    let alarms = client.alarms().await.unwrap();
    let [alarm] = &alarms[..] else { panic!("{alarms:?}") };
    assert_eq!((alarm.member, alarm.kind()), (status.header.member_id, AlarmKind::NoSpace));
    assert!(!status.errors.is_empty());

    client.compact(revision, true).await.unwrap();
    client.defragment().await.unwrap();
    let smaller = cluster.status(0).await;
    assert!(smaller.db_size < status.db_size, "{} and then {}", status.db_size, smaller.db_size);
    assert_eq!(refused(client.put(b"key", b"value").await), Refusal::NoSpace); // until the alarm is taken back
    client.disarm(alarm.member, AlarmKind::NoSpace).await.unwrap();
    client.disarm(alarm.member, AlarmKind::NoSpace).await.unwrap();
    assert_eq!(client.alarms().await.unwrap(), []);
    client.put(b"key", b"value").await.unwrap();
}

pub async fn a_snapshot_is_whole(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let client = cluster.client(0);
    for key in 0..20_u8 {
        client.put(&[key + 1], &vec![key; 50_000]).await.unwrap();
    }
    if version != EtcdVersion::V3_5 {
        // A new cluster has none until the leader has looked at its members.
        let stored =
            async || Some(client.status().await.ok()?.storage_version).filter(|found| !found.is_empty());
        cluster.eventually("storage version", stored).await;
    }
    let mut snapshot = client.snapshot().await.unwrap();
    let mut file = Vec::new();
    while let Some(piece) = snapshot.piece().await.unwrap() {
        assert_eq!(snapshot.seal(), None);
        file.extend(piece);
    }
    let seal = snapshot.seal().unwrap();
    assert_eq!((seal.size, &seal.sha256[..]), (file.len() as u64, &file[file.len() - 32..]));
    assert!(seal.size > 1_000_000);
    assert_eq!(seal.storage_version.is_empty(), version == EtcdVersion::V3_5);

    let folder = tempfile::tempdir().unwrap();
    let (saved, data) = (folder.path().join("snapshot.db"), folder.path().join("data"));
    std::fs::write(&saved, file).unwrap();
    let mut restore = Command::new(version.tool("etcdutl").unwrap());
    let restored =
        restore.args(["snapshot", "restore", "--data-dir"]).arg(&data).arg(&saved).output().unwrap();
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
}

pub async fn voters_have_equal_hashes(version: EtcdVersion) {
    let cluster = Cluster::of(version, 3).await;
    let mut revision = 0;
    for value in 0..20 {
        revision = cluster.client(value % 3).put(b"key", &[7]).await.unwrap().header.revision;
    }
    let at = async |client: Client| {
        cluster.eventually("hash", async || client.hash_keys(revision).await.ok()).await
    };
    let first = at(cluster.client(0)).await;
    for client in cluster.clients([1, 2]) {
        let hash = at(client).await;
        assert_eq!((hash.hash, hash.compact_revision), (first.hash, first.compact_revision));
        assert_ne!(hash.header.member_id, first.header.member_id);
        assert_eq!(hash.hash_revision, if version == EtcdVersion::V3_5 { 0 } else { revision });
    }
    let ahead = cluster.client(0).hash_keys(revision + 1000).await;
    assert_eq!(refused(ahead), Refusal::FutureRevision);
}

pub async fn a_downgrade_is_judged(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let client = cluster.client(0);
    let older = match version {
        EtcdVersion::V3_5 => "3.4",
        EtcdVersion::V3_6 => "3.5",
        EtcdVersion::V3_7 => "3.6",
    };
    let agreed = cluster
        .eventually("version of the cluster", async || {
            client.downgrade(Downgrade::Validate, older).await.ok()
        })
        .await;
    assert!(agreed.starts_with(version.minor()), "{agreed}");
    let ask = async |action, target| refused(client.downgrade(action, target).await);
    assert_eq!(ask(Downgrade::Validate, "3.2").await, Refusal::InvalidDowngradeTarget);
    assert_eq!(ask(Downgrade::Validate, "soon").await, Refusal::WrongDowngradeVersionFormat);
    if version == EtcdVersion::V3_5 {
        assert_eq!(ask(Downgrade::Cancel, older).await, Refusal::NoDowngradeInProcess);
    } else {
        client.downgrade(Downgrade::Cancel, older).await.unwrap(); // newer ones only log it
    }

    change(&client, version, Downgrade::Enable, older).await;
    assert_eq!(ask(Downgrade::Enable, older).await, Refusal::DowngradeInProcess);
    if version != EtcdVersion::V3_5 {
        let downgrade = cluster.status(0).await.downgrade.unwrap();
        assert!(downgrade.enabled && downgrade.target_version.starts_with(older), "{downgrade:?}");
    }
    change(&client, version, Downgrade::Cancel, older).await;
    client.downgrade(Downgrade::Validate, older).await.unwrap();
}

/// Begins or ends a downgrade. 3.5 does so and does not answer, until it answers that the time is over.
async fn change(client: &Client, version: EtcdVersion, action: Downgrade, target: &str) {
    let answer = client.downgrade(action, target).await;
    if version != EtcdVersion::V3_5 {
        answer.unwrap();
        return;
    }
    let error = answer.unwrap_err();
    assert!(matches!(error.reason(), Reason::Unsure(Doubt::TimedOut(_))), "{error}");
}
