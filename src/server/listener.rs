//! The accept loop: sockets in, one task for each, none waits for another.
//!
//! Guarantees: one more connection than there are [`Places`] waits for its own, and those behind it in the kernel's
//! backlog; an accept that fails for want of file descriptors waits a little instead of spinning; a client that is slow
//! in its handshake holds up no other.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tracing::warn;

use super::places::Places;
use crate::runtime::Metrics;

/// Connections that the kernel keeps while the loop is busy.
const BACKLOG: u32 = 1024;

/// Wait after an accept that failed for want of resources: first, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Binds `address`; port 0 takes a free one. `[::]` means every address of both families, and every address of
/// version 4 on a machine without version 6.
///
/// # Errors
/// When the system refuses the address.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    match listen(address) {
        Err(_) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()))
        }
        bound => bound,
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Hands each connection to `serve`, with the permit that it holds while it is open, until `stop` resolves. One that
/// was still without a permit then is handed over too.
pub(super) async fn accept_until(
    stop: impl Future<Output = ()>,
    listener: &TcpListener,
    places: &Places,
    metrics: &Metrics,
    serve: impl Fn(TcpStream, Option<OwnedSemaphorePermit>),
) {
    let mut stop = pin!(stop);
    let mut wait = BACK_OFF.0;
    loop {
        let accepted = tokio::select! {
            () = &mut stop => return,
            accepted = accept(listener) => accepted,
        };
        match accepted {
            Ok(socket) => {
                wait = BACK_OFF.0;
                metrics.connections.inc();
                tokio::select! {
                    () = &mut stop => return serve(socket, None),
                    permit = places.next() => serve(socket, permit),
                }
            }
            // The client was gone before its turn came: nothing is wrong here.
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                metrics.accept_failures.inc();
                warn!(%error, retry_in = ?wait, "failed to accept a connection");
                tokio::select! {
                    () = &mut stop => return,
                    () = tokio::time::sleep(wait) => {}
                }
                wait = (wait * 2).min(BACK_OFF.1);
            }
        }
    }
}

/// The next connection.
///
/// # Errors
/// When the system has none to give.
pub(super) async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (socket, _client) = listener.accept().await?;
    // Answers are small and written at once: waiting to fill a packet would cost 40 ms (RFC 896).
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotConnected
            | io::ErrorKind::InvalidInput
    )
}
