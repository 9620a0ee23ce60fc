//! A client of MySQL and MariaDB, for one session.
//!
//! Guarantees: the server takes one statement in a text and refuses more, so that a text that was cut wrongly is an error of
//! syntax of which nothing has run. The session is otherwise what the client of the engine opens: no flag of it changes how
//! SQL is read (`IGNORE_SPACE`) or what it counts (`FOUND_ROWS`). A session whose answer was not read to its end takes no
//! other statement.
//! Never: reads a file for LOAD DATA LOCAL.

mod greeting;
mod packets;
mod tls;

use std::fmt;

use tokio::net::{TcpStream, UnixStream};

use greeting::Greeting;
use packets::{Done, Fields, Packets, refusal};

/// The commands that a text follows: it runs, or it is only read.
const QUERY: u8 = 3;
const PREPARE: u8 = 0x16;
/// The command that ends what was prepared. It has no answer.
const CLOSE: u8 = 0x19;
/// The bit of the state that says that another answer follows.
const MORE: u16 = 8;
/// The bits of the state that say that a transaction is open, and that each statement is one of its own.
const IN_TRANSACTION: u16 = 1;
const AUTOCOMMIT: u16 = 2;

/// Which server is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The connection is not encrypted.
    Plain,
    /// Any.
    Any,
    /// One with a certificate of the authority.
    Authority,
    /// One with a certificate of the authority for this host.
    Host,
}

/// How a server is reached.
#[derive(Clone)]
pub struct Options {
    /// The host, or the path of a socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The user.
    pub user: String,
    /// The password. Empty: none.
    pub password: String,
    /// The database.
    pub database: String,
    /// What the server shows of this client.
    pub application: String,
    /// Which server is trusted.
    pub trust: Trust,
    /// The certificates of the authority, as PEM.
    pub authority: Option<Vec<u8>>,
    /// The certificate of the client and its key, as PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why something failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection.
    #[error("the connection broke off: {0}")]
    Broken(#[from] std::io::Error),
    /// The answer is none of the protocol.
    #[error("the answer was not understood")]
    Unreadable,
    /// The encryption.
    #[error("{0}")]
    Tls(String),
    /// A password is asked for that would be read by others.
    #[error("the server asks for the password on an encrypted connection: set tls to Require")]
    WantsEncryption,
    /// The server wants to know who the user is in a way that is not there.
    #[error("the server asks for the authentication plugin {0}, which gatehouse does not have")]
    Plugin(String),
    /// The server refused.
    #[error("{message}")]
    Refused {
        /// Its number.
        number: u16,
        /// The SQLSTATE.
        state: Option<String>,
        /// What the server says.
        message: String,
    },
}

/// What became of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// How many answers there were.
    pub count: u32,
    /// How many rows they had.
    pub rows: u64,
    /// How many rows the last one changed.
    pub affected: u64,
    /// How many warnings there are of the last one.
    pub warnings: u16,
}

/// A row, as texts.
pub type Row = Vec<Option<String>>;

/// A session.
pub struct Session {
    packets: Packets,
    /// An answer was not read to its end.
    is_amid: bool,
    /// The state of the session, as the last answer had it.
    status: u16,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("is_amid", &self.is_amid).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached, is not trusted, or does not let the user in.
    pub async fn open(options: &Options) -> Result<Self, Error> {
        let is_local = options.host.starts_with('/');
        let mut packets = if is_local {
            Packets::over(Box::new(UnixStream::connect(&options.host).await?))
        } else {
            let stream = TcpStream::connect((options.host.as_str(), options.port)).await?;
            stream.set_nodelay(true)?;
            Packets::over(Box::new(stream))
        };
        let greeting = Greeting::of(&packets.receive().await?)?;
        let is_encrypted = options.trust != Trust::Plain;
        if is_encrypted {
            if !greeting.encrypts() {
                return Err(Error::Tls("the server does not encrypt".to_owned()));
            }
            packets.send(&[&greeting.request_encryption()]).await?;
            let (stream, sequence) = packets.into_stream();
            packets = Packets::resume(tls::encrypted(stream, options).await?, sequence);
        }
        greeting.answer(&mut packets, options, is_encrypted, is_encrypted || is_local).await?;
        let mut session = Self { packets, is_amid: false, status: 0 };
        session.run("SET NAMES utf8mb4").await?;
        Ok(session)
    }

    /// Whether each statement is a transaction of its own, and none is open.
    #[must_use]
    pub const fn commits_by_itself(&self) -> bool {
        self.status & (IN_TRANSACTION | AUTOCOMMIT) == AUTOCOMMIT
    }

    /// Whether a transaction is open, as the last answer has it.
    #[must_use]
    pub const fn is_in_transaction(&self) -> bool {
        self.status & IN_TRANSACTION != 0
    }

    /// Runs a text, which is one statement.
    ///
    /// # Errors
    /// The server refused it, or the connection broke off.
    pub async fn run(&mut self, text: &str) -> Result<Answers, Error> {
        self.ask(text, |_| Ok(())).await
    }

    /// The rows that a statement returns, as texts.
    ///
    /// # Errors
    /// The server refused it, or the connection broke off.
    pub async fn rows(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        self.ask(text, |payload| {
            let mut fields = Fields(payload);
            let mut row = Vec::new();
            while !fields.0.is_empty() {
                row.push(fields.value()?.map(|value| String::from_utf8_lossy(value).into_owned()));
            }
            rows.push(row);
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    /// Has the server read a text, of which nothing runs.
    ///
    /// # Errors
    /// The server cannot read it, or the connection broke off.
    pub async fn prepare(&mut self, text: &str) -> Result<(), Error> {
        self.begin(PREPARE, text).await?;
        let first = self.packets.receive().await?;
        if first.first() == Some(&0xff) {
            return Err(self.refused(&first));
        }
        let mut fields = Fields(first.get(1..).unwrap_or_default());
        let (id, columns, parameters) = (fields.bytes(4)?, fields.number(2)?, fields.number(2)?);
        for count in [parameters, columns].into_iter().filter(|count| *count > 0) {
            for _ in 0..=count {
                self.packets.receive().await?;
            }
        }
        self.packets.begin_command();
        self.packets.send(&[&[CLOSE], id]).await?;
        self.is_amid = false;
        Ok(())
    }

    async fn begin(&mut self, command: u8, text: &str) -> Result<(), Error> {
        if self.is_amid {
            let why = "the answer to the statement before was not read to its end";
            return Err(Error::Broken(std::io::Error::other(why)));
        }
        self.is_amid = true;
        self.packets.begin_command();
        self.packets.send(&[&[command], text.as_bytes()]).await
    }

    async fn ask(
        &mut self,
        text: &str,
        mut take: impl FnMut(&[u8]) -> Result<(), Error> + Send,
    ) -> Result<Answers, Error> {
        self.begin(QUERY, text).await?;
        let mut answers = Answers::default();
        loop {
            let first = self.packets.receive().await?;
            let done = match first.first() {
                Some(0) => Done::of_ok(&first)?,
                Some(0xff) => return Err(self.refused(&first)),
                // The server asks for a file, and gets an empty one.
                Some(0xfb) => {
                    self.packets.send(&[]).await?;
                    continue;
                }
                Some(_) => match self.table(&first, &mut answers, &mut take).await? {
                    Ok(done) => done,
                    Err(payload) => return Err(self.refused(&payload)),
                },
                None => return Err(Error::Unreadable),
            };
            answers.count += 1;
            answers.affected = done.affected;
            answers.warnings = done.warnings;
            self.status = done.status;
            if done.status & MORE == 0 {
                self.is_amid = false;
                return Ok(answers);
            }
        }
    }

    fn refused(&mut self, payload: &[u8]) -> Error {
        let error = refusal(payload);
        self.is_amid = matches!(error, Error::Unreadable);
        error
    }

    /// Reads a table: its columns and rows, up to what ends it. The inner error is the payload of an error in between.
    async fn table(
        &mut self,
        first: &[u8],
        answers: &mut Answers,
        take: &mut (impl FnMut(&[u8]) -> Result<(), Error> + Send),
    ) -> Result<Result<Done, Vec<u8>>, Error> {
        let columns = Fields(first).length()?.ok_or(Error::Unreadable)?;
        for _ in 0..=columns {
            self.packets.receive().await?;
        }
        loop {
            let payload = self.packets.receive().await?;
            match payload.first() {
                Some(0xfe) if payload.len() < 9 => return Ok(Ok(Done::of_eof(&payload)?)),
                Some(0xff) => return Ok(Err(payload)),
                _ => {
                    answers.rows += 1;
                    take(&payload)?;
                }
            }
        }
    }
}

/// A text as a literal, which means the same in every mode and character set of a session.
#[must_use]
pub fn literal(text: &str) -> String {
    use std::fmt::Write as _;
    let mut literal = String::with_capacity(12 + 2 * text.len());
    literal.push_str("_utf8mb4 X'");
    for byte in text.bytes() {
        // Writing to a string does not fail.
        let _written = write!(literal, "{byte:02x}");
    }
    literal.push('\'');
    literal
}
