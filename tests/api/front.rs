//! What a Service does for replicas, and a network that loses connections: one address before several.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// An address behind which the first replica that takes a connection gets it. Its threads end with the process.
pub struct Front {
    pub port: u16,
    replicas: Arc<Mutex<Vec<SocketAddr>>>,
    joined: Arc<Mutex<Vec<TcpStream>>>,
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
                    kept.lock().expect("sound").push(client.try_clone().expect("a connection"));
                    join(client, server).expect("a connection of two ends");
                }
            }
        });
        Self { port, replicas, joined }
    }

    pub fn add(&self, replica: SocketAddr) {
        self.replicas.lock().expect("sound").push(replica);
    }

    /// Ends all connections that there are.
    pub fn cut(&self) {
        for connection in self.joined.lock().expect("sound").drain(..) {
            let _gone = connection.shutdown(Shutdown::Both);
        }
    }

    /// Forgets all replicas.
    pub fn clear(&self) {
        self.replicas.lock().expect("sound").clear();
    }
}

fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        thread::spawn(move || {
            // Whatever ends one direction ends both.
            let _ended = io::copy(&mut from, &mut to);
            let _gone = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
        });
    }
    Ok(())
}
