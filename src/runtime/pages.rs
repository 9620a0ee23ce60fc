//! What `/metrics` shows, where another process has a part in it.
//!
//! Guarantees: an answer in time, with what there is: a process that says nothing delays a scrape by [`PATIENCE`] and
//! takes nothing from the rest.

use std::fmt;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::metrics::Page;

/// How long a scrape waits for the other process.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the other process's page is wanted.
pub type Wanted = oneshot::Sender<String>;

/// The page of this process, and that of another one. Clones share them.
#[derive(Clone, Debug)]
pub struct Pages {
    own: Page,
    other: Option<mpsc::Sender<Wanted>>,
}

impl Pages {
    /// That of this process.
    #[must_use]
    pub const fn of(own: Page) -> Self {
        Self { own, other: None }
    }

    /// That of this process, and one that is asked for there.
    #[must_use]
    pub fn with_another(own: Page) -> (Self, mpsc::Receiver<Wanted>) {
        let (other, asked) = mpsc::channel(1);
        (Self { own, other: Some(other) }, asked)
    }

    /// All of it, in the `OpenMetrics` text format.
    ///
    /// # Errors
    /// As [`Page::text`].
    pub async fn text(&self) -> Result<String, fmt::Error> {
        let other = timeout(PATIENCE, self.ask()).await;
        self.own.text_and(other.ok().flatten().as_deref().unwrap_or_default())
    }

    async fn ask(&self) -> Option<String> {
        let (wanted, page) = oneshot::channel();
        self.other.as_ref()?.send(wanted).await.ok()?;
        page.await.ok()
    }
}
