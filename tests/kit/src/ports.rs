//! Ports for servers that have to know theirs before they start.

use std::net::TcpListener;
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port at which nothing listens, of those that the system gives to no client by itself
/// (`net.ipv4.ip_local_port_range` begins at 32768): a server that starts in a moment, or again, finds it free.
///
/// # Errors
/// None of them is free.
pub fn free_port() -> Result<u16, String> {
    const PORTS: Range<u32> = 20_000..30_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Other processes choose as well, and begin elsewhere.
    let first = process::id().wrapping_mul(97);
    for _ in PORTS {
        let nth = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        let port = u16::try_from(PORTS.start + nth).map_err(|error| error.to_string())?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(format!("no port of {PORTS:?} is free"))
}
