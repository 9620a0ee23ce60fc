//! The packets of the protocol of MySQL and MariaDB.
//!
//! Guarantees: what a server sends is read within its bounds: a packet that is too short is an error.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Error;

/// The longest payload of one packet; what is longer goes on in the next one.
const LONGEST: usize = 0x00ff_ffff;

/// The capabilities that are asked for.
pub mod capability {
    /// A password in the form of 4.1 and later.
    pub const LONG_PASSWORD: u32 = 1;
    /// Flags of columns take two bytes.
    pub const LONG_FLAG: u32 = 4;
    /// A database is named at once.
    pub const CONNECT_WITH_DB: u32 = 8;
    /// The protocol of 4.1.
    pub const PROTOCOL_41: u32 = 0x200;
    /// The connection is encrypted.
    pub const SSL: u32 = 0x800;
    /// The state of the transaction is in each answer.
    pub const TRANSACTIONS: u32 = 0x2000;
    /// The password is proved by a scramble.
    pub const SECURE_CONNECTION: u32 = 0x8000;
    /// A call may have several answers. (Not that a text may have several statements, which is the bit before this one.)
    pub const MULTI_RESULTS: u32 = 0x2_0000;
    /// The same for prepared statements, such as `EXECUTE` of a call.
    pub const PS_MULTI_RESULTS: u32 = 0x4_0000;
    /// Ways to prove who a user is are named.
    pub const PLUGIN_AUTH: u32 = 0x8_0000;
    /// Attributes of the connection are sent.
    pub const CONNECT_ATTRS: u32 = 0x10_0000;
    /// A proof may be longer than 255 bytes.
    pub const PLUGIN_AUTH_LENENC: u32 = 0x20_0000;
}

/// Any stream that packets go over.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Sync> Stream for S {}

/// Packets over a stream.
pub struct Packets {
    stream: Box<dyn Stream>,
    /// The number of the next packet.
    sequence: u8,
    /// What was read ahead, from `begin` on.
    read: Vec<u8>,
    begin: usize,
}

impl Packets {
    /// Over a stream.
    pub fn over(stream: Box<dyn Stream>) -> Self {
        Self { stream, sequence: 0, read: Vec::new(), begin: 0 }
    }

    /// The same over the encrypted stream that is made of this one.
    pub fn into_stream(self) -> (Box<dyn Stream>, u8) {
        (self.stream, self.sequence)
    }

    /// Goes on with a number.
    pub fn resume(stream: Box<dyn Stream>, sequence: u8) -> Self {
        Self { sequence, ..Self::over(stream) }
    }

    /// Begins the packets of a command.
    pub const fn begin_command(&mut self) {
        self.sequence = 0;
    }

    /// Sends a payload, at once: a server that waits for the rest of it waits for the acknowledgement of its network too.
    pub async fn send(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(length + 4);
        let mut payload = parts.iter().copied().flatten().copied();
        let mut left = length;
        loop {
            let size = left.min(LONGEST);
            let header = u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
            bytes.extend([header[0], header[1], header[2], self.sequence]);
            bytes.extend(payload.by_ref().take(size));
            self.sequence = self.sequence.wrapping_add(1);
            left -= size;
            if size < LONGEST {
                break;
            }
        }
        self.stream.write_all(&bytes).await?;
        self.stream.flush().await?;
        Ok(())
    }

    /// The next payload.
    pub async fn receive(&mut self) -> Result<Vec<u8>, Error> {
        let mut payload = Vec::new();
        loop {
            self.fill(4).await?;
            let header = &self.read[self.begin..self.begin + 4];
            let size = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
            self.sequence = header[3].wrapping_add(1);
            self.begin += 4;
            self.fill(size).await?;
            payload.extend_from_slice(&self.read[self.begin..self.begin + size]);
            self.begin += size;
            if size < LONGEST {
                return Ok(payload);
            }
        }
    }

    /// Reads until so many bytes are there.
    async fn fill(&mut self, size: usize) -> Result<(), Error> {
        if self.begin > 0 && self.begin == self.read.len() {
            self.read.clear();
            self.begin = 0;
        }
        while self.read.len() - self.begin < size {
            if self.begin > LONGEST {
                self.read.drain(..self.begin);
                self.begin = 0;
            }
            self.read.reserve(16 * 1024);
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(Error::Broken(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(())
    }
}

/// Reads the fields of a payload.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Error::Unreadable)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number of so many bytes, the lowest first.
    pub fn number(&mut self, count: usize) -> Result<u64, Error> {
        Ok(self.bytes(count)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A number that says how long it is; nothing where it stands for NULL.
    pub fn length(&mut self) -> Result<Option<u64>, Error> {
        Ok(Some(match self.number(1)? {
            0xfb => return Ok(None),
            0xfc => self.number(2)?,
            0xfd => self.number(3)?,
            0xfe => self.number(8)?,
            0xff => return Err(Error::Unreadable),
            small => small,
        }))
    }

    /// A value behind its length; nothing where it is NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Error> {
        match self.length()? {
            Some(length) => self.bytes(usize::try_from(length).map_err(|_| Error::Unreadable)?).map(Some),
            None => Ok(None),
        }
    }

    /// The bytes before a zero.
    pub fn until_zero(&mut self) -> Result<&'a [u8], Error> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Error::Unreadable)?;
        let taken = self.bytes(end)?;
        self.bytes(1)?;
        Ok(taken)
    }
}

/// What the server says after a statement, or before another way to prove who a user is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How many rows were changed.
    pub affected: u64,
    /// The state of the session, as bits.
    pub status: u16,
    /// How many warnings there are.
    pub warnings: u16,
}

impl Done {
    /// Of an OK packet.
    pub fn of_ok(payload: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields(payload.get(1..).ok_or(Error::Unreadable)?);
        let affected = fields.length()?.unwrap_or_default();
        fields.length()?;
        Ok(Self { affected, status: short(&mut fields)?, warnings: short(&mut fields)? })
    }

    /// Of an EOF packet, which ends rows.
    pub fn of_eof(payload: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields(payload.get(1..).ok_or(Error::Unreadable)?);
        let warnings = short(&mut fields)?;
        Ok(Self { affected: 0, status: short(&mut fields)?, warnings })
    }
}

fn short(fields: &mut Fields<'_>) -> Result<u16, Error> {
    u16::try_from(fields.number(2)?).map_err(|_| Error::Unreadable)
}

/// The error of an ERR packet.
pub fn refusal(payload: &[u8]) -> Error {
    let read = || -> Result<Error, Error> {
        let mut fields = Fields(payload.get(1..).ok_or(Error::Unreadable)?);
        let number = short(&mut fields)?;
        let state = if fields.0.first() == Some(&b'#') {
            fields.bytes(1)?;
            Some(String::from_utf8_lossy(fields.bytes(5)?).into_owned())
        } else {
            None
        };
        Ok(Error::Refused { number, state, message: String::from_utf8_lossy(fields.0).into_owned() })
    };
    read().unwrap_or(Error::Unreadable)
}
