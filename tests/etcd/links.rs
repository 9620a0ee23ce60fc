//! Links between members that a test can cut, while the members run and clients reach them.
//!
//! Assumes: what a member sends to another one has the sender's identity in a header (`X-Server-From` of etcd's
//! `rafthttp`), and comes to the address that the other one advertises. Probes have none, and pass: they say nothing of
//! raft.

#![expect(clippy::disallowed_methods, reason = "what carries links ends with the runtime of its test")]

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const SENDER: &str = "X-Server-From: ";

/// What a member listens on behind the address that it advertises.
const BEHIND: u16 = 2390;

/// More than a request's headers.
const PIECE: usize = 64 << 10;

/// A member that hears no other one, and is heard by none: its place and its identity.
type Cut = Option<(usize, u64)>;

/// The links between the members of a cluster. Dropped, all are cut.
pub struct Links {
    addresses: Vec<SocketAddr>,
    cut: watch::Sender<Cut>,
}

impl Links {
    /// Links to the members that advertise these URLs.
    pub async fn between(urls: impl Iterator<Item = String>) -> Self {
        let addresses: Vec<_> = urls.map(|url| url.split_once("://").unwrap().1.parse().unwrap()).collect();
        let (cut, seen) = watch::channel(None);
        let links = Self { addresses, cut };
        for (place, address) in links.addresses.iter().enumerate() {
            let listener = TcpListener::bind(address).await.unwrap();
            tokio::spawn(accept(place, listener, links.address_behind(place), seen.clone()));
        }
        links
    }

    fn address_behind(&self, place: usize) -> SocketAddr {
        SocketAddr::new(self.addresses[place].ip(), BEHIND)
    }

    /// Where a member has to listen.
    pub fn behind(&self, place: usize) -> String {
        format!("http://{}", self.address_behind(place))
    }

    /// Cuts a member off from all others.
    pub fn cut(&self, place: usize, id: u64) {
        self.cut.send_replace(Some((place, id)));
    }

    pub fn mend(&self) {
        self.cut.send_replace(None);
    }
}

async fn accept(place: usize, listener: TcpListener, behind: SocketAddr, cut: watch::Receiver<Cut>) {
    while let Ok((connection, _)) = listener.accept().await {
        tokio::spawn(carry(place, connection, behind, cut.clone()));
    }
}

/// Carries a connection to a member until one side closes it, or it is that of a member that is cut off.
async fn carry(place: usize, mut sender: TcpStream, behind: SocketAddr, mut cut: watch::Receiver<Cut>) {
    let Ok(mut member) = TcpStream::connect(behind).await else { return };
    let (mut asked, mut answered) = (vec![0; PIECE], vec![0; PIECE]);
    let mut from = None;
    loop {
        let (count, to) = tokio::select! {
            change = cut.changed() => match change {
                Ok(()) => (0, None),
                Err(_) => return,
            },
            read = sender.read(&mut asked) => match read {
                Ok(count @ 1..) => {
                    from = sender_in(&asked[..count]).or(from);
                    (count, Some((&mut member, &asked)))
                }
                _ => return,
            },
            read = member.read(&mut answered) => match read {
                Ok(count @ 1..) => (count, Some((&mut sender, &answered))),
                _ => return,
            },
        };
        let cut = *cut.borrow_and_update();
        if cut.is_some_and(|(cut_off, id)| cut_off == place || from == Some(id)) {
            return;
        }
        if let Some((to, piece)) = to
            && to.write_all(&piece[..count]).await.is_err()
        {
            return;
        }
    }
}

/// Whose request begins in a piece of a connection.
fn sender_in(piece: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(piece);
    let (_, rest) = text.split_once(SENDER)?;
    u64::from_str_radix(rest.split_once('\r')?.0, 16).ok()
}
