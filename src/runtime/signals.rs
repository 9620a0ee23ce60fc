//! The signals that ask the process to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, as a kubelet sends it, and SIGINT, as a terminal does.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes both signals over from the system's default, which would end the process at once.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one and names it.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
