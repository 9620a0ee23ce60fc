//! The certificates that the operator keeps, shown to and by a real etcd: what it takes, and what it reads when.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use gatehouse::certs::mint::{Authority, Name};
use gatehouse::kinds::etcdcluster::api::v1::{EtcdCluster, EtcdClusterSpec};
use gatehouse::kinds::etcdcluster::etcd::{Client, Error, Limits, Refusal, Tls};
use gatehouse::kinds::etcdcluster::resources::certificates::{
    AUTHORITY_LIFETIME, Leaf, authority_name, leaves,
};
use gatehouse::kinds::etcdcluster::spec::Spec;
use gatehouse::runtime::clock;
use kit::etcd::Calls as _;
use kit::harness::Harness;
use kit::wait::{PATIENCE, eventually_async};
use tempfile::TempDir;
use testbed::{EtcdBed, EtcdVersion};

fn cluster() -> Spec {
    let mut cluster = EtcdCluster::new("c", EtcdClusterSpec::default());
    cluster.metadata.namespace = Some("shop".to_owned());
    Spec::resolve(&cluster, &[])
}

fn authority() -> Authority {
    let common_name = authority_name(&cluster());
    let name = Name { common_name: &common_name, lifetime: AUTHORITY_LIFETIME };
    Authority::create_as(name, clock::now()).unwrap()
}

/// A leaf where a Secret would be mounted.
fn mount(folder: &Path, leaf: &Leaf, authority: &Authority) {
    let signed = authority.sign(&leaf.profile(), clock::now()).unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("tls.key"), signed.key_pem()).unwrap();
    fs::write(folder.join("tls.crt"), signed.certificate_pem()).unwrap();
    fs::write(folder.join("ca.crt"), authority.certificate_pem()).unwrap();
}

/// TLS of a client that trusts `theirs` and shows a leaf of `ours` for `leaf`.
fn tls(theirs: &Authority, leaf: &Leaf, ours: &Authority) -> Tls {
    let signed = ours.sign(&leaf.profile(), clock::now()).unwrap();
    Tls::from_pem(&theirs.certificate_pem(), Some((&signed.certificate_pem(), &signed.key_pem()))).unwrap()
}

/// One member with certificates of the operator's making.
struct Etcd {
    folder: TempDir,
    url: String,
    server: Leaf,
    process: Child,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended, and then the test says so.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Etcd {
    fn start(version: EtcdVersion, authority: &Authority) -> Self {
        let bed = EtcdBed::new(false).unwrap(); // for its addresses
        let [client, peer_url] =
            [bed.client_url(0), bed.peer_url(0)].map(|url| url.replace("http:", "https:"));
        let [mut server, peer, _] = leaves(&cluster()).unwrap();
        // In a pod, members are dialled by name.
        let address = client.trim_start_matches("https://").split(':').next().unwrap();
        server.names.push(address.to_owned());

        let folder = tempfile::tempdir().unwrap();
        mount(&folder.path().join("server"), &server, authority);
        mount(&folder.path().join("peer"), &peer, authority);
        let mut command = Command::new(version.tool("etcd").unwrap());
        command.arg("--data-dir").arg(folder.path().join("data")).args(["--name", "c-0"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url]);
        command.args(["--initial-cluster", &format!("c-0={peer_url}")]);
        for (side, prefix) in [("server", "--"), ("peer", "--peer-")] {
            let file = |name: &str| folder.path().join(side).join(name);
            command.arg(format!("{prefix}cert-file={}", file("tls.crt").display()));
            command.arg(format!("{prefix}key-file={}", file("tls.key").display()));
            command.arg(format!("{prefix}trusted-ca-file={}", file("ca.crt").display()));
            command.arg(format!("{prefix}client-cert-auth"));
        }
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { folder, url: client, server, process }
    }

    fn client(&self, tls: &Tls) -> Client {
        // For a machine that is busy with other tests.
        let long = Duration::from_secs(30);
        let limits = Limits { connect: long, read: long, change: long, ..Limits::default() };
        Client::new(&self.url, Some(tls), limits).unwrap()
    }

    /// A client of a member that serves.
    async fn serving(&self, tls: &Tls) -> Client {
        let client = self.client(tls);
        let log = || fs::read_to_string(self.folder.path().join("log")).unwrap();
        eventually_async(PATIENCE, async || client.members().await, log).await;
        client
    }

    /// What the member says to a new connection.
    async fn asked(&self, tls: &Tls) -> Result<(), Error> {
        self.client(tls).members().await.map(|_| ())
    }
}

async fn the_operator_is_root_to_every_version_and_no_other_client_is() {
    for version in EtcdVersion::ALL {
        let ours = authority();
        let [server, _, client] = leaves(&cluster()).unwrap();
        let etcd = Etcd::start(version, &ours);
        let root = etcd.serving(&tls(&ours, &client, &ours)).await;
        root.add_user("root").await.unwrap();
        root.add_role("root").await.unwrap();
        root.grant_role("root", "root").await.unwrap();
        root.enable_auth().await.unwrap();
        root.put(b"a", b"1").await.unwrap();
        let member = etcd.client(&tls(&ours, &server, &ours));
        let refused = member.put(b"a", b"2").await.unwrap_err();
        assert_eq!(refused.refusal(), Some(Refusal::PermissionDenied), "a member's certificate is no user's");
    }
}

async fn a_member_shows_a_new_leaf_at_once_and_trusts_what_it_read_when_it_started() {
    for version in EtcdVersion::ALL {
        let (before, after) = (authority(), authority());
        let [.., client] = leaves(&cluster()).unwrap();
        let etcd = Etcd::start(version, &before);
        let by = |theirs, ours| tls(theirs, &client, ours);
        etcd.serving(&by(&before, &before)).await;
        is_another_leaf(etcd.asked(&by(&after, &before)).await);

        mount(&etcd.folder.path().join("server"), &etcd.server, &after);
        etcd.asked(&by(&after, &before)).await.unwrap();
        is_another_leaf(etcd.asked(&by(&before, &before)).await);
        // Where the connection is gone before the member's alert is read, that is all there is to be told.
        assert!(etcd.asked(&by(&after, &after)).await.is_err(), "the new authority is not trusted yet");
    }
}

/// The member showed a certificate of an authority that this client does not trust.
#[track_caller]
fn is_another_leaf(asked: Result<(), Error>) {
    let told = asked.unwrap_err().to_string();
    assert!(told.contains("invalid peer certificate"), "{told}");
}

/// For a test: more than it waits for anything, so that the wait tells first what did not come.
const LIMIT: Duration = Duration::from_mins(5);

fn main() -> ExitCode {
    let tests = kit::tests_on_runtimes!("certificates", LIMIT =>
        the_operator_is_root_to_every_version_and_no_other_client_is,
        a_member_shows_a_new_leaf_at_once_and_trusts_what_it_read_when_it_started,
    );
    let mut harness = Harness::from_args();
    harness.run(tests, 2);
    harness.end()
}
