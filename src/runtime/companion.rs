//! A second process of this program, whose life hangs on this one's.
//!
//! What works in it may crash, be killed or take all memory there is, and this process serves on.
//!
//! ```text
//!   owner ── a line of JSON ──▶ standard input   companion
//!         ◀── a line of JSON ── standard output
//!         ─── end of input ───▶ told to end, whatever ended the owner: kill -9 too
//! ```
//!
//! Guarantees: a companion never outlives its owner for longer than it takes to end well; one that takes too long to
//! end is killed; a terminal's Ctrl-C reaches the owner alone. Both log to the same standard error.

use std::ffi::OsStr;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, Lines, Stdin};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The companion, as its owner holds it. Dropped, it is killed.
#[derive(Debug)]
pub struct Companion {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Companion {
    /// Starts this program again, with these words.
    ///
    /// # Errors
    /// When the system starts no process.
    pub fn start(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("the pipes of a companion are gone"));
        };
        Ok(Self { process, input, output: lines(output) })
    }

    /// Tells it something.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn tell(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.input.write_all(&line(message)?).await
    }

    /// What it says next; none when it has ended. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// When it says what is no such message.
    pub async fn hear<Message: DeserializeOwned>(&mut self) -> io::Result<Option<Message>> {
        next(&mut self.output).await
    }

    /// How it ended, once it says nothing more.
    ///
    /// # Errors
    /// When the system does not know.
    pub async fn ended(mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Tells it to end, and kills it when that takes longer than `patience`; whether it ended well.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub async fn end(self, patience: Duration) -> io::Result<bool> {
        let Self { mut process, input, output } = self;
        drop(input);
        let ended = timeout(patience, process.wait()).await;
        drop(output);
        match ended {
            Ok(status) => Ok(status?.success()),
            Err(_) => process.kill().await.map(|()| false),
        }
    }
}

/// The owner, as its companion hears it.
#[derive(Debug)]
pub struct Owner(Lines<BufReader<Stdin>>);

impl Owner {
    /// The one that started this process as its companion.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self(lines(tokio::io::stdin()))
    }

    /// What it says next; none when this process has to end.
    ///
    /// # Errors
    /// When it says what is no such message.
    pub async fn hear<Message: DeserializeOwned>(&mut self) -> io::Result<Option<Message>> {
        next(&mut self.0).await
    }
}

/// Tells the owner of this process something.
///
/// # Errors
/// When it has ended.
pub async fn tell_owner(message: &impl Serialize) -> io::Result<()> {
    let mut output = tokio::io::stdout();
    output.write_all(&line(message)?).await?;
    output.flush().await
}

fn lines<Input: AsyncRead>(input: Input) -> Lines<BufReader<Input>> {
    BufReader::new(input).lines()
}

fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

async fn next<Input, Message>(lines: &mut Lines<BufReader<Input>>) -> io::Result<Option<Message>>
where
    Input: AsyncRead + Unpin,
    Message: DeserializeOwned,
{
    let line = lines.next_line().await?;
    line.map(|line| serde_json::from_str(&line).map_err(Into::into)).transpose()
}
