//! A migration whose API server goes away and comes back.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use kit::bed::Bed;
use kit::wait::eventually;
use serde_json::json;

use super::moving::started;
use super::widgets::Widgets;

/// A way to the API server that can be cut. Its threads end with the process.
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

    pub fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
        for open in self.state.open.lock().expect("sound").drain(..) {
            let _gone = open.shutdown(Shutdown::Both);
        }
    }

    pub fn mend(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
    }
}

fn join(state: &State, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    state.open.lock().expect("sound").extend([client.try_clone()?, server.try_clone()?]);
    for (from, to) in [(client, server), (server, client)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        thread::spawn(move || {
            // Whatever ends one direction ends both.
            let _ended = io::copy(&mut from, &mut to);
            let _gone = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
        });
    }
    Ok(())
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

pub fn an_api_server_that_goes_away_is_waited_for(bed: &Bed) {
    let widgets = Widgets::stored_as_v1alpha1(bed, "unreached", false);
    widgets.make(60);
    widgets.store_as_v1();
    let (kubeconfig, way) = by_another_way(bed, bed.cluster.kubeconfig(), "kubeconfig-that-is-cut");
    let migrator = started(&widgets, &kubeconfig);
    let log = migrator.log().path().to_owned();
    eventually(|| if widgets.in_etcd("v1alpha1").len() <= 50 { Ok(()) } else { Err("it has not got on") });
    way.cut();
    // So often that an object which fails by itself would have been given up.
    eventually(|| match way.state.refused.load(Ordering::SeqCst) {
        refused if refused > 5 => Ok(()),
        refused => Err(format!("it has tried {refused} times")),
    });
    let said = fs::read_to_string(&log).expect("a log");
    assert!(said.contains("waiting for the API server: "), "{said}");
    let left = widgets.in_etcd("v1alpha1").len();
    assert_ne!(left, 0, "it was cut before its end");
    way.mend();
    let code = migrator.code();
    let said = fs::read_to_string(&log).expect("a log");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((widgets.in_etcd("v1alpha1").len(), widgets.stored_versions()), (0, json!(["v1"])), "{said}");
}
