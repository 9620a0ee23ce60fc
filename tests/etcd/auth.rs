//! Who may do what, by certificate.

use std::fs;
use std::process::{Command, Stdio};

use gatehouse::kinds::etcdcluster::etcd::{Client, Doubt, Outcome, Password, Reason, Refusal, Tls};
use kit::etcd::{Calls as _, Permission, PermissionKind, Range};
use testbed::{EtcdBed, EtcdState, EtcdVersion};

use crate::bed::Bed;
use crate::support::{is_unreachable, limits, refused, tls};

async fn bed(version: EtcdVersion) -> (Bed, Client) {
    let mut bed = Bed::new(true);
    bed.start(0, version, (EtcdState::New, &[0]), &[]).unwrap();
    let root = Client::new(&bed.client_url(0), Some(&tls(&bed, "root")), limits()).unwrap();
    bed.eventually("member that serves", async || root.members().await.ok()).await;
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

/// What `etcdctl get a` prints with the certificate of a user that etcd does not know, and a password of
/// root.
fn got(bed: &EtcdBed, version: EtcdVersion, password: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let stranger = bed.client_certificate("stranger").unwrap().unwrap();
    let files = [("cacert", stranger.authority), ("cert", stranger.certificate), ("key", stranger.key)];
    let files = files.map(|(name, pem)| {
        let path = folder.path().join(name);
        fs::write(&path, pem).unwrap();
        format!("--{name}={}", path.display())
    });
    let output = Command::new(version.tool("etcdctl").unwrap())
        .args(files)
        .arg(format!("--endpoints={}", bed.client_url(0)))
        .args(["--dial-timeout=1m", "--command-timeout=1m"]) // the machine is busy with other tests
        .args(["--user=root", "--password", password, "get", "a", "--print-value-only"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

pub async fn root_has_a_password_beside_its_certificate_which_changes(version: EtcdVersion) {
    let (bed, root) = bed(version).await;
    let password = |text: &str| Password::new(text.to_owned());
    let (first, second) = (password("first one"), password("second\n"));
    root.put(b"a", b"1").await.unwrap();
    assert_eq!(refused(root.authenticate("root", &first).await), Refusal::AuthNotEnabled);
    root.add_user_for_a_password("root").await.unwrap();
    root.change_password("root", &Password::default()).await.unwrap();
    root.add_role("root").await.unwrap();
    root.grant_role("root", "root").await.unwrap();
    root.enable_auth().await.unwrap();

    // None fits, and the certificate does.
    for none in [Password::default(), first.clone()] {
        assert_eq!(refused(root.authenticate("root", &none).await), Refusal::AuthFailed);
    }
    root.members().await.unwrap();
    let before = root.auth_status().await.unwrap().revision;
    root.change_password("root", &first).await.unwrap();
    let after = root.auth_status().await.unwrap().revision;
    assert!(after > before, "a change of a user is a revision: {before}, {after}");
    root.authenticate("root", &first).await.unwrap();
    assert_eq!(refused(root.authenticate("root", &second).await), Refusal::AuthFailed);
    assert_eq!(root.auth_status().await.unwrap().revision, after, "to ask is none");
    assert_eq!(got(&bed, version, "first one"), Ok("1".to_owned()));

    root.change_password("root", &second).await.unwrap();
    root.authenticate("root", &second).await.unwrap();
    for other in [&first, &password("second"), &Password::default()] {
        assert_eq!(refused(root.authenticate("root", other).await), Refusal::AuthFailed);
    }
    assert_eq!(got(&bed, version, "second\n"), Ok("1".to_owned()));
    let error = got(&bed, version, "first one").unwrap_err();
    assert!(error.contains(Refusal::AuthFailed.words()), "{error}");
    root.put(b"a", b"2").await.unwrap();
    root.members().await.unwrap();
    assert_eq!(refused(root.delete_user("root").await), Refusal::InvalidAuthManagement);

    let logs = bed.logs();
    assert!(!logs.contains("first one") && !logs.contains("second\\n"), "etcd shows a password: {logs}");
    // What etcd reads is all that it takes.
    root.change_password("root", &password(&"a".repeat(72))).await.unwrap();
    root.authenticate("root", &password(&"a".repeat(72))).await.unwrap();
}

pub async fn a_user_that_was_made_without_a_password_never_gets_one(version: EtcdVersion) {
    let (_bed, root) = bed(version).await;
    let password = Password::new("first one".to_owned());
    root.add_user("root").await.unwrap();
    root.add_role("root").await.unwrap();
    root.grant_role("root", "root").await.unwrap();
    root.enable_auth().await.unwrap();
    root.change_password("root", &password).await.unwrap();
    assert_eq!(refused(root.authenticate("root", &password).await), Refusal::NoPasswordUser);
    // The way out, while etcd asks for no identity.
    root.disable_auth().await.unwrap();
    root.delete_user("root").await.unwrap();
    assert_eq!(refused(root.delete_user("root").await), Refusal::UserNotFound);
    root.add_user_for_a_password("root").await.unwrap();
    root.change_password("root", &password).await.unwrap();
    root.grant_role("root", "root").await.unwrap();
    root.enable_auth().await.unwrap();
    root.authenticate("root", &password).await.unwrap();
}

pub async fn who_shows_no_certificate_or_trusts_another_authority_is_not_served(version: EtcdVersion) {
    let (bed, _) = bed(version).await;
    let url = bed.client_url(0);
    let ours = bed.client_certificate("root").unwrap().unwrap();
    let silent = Tls::from_pem(ours.authority.as_bytes(), None).unwrap();
    let silent = Client::new(&url, Some(&silent), limits()).unwrap();
    // TLS 1.3 says so only after the client's handshake is done, when its request may be on the way; and etcd resets
    // the connection behind its words, which sometimes overtakes them. But it is soon over each time.
    bed.eventually("word about the certificate", async || {
        let error = silent.status().await.unwrap_err();
        assert!(
            !matches!(error.reason(), Reason::Refused(_) | Reason::Unsure(Doubt::Deadline(_))),
            "{error}"
        );
        error.to_string().to_lowercase().contains("certificate").then_some(())
    })
    .await;

    let elsewhere = EtcdBed::new(true).unwrap();
    let error =
        Client::new(&url, Some(&tls(&elsewhere, "root")), limits()).unwrap().status().await.unwrap_err();
    assert!(is_unreachable(&error), "{error}");
    // Both authorities have the same name.
    assert!(error.to_string().contains("invalid peer certificate: BadSignature"), "{error}");
}
