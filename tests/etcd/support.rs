//! Clusters for tests, and clients of them.

use std::collections::BTreeSet;
use std::time::Duration;

use gatehouse::kinds::etcdcluster::etcd::{Client, Error, Limits, Outcome, Reason, Refusal, Status, Tls};
use kit::etcd::Calls as _;
use kit::wait::{PATIENCE, reached_async};
use testbed::{EtcdBed, EtcdState, EtcdVersion};

use crate::bed::Bed;
use crate::links::Links;

/// Limits for a machine that is busy with other tests.
pub fn limits() -> Limits {
    let long = Duration::from_secs(30);
    Limits { connect: long, read: long, change: long, ..Limits::default() }
}

/// Limits for clients that are to notice soon that no member answers. Of one that connects late this says that its answer
/// is not known, and not that the member cannot be reached.
pub fn short() -> Limits {
    let second = Duration::from_secs(1);
    Limits { read: second, change: second, ..limits() }
}

/// Members of one cluster.
pub struct Cluster {
    pub bed: Bed,
    pub version: EtcdVersion,
    flags: Vec<&'static str>,
}

impl Cluster {
    /// So many members that form a cluster and answer, over plain HTTP.
    pub async fn of(version: EtcdVersion, size: usize) -> Self {
        Self::with(version, size, &[]).await
    }

    pub async fn with(version: EtcdVersion, size: usize, flags: &[&'static str]) -> Self {
        let cluster = Self { bed: Bed::new(false), version, flags: flags.to_vec() };
        cluster.formed(size, |_| Vec::new()).await
    }

    /// So many members whose links to each other can be cut.
    pub async fn linked(version: EtcdVersion, size: usize) -> (Self, Links) {
        let cluster = Self { bed: Bed::new(false), version, flags: Vec::new() };
        let links = Links::between((0..size).map(|member| cluster.bed.peer_url(member))).await;
        let behind = |member| vec![format!("--listen-peer-urls={}", links.behind(member))];
        let cluster = cluster.formed(size, behind).await;
        (cluster, links)
    }

    /// The members, once they have formed a cluster and answer; each with flags of its own.
    async fn formed(mut self, size: usize, own: impl Fn(usize) -> Vec<String>) -> Self {
        let members: Vec<_> = (0..size).collect();
        for member in 0..size {
            let own = own(member);
            let flags: Vec<_> = self.flags.iter().copied().chain(own.iter().map(String::as_str)).collect();
            self.bed.start(member, self.version, (EtcdState::New, &members), &flags).unwrap();
        }
        for member in 0..size {
            self.serves(member).await;
        }
        self
    }

    /// A client of a member.
    pub fn client(&self, member: usize) -> Client {
        self.client_with(member, limits())
    }

    pub fn client_with(&self, member: usize, limits: Limits) -> Client {
        Client::new(&self.bed.client_url(member), None, limits).unwrap()
    }

    pub fn clients(&self, members: impl IntoIterator<Item = usize>) -> Vec<Client> {
        members.into_iter().map(|member| self.client(member)).collect()
    }

    /// Clients that give up soon.
    pub fn hasty_clients(&self, members: impl IntoIterator<Item = usize>) -> Vec<Client> {
        members.into_iter().map(|member| self.client_with(member, short())).collect()
    }

    /// Starts a member that the others have added.
    pub fn join(&mut self, member: usize, known: &[usize]) {
        self.bed.start(member, self.version, (EtcdState::Existing, known), &self.flags).unwrap();
    }

    /// Starts a member again that has ended.
    pub fn restart(&mut self, member: usize) {
        self.bed.restart(member, self.version).unwrap();
    }

    /// Waits until a voter serves what takes a quorum.
    pub async fn serves(&mut self, member: usize) {
        let client = self.client(member);
        let served = reached_async(PATIENCE, async || {
            self.bed.check().unwrap();
            client.members().await
        });
        if let Err(error) = served.await {
            panic!("member {member} does not serve: {error}\n{}", self.bed.logs());
        }
    }

    /// The place of the member that leads, as these members agree.
    pub async fn leader(&self, members: &[usize]) -> usize {
        self.eventually("one leader", async || {
            let mut leader = None;
            for member in members {
                let status = self.client_with(*member, short()).status().await.ok()?;
                if status.leader == 0 || leader.is_some_and(|known| known != status.leader) {
                    return None;
                }
                leader = Some(status.leader);
            }
            let leader = leader?;
            for member in members {
                if self.id(*member).await? == leader {
                    return Some(*member);
                }
            }
            None
        })
        .await
    }

    /// Has this one of these members lead. The one that leads is asked to hand over, and after an election meanwhile the
    /// one that leads then.
    pub async fn hand_over(&self, members: &[usize], heir: usize) {
        let id = self.status(heir).await.header.member_id;
        self.eventually("leader of choice", async || {
            let leads = self.leader(members).await;
            if leads == heir {
                return Some(());
            }
            match self.client(leads).move_leader(id).await {
                Err(error) if error.refusal().is_some_and(|refusal| refusal != Refusal::NotLeader) => {
                    panic!("{error}")
                }
                _ => None,
            }
        })
        .await;
    }

    async fn id(&self, member: usize) -> Option<u64> {
        Some(self.client_with(member, short()).status().await.ok()?.header.member_id)
    }

    pub async fn status(&self, member: usize) -> Status {
        self.client(member).status().await.unwrap()
    }

    /// The term that these members are in, where it is one for all. On a busy machine they elect where no test asks for it:
    /// what is said of who leads holds where the term is the same before and after.
    pub async fn term(&self, members: &[usize]) -> Option<u64> {
        let mut terms = BTreeSet::new();
        for member in members {
            terms.insert(self.client(*member).status().await.ok()?.raft_term);
        }
        terms.pop_first().filter(|_| terms.is_empty())
    }

    /// Writes a key: once more, where it is not known what came of that, as in an election.
    pub async fn write(&self, client: &Client, key: &[u8], value: &[u8]) {
        self.eventually("answer to a write", async || match client.put(key, value).await {
            Ok(_) => Some(()),
            Err(error) if error.outcome() == Outcome::Unknown => None,
            Err(error) => panic!("{error}"),
        })
        .await;
    }

    /// Waits until something is so.
    pub async fn eventually<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        self.bed.eventually(what, look).await
    }

    /// Asks a member of a cluster whose members have just met until it no longer says that they have not been
    /// connected for long enough.
    pub async fn once_healthy<T>(&self, ask: impl AsyncFn() -> Result<T, Error>) -> T {
        let early = [Refusal::Unhealthy, Refusal::NotEnoughStartedMembers];
        self.eventually("a healthy cluster", async || match ask().await {
            Ok(answer) => Some(answer),
            Err(error) if error.refusal().is_some_and(|refusal| early.contains(&refusal)) => None,
            Err(error) => panic!("{error}"),
        })
        .await
    }

    /// Adds a member as a learner, starts it and promotes it.
    pub async fn grow(&mut self, asked: usize, member: usize, known: &[usize]) -> u64 {
        let (client, peer_url) = (self.client(asked), self.bed.peer_url(member));
        let id = self.once_healthy(async || client.add_learner(&peer_url).await).await.member.id;
        self.join(member, known);
        self.promoted(asked, id).await;
        self.serves(member).await;
        id
    }

    /// Promotes a learner as soon as it has caught up.
    pub async fn promoted(&self, asked: usize, id: u64) {
        let client = self.client(asked);
        let early = [Refusal::LearnerNotReady, Refusal::Unhealthy, Refusal::NotEnoughStartedMembers];
        self.eventually("a promoted learner", async || match client.promote(id).await {
            Ok(_) => Some(()),
            Err(error) if error.refusal() == Some(Refusal::MemberNotLearner) => Some(()),
            Err(error) if error.refusal().is_some_and(|refusal| early.contains(&refusal)) => None,
            Err(error) => panic!("{error}"),
        })
        .await;
    }
}

/// What etcd said no to.
pub fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Refusal {
    let error = result.unwrap_err();
    error.refusal().unwrap_or_else(|| panic!("not refused, but: {error} ({:?})", error.reason()))
}

/// A call that was surely not done because there is no connection.
pub fn is_unreachable(error: &Error) -> bool {
    matches!(error.reason(), Reason::Unreachable(_))
}

/// What a client of a bed with TLS shows and trusts.
pub fn tls(bed: &EtcdBed, name: &str) -> Tls {
    let pem = bed.client_certificate(name).unwrap().expect("the bed has TLS");
    let identity = (pem.certificate.as_bytes(), pem.key.as_bytes());
    Tls::from_pem(pem.authority.as_bytes(), Some(identity)).unwrap()
}
