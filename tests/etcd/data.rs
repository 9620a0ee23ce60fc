//! Keys and values.

use gatehouse::kinds::etcdcluster::etcd::Refusal;
use kit::etcd::{Calls as _, Compare, DeleteRange, Put, Range, Request, RequestKind, ResponseKind, Txn};
use testbed::EtcdVersion;

use crate::support::{Cluster, refused};

fn one(key: &[u8]) -> Range {
    Range { key: key.to_vec(), ..Range::default() }
}

fn put(key: &[u8], value: &[u8]) -> Request {
    RequestKind::Put(Put { key: key.to_vec(), value: value.to_vec() }).into()
}

pub async fn keys_are_written_read_and_deleted(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let client = cluster.client(0);
    let first = client.put(b"a/1", b"one").await.unwrap().header.revision;
    let second = client.put(b"a/2", b"two").await.unwrap().header.revision;
    assert_eq!(second, first + 1);

    let all = Range { key: b"a/".to_vec(), range_end: b"a0".to_vec(), ..Range::default() };
    let found = client.range(all.clone()).await.unwrap();
    let values: Vec<_> =
        found.key_values.iter().map(|found| (&found.value[..], found.mod_revision)).collect();
    assert_eq!(values, [(&b"one"[..], first), (b"two", second)]);
    assert_eq!((found.count, found.more, found.header.revision), (2, false, second));
    let found = client.range(Range { limit: 1, ..all.clone() }).await.unwrap();
    assert_eq!((found.key_values.len(), found.count, found.more), (1, 2, true));
    let found = client.range(Range { count_only: true, serializable: true, ..all.clone() }).await.unwrap();
    assert_eq!((found.key_values.len(), found.count), (0, 2));
    let found = client.range(Range { revision: first, ..all.clone() }).await.unwrap();
    assert_eq!(found.count, 1);

    let range = DeleteRange { key: all.key.clone(), range_end: all.range_end.clone() };
    assert_eq!(client.delete(range.clone()).await.unwrap().deleted, 2);
    let nothing = client.delete(range).await.unwrap();
    assert_eq!((nothing.deleted, nothing.header.revision), (0, second + 1));
    assert_eq!(refused(client.put(b"", b"value").await), Refusal::EmptyKey);
    let ahead = Range { revision: second + 100, ..all };
    assert_eq!(refused(client.range(ahead).await), Refusal::FutureRevision);
}

pub async fn a_transaction_compares(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let client = cluster.client(0);
    let transaction = |revision| Txn {
        compare: vec![Compare::unchanged_since(b"key", revision)],
        success: vec![put(b"key", b"mine")],
        failure: vec![RequestKind::Range(one(b"key")).into()],
    };
    let created = client.transact(transaction(0)).await.unwrap();
    assert!(created.succeeded);
    let again = client.transact(transaction(0)).await.unwrap();
    assert!(!again.succeeded);
    let [response] = &again.responses[..] else { panic!("{again:?}") };
    let Some(ResponseKind::Range(found)) = &response.kind else { panic!("{response:?}") };
    assert_eq!(found.key_values[0].mod_revision, created.header.revision);
    assert!(client.transact(transaction(created.header.revision)).await.unwrap().succeeded);
    let twice = Txn { success: vec![put(b"key", b"1"), put(b"key", b"2")], ..Txn::default() };
    assert_eq!(refused(client.transact(twice).await), Refusal::DuplicateKey);
}

pub async fn what_was_compacted_is_gone(version: EtcdVersion) {
    let cluster = Cluster::of(version, 1).await;
    let client = cluster.client(0);
    let mut revision = 0;
    for value in 0..10 {
        revision = client.put(b"key", &[value]).await.unwrap().header.revision;
    }
    client.compact(revision, true).await.unwrap();
    assert_eq!(refused(client.compact(revision, true).await), Refusal::Compacted);
    assert_eq!(refused(client.compact(revision + 1, false).await), Refusal::FutureRevision);
    let before = Range { revision: revision - 1, ..one(b"key") };
    assert_eq!(refused(client.range(before).await), Refusal::Compacted);
    assert_eq!(client.range(one(b"key")).await.unwrap().key_values[0].value, [9]);
    assert_eq!(client.hash_keys(0).await.unwrap().compact_revision, revision);
}
