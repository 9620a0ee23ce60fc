//! What a Service does for replicas, and a network that loses connections: one address before several.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// An address behind which the first replica that takes a connection gets it. Its threads end with the process.
pub struct Front {
    pub port: u16,
    replicas: Arc<Mutex<Vec<SocketAddr>>>,
    joined: Arc<Mutex<Vec<Joined>>>,
}

/// A connection of two ends.
struct Joined {
    client: TcpStream,
    is_silent: Arc<AtomicBool>,
}

impl Front {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let replicas = Arc::new(Mutex::new(Vec::<SocketAddr>::new()));
        let joined = Arc::new(Mutex::new(Vec::new()));
        let (known, kept) = (Arc::clone(&replicas), Arc::clone(&joined));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let replicas = known.lock().expect("sound").clone();
                if let Some(server) = replicas.iter().find_map(|one| TcpStream::connect(one).ok()) {
                    let is_silent = Arc::<AtomicBool>::default();
                    let kept_end = client.try_clone().expect("a connection");
                    join(client, server, &is_silent).expect("a connection of two ends");
                    kept.lock().expect("sound").push(Joined { client: kept_end, is_silent });
                }
            }
        });
        Self { port, replicas, joined }
    }

    pub fn add(&self, replica: SocketAddr) {
        self.replicas.lock().expect("sound").push(replica);
    }

    /// Has all connections that there are pass nothing on any more, and ends none: as where the host behind them has lost
    /// its power.
    pub fn silence(&self) {
        for joined in self.joined.lock().expect("sound").drain(..) {
            joined.is_silent.store(true, Ordering::Relaxed);
        }
    }

    /// Ends all connections that there are.
    pub fn cut(&self) {
        for connection in self.joined.lock().expect("sound").drain(..) {
            let _gone = connection.client.shutdown(Shutdown::Both);
        }
    }

    /// Forgets all replicas.
    pub fn clear(&self) {
        self.replicas.lock().expect("sound").clear();
    }
}

fn join(client: TcpStream, server: TcpStream, is_silent: &Arc<AtomicBool>) -> io::Result<()> {
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let is_silent = Arc::clone(is_silent);
        thread::spawn(move || {
            // Whatever ends one direction ends both.
            let _ended = pass_on(&mut from, &mut to, &is_silent);
            if !is_silent.load(Ordering::Relaxed) {
                let _gone = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
            }
        });
    }
    Ok(())
}

/// Passes on what comes, as long as the connection is not silent.
fn pass_on(from: &mut TcpStream, to: &mut TcpStream, is_silent: &AtomicBool) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) if !is_silent.load(Ordering::Relaxed) => to.write_all(&buffer[..read])?,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
