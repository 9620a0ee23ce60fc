//! Who may do what, by certificate.

use gatehouse::etcd::{Client, Doubt, Outcome, Permission, PermissionKind, Range, Reason, Refusal, Tls};
use testbed::{EtcdBed, EtcdState, EtcdVersion};

use crate::support::{eventually, is_unreachable, limits, refused, tls};

async fn bed(version: EtcdVersion) -> (EtcdBed, Client) {
    let mut bed = EtcdBed::new(true).unwrap();
    bed.start(0, version, (EtcdState::New, &[0]), &[]).unwrap();
    let root = Client::new(&bed.client_url(0), Some(&tls(&bed, "root")), limits()).unwrap();
    eventually("member that serves", async || root.members().await.ok(), || bed.logs()).await;
    (bed, root)
}

fn one(key: &[u8]) -> Range {
    Range { key: key.to_vec(), ..Range::default() }
}

pub async fn root_by_certificate_may_all_and_a_stranger_nothing(version: EtcdVersion) {
    let (bed, root) = bed(version).await;
    let named = |name| Client::new(&bed.client_url(0), Some(&tls(&bed, name)), limits()).unwrap();
    let (reader, stranger) = (named("reader"), named("stranger"));
    assert!(!root.auth_status().await.unwrap().enabled);
    stranger.put(b"a", b"1").await.unwrap(); // everybody may all, so far

    assert_eq!(refused(root.enable_auth().await), Refusal::RootUserMissing);
    root.add_user("root").await.unwrap();
    assert_eq!(refused(root.add_user("root").await), Refusal::UserExists);
    assert_eq!(refused(root.enable_auth().await), Refusal::RootRoleMissing);
    root.add_role("root").await.unwrap();
    assert_eq!(refused(root.add_role("root").await), Refusal::RoleExists);
    root.grant_role("root", "root").await.unwrap();
    assert_eq!(refused(root.grant_role("nobody", "root").await), Refusal::UserNotFound);
    assert_eq!(refused(root.grant_role("root", "nothing").await), Refusal::RoleNotFound);
    root.add_user("reader").await.unwrap();
    root.add_role("reads-a").await.unwrap();
    let permission =
        Permission { kind: PermissionKind::Read.into(), key: b"a".to_vec(), range_end: Vec::new() };
    root.grant_permission("reads-a", permission).await.unwrap();
    root.grant_role("reader", "reads-a").await.unwrap();
    root.enable_auth().await.unwrap();

    assert!(root.auth_status().await.unwrap().enabled);
    root.put(b"a", b"2").await.unwrap();
    root.members().await.unwrap();
    root.defragment().await.unwrap();
    assert_eq!(reader.range(one(b"a")).await.unwrap().key_values[0].value, b"2");
    assert_eq!(refused(reader.range(one(b"b")).await), Refusal::PermissionDenied);
    assert_eq!(refused(reader.put(b"a", b"3").await), Refusal::PermissionDenied);
    assert_eq!(refused(reader.defragment().await), Refusal::PermissionDenied);
    let error = stranger.put(b"a", b"3").await.unwrap_err();
    assert_eq!(
        (error.refusal(), error.outcome()),
        (Some(Refusal::PermissionDenied), Outcome::None),
        "{error}"
    );
    root.disable_auth().await.unwrap();
    stranger.put(b"a", b"3").await.unwrap();
}

pub async fn who_shows_no_certificate_or_trusts_another_authority_is_not_served(version: EtcdVersion) {
    let (bed, _) = bed(version).await;
    let url = bed.client_url(0);
    let ours = bed.client_certificate("root").unwrap().unwrap();
    let silent = Tls::from_pem(ours.authority.as_bytes(), None).unwrap();
    let silent = Client::new(&url, Some(&silent), limits()).unwrap();
    // TLS 1.3 says so only after the client's handshake is done, when its request may be on the way; and etcd resets
    // the connection behind its words, which sometimes overtakes them. But it is soon over each time.
    eventually(
        "word about the certificate",
        async || {
            let error = silent.status().await.unwrap_err();
            assert!(
                !matches!(error.reason(), Reason::Refused(_) | Reason::Unsure(Doubt::Deadline(_))),
                "{error}"
            );
            error.to_string().to_lowercase().contains("certificate").then_some(())
        },
        || bed.logs(),
    )
    .await;

    let elsewhere = EtcdBed::new(true).unwrap();
    let error =
        Client::new(&url, Some(&tls(&elsewhere, "root")), limits()).unwrap().status().await.unwrap_err();
    assert!(is_unreachable(&error), "{error}");
    // Both authorities have the same name.
    assert!(error.to_string().contains("invalid peer certificate: BadSignature"), "{error}");
}
