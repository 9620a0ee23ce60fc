//! A way to an API server that can be cut, and that lets no more pass than a test allows.
//!
//! Guarantees: while nothing passes, what a client sends arrives when the way is opened, or never, so that a test can act
//! while a program is in the midst of something. Its threads end with the process.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use std::{fs, thread};

use kit::bed::Bed;
use kit::wait::within;

pub struct Way {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_cut: AtomicBool,
    /// Connections that found it cut.
    refused: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
    /// How many pieces of what clients send may still pass; none: all may.
    rest: Mutex<Option<usize>>,
    more: Condvar,
}

impl Way {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State::default());
        let known = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if known.is_cut.load(Ordering::SeqCst) {
                    known.refused.fetch_add(1, Ordering::SeqCst);
                } else if let Ok(server) = TcpStream::connect(server) {
                    join(&known, &client, &server).expect("a connection of two ends");
                }
            }
        });
        Self { port, state }
    }

    /// Closes all connections, and takes none.
    pub fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
        for open in self.state.open.lock().expect("sound").drain(..) {
            let _gone = open.shutdown(Shutdown::Both);
        }
    }

    pub fn mend(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
    }

    /// How many connections have found it cut.
    pub fn refused(&self) -> usize {
        self.state.refused.load(Ordering::SeqCst)
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.state.let_pass(None);
    }

    /// Lets no more than `pieces` pass between two looks until `look` finds what it looks for, and then none. A request
    /// is a piece, or more of them.
    #[track_caller]
    pub fn pass_until<T>(
        &self,
        pieces: usize,
        limit: Duration,
        mut look: impl FnMut() -> Result<T, String>,
    ) -> T {
        let found = within(limit, || {
            self.state.let_pass(Some(pieces));
            look()
        });
        self.state.let_pass(Some(0));
        found
    }
}

impl State {
    fn let_pass(&self, pieces: Option<usize>) {
        *self.rest.lock().expect("sound") = pieces;
        self.more.notify_all();
    }

    /// Waits until one more piece may pass.
    fn pass(&self) {
        let rest = self.rest.lock().expect("sound");
        let mut rest = self.more.wait_while(rest, |rest| *rest == Some(0)).expect("sound");
        if let Some(rest) = &mut *rest {
            *rest -= 1;
        }
    }
}

fn join(state: &Arc<State>, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    state.open.lock().expect("sound").extend([client.try_clone()?, server.try_clone()?]);
    let asks = (client.try_clone()?, server.try_clone()?);
    let answers = (server.try_clone()?, client.try_clone()?);
    let state = Arc::clone(state);
    thread::spawn(move || copy(asks, || state.pass()));
    thread::spawn(move || copy(answers, || ()));
    Ok(())
}

/// Copies one direction piece by piece until it ends. Whatever ends one direction ends both.
fn copy((mut from, mut to): (TcpStream, TcpStream), pass: impl Fn()) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        pass();
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _gone = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// The same kubeconfig by another way, and that way.
pub fn by_another_way(bed: &Bed, kubeconfig: &Path, name: &str) -> (PathBuf, Way) {
    let text = fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let (before, rest) = text.split_once("https://").expect("a server");
    let end = rest.find(|one: char| one.is_whitespace() || one == '"').unwrap_or(rest.len());
    let way = Way::to(rest[..end].trim_end_matches('/').parse().expect("an address"));
    let path = bed.cluster.folder().join(name);
    fs::write(&path, format!("{before}https://127.0.0.1:{}{}", way.port, &rest[end..])).expect("a file");
    (path, way)
}
