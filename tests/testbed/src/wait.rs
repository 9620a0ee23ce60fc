//! Waits for what components become, and gives up early when one of them ends.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use crate::{Error, component::Component, process::pause};

/// How often a condition is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(100);
const CONNECT_PATIENCE: Duration = Duration::from_millis(500);

/// When waiting ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    patience: Duration,
    end: Instant,
}

impl Deadline {
    /// So much time from now; more on a machine that is known to be slow, by the factor that `TEST_PATIENCE` has.
    pub(crate) fn after(patience: Duration) -> Self {
        let factor = std::env::var("TEST_PATIENCE").ok().and_then(|factor| factor.parse().ok());
        let patience = patience * factor.unwrap_or(1);
        Self { patience, end: Instant::now() + patience }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

/// Whether a server takes connections there.
pub(crate) fn listens(host: Ipv4Addr, port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddr::from((host, port)), CONNECT_PATIENCE).is_ok()
}

/// Polls until `ready`, the deadline, or the end of a component.
pub(crate) fn wait_for(
    what: &'static str,
    deadline: Deadline,
    components: &mut [&mut Component],
    mut ready: impl FnMut() -> bool,
) -> Result<(), Error> {
    loop {
        let is_ready = ready();
        for component in components.iter_mut() {
            component.check()?;
        }
        if is_ready {
            return Ok(());
        }
        if deadline.is_over() {
            let logs: Vec<String> = components.iter().map(|component| component.tail()).collect();
            return Err(Error::NotReady { what, waited: deadline.patience, logs: logs.join("\n") });
        }
        pause(POLL);
    }
}
