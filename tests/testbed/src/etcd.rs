//! etcd alone: members as plain processes of this machine, to be started, killed, frozen and wiped one by one.
//!
//! Guarantees: every [`EtcdBed`] has a folder, keys and loopback addresses of its own, so any number of them run side
//! by side, and a member comes back at the address that it had; when the process that holds it ends, however it ends,
//! its members end too and the folder goes.
//!
//! Assumes: Linux, where all of 127.0.0.0/8 is this machine.
//!
//! Never: decides who is a member. Who starts one says with which others.

use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rcgen::{CertifiedIssuer, ExtendedKeyUsagePurpose, KeyPair};

use crate::{
    Error,
    component::Component,
    credentials::{self, Pair},
    files::{own_folder, private_folder, remove_folder},
    process::Signal,
    reaper::Reaper,
    tools, version,
};

/// What members are called. There are no more.
const NAMES: [&str; 9] =
    ["etcd-0", "etcd-1", "etcd-2", "etcd-3", "etcd-4", "etcd-5", "etcd-6", "etcd-7", "etcd-8"];
const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;
/// How long a member has to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// Last parts of addresses in one block; 0 and 255 are none.
const BLOCK: u32 = 254;

/// A minor version of etcd that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EtcdVersion {
    /// The oldest that is supported.
    V3_5,
    /// The one that control planes run on.
    V3_6,
    /// The newest.
    V3_7,
}

impl EtcdVersion {
    /// All of them, oldest first.
    pub const ALL: [Self; 3] = [Self::V3_5, Self::V3_6, Self::V3_7];

    /// `3.6`
    #[must_use]
    pub const fn minor(self) -> &'static str {
        match self {
            Self::V3_5 => "3.5",
            Self::V3_6 => "3.6",
            Self::V3_7 => "3.7",
        }
    }

    /// The pinned release, such as `3.6.16`.
    #[must_use]
    pub fn release(self) -> &'static str {
        version::etcd_release_of(self)
    }

    /// The folder below `tools/` that pins it.
    const fn family(self) -> &'static str {
        match self {
            Self::V3_5 => "etcd-3.5.33",
            Self::V3_6 => "etcd",
            Self::V3_7 => "etcd-3.7",
        }
    }

    /// Where its `etcd`, `etcdctl` or `etcdutl` is.
    ///
    /// # Errors
    /// It is not built.
    pub fn tool(self, name: &str) -> Result<PathBuf, Error> {
        let path = tools::cache().join(format!("etcd-{}/bin", self.release())).join(name);
        if path.is_file() { Ok(path) } else { Err(Error::EtcdMissing { family: self.family(), path }) }
    }
}

/// How a member that is new learns of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtcdState {
    /// They form a cluster with it.
    New,
    /// They are one, and have added it.
    Existing,
}

impl EtcdState {
    const fn flag(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Existing => "existing",
        }
    }
}

/// A certificate, its key and the authority that vouches for both sides; all PEM.
#[derive(Debug, Clone)]
pub struct EtcdPem {
    /// The authority's certificate.
    pub authority: String,
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Room for the members of a cluster. Dropped, it ends them and removes their data.
#[derive(Debug)]
pub struct EtcdBed {
    members: BTreeMap<usize, Member>,
    folder: PathBuf,
    addresses: [Ipv4Addr; NAMES.len()],
    tls: Option<Keys>,
    reaper: Reaper,
}

#[derive(Debug)]
struct Keys {
    issuer: CertifiedIssuer<'static, KeyPair>,
    server: Pair,
    authority: PathBuf,
}

/// How a member was started last, and its process while it runs.
#[derive(Debug)]
struct Member {
    version: EtcdVersion,
    flags: Vec<String>,
    process: Option<Component>,
}

impl EtcdBed {
    /// Room where clients come over plain HTTP, or, with `tls`, by certificate.
    ///
    /// # Errors
    /// The folder or the keys cannot be made.
    pub fn new(tls: bool) -> Result<Self, Error> {
        let folder = own_folder(None)?;
        let reaper = Reaper::start(Some(&folder))?;
        let addresses = std::array::from_fn(|_| next_address());
        let tls = if tls { Some(Keys::create(&folder, &addresses)?) } else { None };
        Ok(Self { members: BTreeMap::new(), folder, addresses, tls, reaper })
    }

    /// Where clients reach a member, whether it runs or not.
    ///
    /// # Panics
    /// There is no room for so many members.
    #[must_use]
    pub fn client_url(&self, member: usize) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{CLIENT_PORT}", self.addresses[member])
    }

    /// Where the other members reach it.
    ///
    /// # Panics
    /// There is no room for so many members.
    #[must_use]
    pub fn peer_url(&self, member: usize) -> String {
        format!("http://{}:{PEER_PORT}", self.addresses[member])
    }

    /// A client's certificate for this common name; none without TLS.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn client_certificate(&self, name: &str) -> Result<Option<EtcdPem>, Error> {
        self.tls.as_ref().map(|keys| keys.client(&self.folder, name)).transpose()
    }

    /// Starts a member of this version, with the members that it is to know, itself among them, and further flags.
    ///
    /// # Errors
    /// It is not built, or does not start. That it ends later is said by [`Self::check`].
    pub fn start(
        &mut self,
        member: usize,
        version: EtcdVersion,
        (state, known): (EtcdState, &[usize]),
        flags: &[&str],
    ) -> Result<(), Error> {
        let known: Vec<_> =
            known.iter().map(|each| format!("{}={}", NAMES[*each], self.peer_url(*each))).collect();
        let mut all = vec![
            format!("--initial-cluster={}", known.join(",")),
            format!("--initial-cluster-state={}", state.flag()),
        ];
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.members.insert(member, Member { version, flags: all, process: None });
        self.restart(member, version)
    }

    /// Starts a member that has ended, as before but in this version.
    ///
    /// # Errors
    /// It never ran, is not built, or does not start.
    pub fn restart(&mut self, member: usize, version: EtcdVersion) -> Result<(), Error> {
        let Some(known) = self.members.get(&member) else { return Err(Error::NoMember(member)) };
        let mut command = self.command(member, version)?;
        command.args(&known.flags);
        let process = Component::start(NAMES[member], &mut command, &self.folder, &mut self.reaper)?;
        if let Some(known) = self.members.get_mut(&member) {
            *known = Member { version, flags: std::mem::take(&mut known.flags), process: Some(process) };
        }
        Ok(())
    }

    /// The version that a member was started in last.
    #[must_use]
    pub fn version(&self, member: usize) -> Option<EtcdVersion> {
        self.members.get(&member).map(|member| member.version)
    }

    /// Ends a member at once, without a word to the others.
    pub fn kill(&mut self, member: usize) {
        if let Some(member) = self.members.get_mut(&member) {
            member.process = None;
        }
    }

    /// Asks a member to end, and waits until it has.
    ///
    /// # Errors
    /// It cannot be ended.
    pub fn stop(&mut self, member: usize) -> Result<(), Error> {
        match self.members.get_mut(&member).and_then(|member| member.process.take()) {
            Some(process) => process.stop(GRACE),
            None => Ok(()),
        }
    }

    /// Lets a member stand still: its connections stay, and nothing is answered.
    ///
    /// # Errors
    /// It does not run.
    pub fn freeze(&self, member: usize) -> Result<(), Error> {
        self.signal(member, Signal::Stop)
    }

    /// Lets a member that stands still go on.
    ///
    /// # Errors
    /// It does not run.
    pub fn thaw(&self, member: usize) -> Result<(), Error> {
        self.signal(member, Signal::Continue)
    }

    /// Kills a member and removes its data.
    ///
    /// # Errors
    /// The data cannot be removed.
    pub fn wipe(&mut self, member: usize) -> Result<(), Error> {
        self.kill(member);
        remove_folder(&self.data(member))
    }

    /// Whether all members that were started, and not ended here, still run.
    ///
    /// # Errors
    /// One has ended; with the end of its log.
    pub fn check(&mut self) -> Result<(), Error> {
        self.members.values_mut().filter_map(|member| member.process.as_mut()).try_for_each(Component::check)
    }

    /// Whether a member runs: it was started, and has ended neither here nor by itself.
    pub fn runs(&mut self, member: usize) -> bool {
        let process = self.members.get_mut(&member).and_then(|member| member.process.as_mut());
        process.is_some_and(|process| process.check().is_ok())
    }

    /// The end of the logs of the members that run.
    #[must_use]
    pub fn logs(&self) -> String {
        let running = self.members.values().filter_map(|member| member.process.as_ref());
        running.map(Component::tail).collect::<Vec<_>>().join("\n")
    }

    /// Where a member's data are.
    #[must_use]
    pub fn data(&self, member: usize) -> PathBuf {
        self.folder.join(NAMES[member])
    }

    fn signal(&self, member: usize, signal: Signal) -> Result<(), Error> {
        let process = self.members.get(&member).and_then(|member| member.process.as_ref());
        process.ok_or(Error::NoMember(member))?.process().signal(signal)
    }

    /// What a member is started with whatever it is to know of the others.
    fn command(&self, member: usize, version: EtcdVersion) -> Result<Command, Error> {
        let (client, peer) = (self.client_url(member), self.peer_url(member));
        private_folder(&self.data(member))?;
        let mut command = Command::new(version.tool("etcd")?);
        command
            .arg(format!("--name={}", NAMES[member]))
            .arg(format!("--data-dir={}", self.data(member).display()))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .args(["--unsafe-no-fsync", "--log-level=warn"]); // the machine does not crash, only processes do
        if let Some(keys) = &self.tls {
            command
                .arg("--client-cert-auth")
                .arg(format!("--trusted-ca-file={}", keys.authority.display()))
                .arg(format!("--cert-file={}", keys.server.certificate.display()))
                .arg(format!("--key-file={}", keys.server.key.display()));
        }
        Ok(command)
    }
}

impl Keys {
    fn create(folder: &Path, addresses: &[Ipv4Addr]) -> Result<Self, Error> {
        let issuer = credentials::issuer()?;
        let authority = credentials::write(folder, "ca.crt", &issuer.pem())?;
        let hosts = addresses.iter().map(ToString::to_string).collect();
        // Both usages: a member also dials itself.
        let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let server = credentials::pair(folder, &issuer, ("server", None), hosts, &usages)?;
        Ok(Self { issuer, server, authority })
    }

    fn client(&self, folder: &Path, name: &str) -> Result<EtcdPem, Error> {
        let usages = [ExtendedKeyUsagePurpose::ClientAuth];
        let pair = credentials::pair(folder, &self.issuer, (name, None), Vec::new(), &usages)?;
        let read =
            |path: &Path| fs::read_to_string(path).map_err(Error::io(format!("reading {}", path.display())));
        let (certificate, key) = (read(&pair.certificate)?, read(&pair.key)?);
        Ok(EtcdPem { authority: self.issuer.pem(), certificate, key })
    }
}

/// A loopback address that no other bed of this process has, and hardly one of another process.
fn next_address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let taken = NEXT.fetch_add(1, Ordering::Relaxed);
    let [_, _, high, low] = std::process::id().wrapping_add(taken / BLOCK).to_be_bytes();
    let [.., last] = (taken % BLOCK + 1).to_be_bytes();
    Ipv4Addr::new(127, high | 0x80, low, last) // away from 127.0.0.0/16, where everything else is
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn addresses_are_each_once_and_on_loopback() {
        let addresses: Vec<_> = (0..1000).map(|_| next_address()).collect();
        assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), addresses.len());
        assert!(addresses.iter().all(|address| address.is_loopback() && address.octets()[1] >= 128));
    }

    #[test]
    fn a_release_is_of_its_minor() {
        for version in EtcdVersion::ALL {
            assert!(version.release().starts_with(&format!("{}.", version.minor())), "{version:?}");
        }
    }

    #[test]
    fn one_that_never_ran_is_no_member() {
        let mut bed = EtcdBed::new(false).unwrap();
        assert!(matches!(bed.restart(2, EtcdVersion::V3_6), Err(Error::NoMember(2))));
        assert!(matches!(bed.freeze(2), Err(Error::NoMember(2))));
    }
}
