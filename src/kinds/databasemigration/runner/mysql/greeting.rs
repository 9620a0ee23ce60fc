//! How a session begins: the greeting of the server, and the proof of who the user is.
//!
//! Guarantees: a password leaves this process in clear text only over an encrypted connection or a Unix socket.
//! The session has the capabilities that the client of the engine has, but for several statements in one text.

use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use super::packets::{Fields, Packets, capability, refusal};
use super::{Error, Options};

/// The number of `utf8mb4_general_ci`, which all versions know.
const CHARSET: u8 = 45;
/// The longest packet that this client reads: the most that a server can be set to.
const LONGEST: u32 = 1 << 30;

/// What each session asks for.
const CAPABILITIES: u32 = capability::LONG_PASSWORD
    | capability::LONG_FLAG
    | capability::CONNECT_WITH_DB
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::MULTI_RESULTS
    | capability::PS_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC;

/// What a server says first.
#[derive(Clone, Debug)]
pub struct Greeting {
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: String,
}

impl Greeting {
    /// Reads the first packet.
    pub fn of(payload: &[u8]) -> Result<Self, Error> {
        match payload.first() {
            Some(10) => {}
            Some(0xff) => return Err(refusal(payload)),
            _ => return Err(Error::Unreadable),
        }
        let mut fields = Fields(payload.get(1..).unwrap_or_default());
        fields.until_zero()?;
        fields.bytes(4)?;
        let mut nonce = fields.bytes(8)?.to_vec();
        fields.bytes(1)?;
        let low = fields.number(2)?;
        fields.bytes(3)?;
        let high = fields.number(2)?;
        let length = usize::try_from(fields.number(1)?).unwrap_or_default();
        fields.bytes(10)?;
        nonce.extend(fields.bytes(length.saturating_sub(8).max(13).min(fields.0.len()))?);
        nonce.truncate(20);
        // An old server ends the name without a zero.
        let name = fields.until_zero().unwrap_or(fields.0);
        Ok(Self {
            capabilities: u32::try_from(low | high << 16).unwrap_or_default(),
            nonce,
            plugin: String::from_utf8_lossy(name).into_owned(),
        })
    }

    /// Whether the server can encrypt.
    pub const fn encrypts(&self) -> bool {
        self.capabilities & capability::SSL != 0
    }

    const fn asked(&self, is_encrypted: bool) -> u32 {
        let ssl = if is_encrypted { capability::SSL } else { 0 };
        (CAPABILITIES & self.capabilities) | ssl
    }

    /// The packet after which the connection is encrypted.
    pub fn request_encryption(&self) -> Vec<u8> {
        header(self.asked(true))
    }

    /// Proves who the user is. `is_private`: no other can read what is sent.
    pub async fn answer(
        mut self,
        packets: &mut Packets,
        options: &Options,
        is_encrypted: bool,
        is_private: bool,
    ) -> Result<(), Error> {
        let asked = self.asked(is_encrypted);
        // Of what the server asks first the user may know nothing: the server then asks for what is the user's.
        let proof = match self.proof(&options.password, is_private) {
            Err(Error::Plugin(_)) => Vec::new(),
            proof => proof?,
        };
        let mut payload = header(asked);
        payload.extend(options.user.as_bytes());
        payload.push(0);
        put(&mut payload, &proof);
        payload.extend(options.database.as_bytes());
        payload.push(0);
        payload.extend(self.plugin.as_bytes());
        payload.push(0);
        if asked & capability::CONNECT_ATTRS != 0 {
            let mut attributes = Vec::new();
            for text in ["_client_name", "gatehouse", "program_name", &options.application] {
                put(&mut attributes, text.as_bytes());
            }
            put(&mut payload, &attributes);
        }
        packets.send(&[&payload]).await?;
        loop {
            let payload = packets.receive().await?;
            match payload.split_first() {
                Some((0, _)) => return Ok(()),
                Some((0xff, _)) => return Err(refusal(&payload)),
                // Another way is asked for.
                Some((0xfe, rest)) if !rest.is_empty() => {
                    let mut fields = Fields(rest);
                    self.plugin = String::from_utf8_lossy(fields.until_zero()?).into_owned();
                    self.nonce = fields.0.to_vec();
                    self.nonce.truncate(20);
                    let proof = self.proof(&options.password, is_private)?;
                    packets.send(&[&proof]).await?;
                }
                // The server knew the scramble, and goes on.
                Some((1, [3])) => {}
                Some((1, [4])) => packets.send(&[&clear(&options.password, is_private)?]).await?,
                _ => return Err(Error::Unreadable),
            }
        }
    }

    fn proof(&self, password: &str, is_private: bool) -> Result<Vec<u8>, Error> {
        match self.plugin.as_str() {
            "mysql_native_password" | "" => {
                Ok(scramble(&SHA1_FOR_LEGACY_USE_ONLY, password, |stage| [&self.nonce, stage].concat()))
            }
            "caching_sha2_password" => Ok(scramble(&SHA256, password, |stage| [stage, &self.nonce].concat())),
            "sha256_password" if password.is_empty() => Ok(vec![0]),
            "sha256_password" => clear(password, is_private),
            other => Err(Error::Plugin(other.to_owned())),
        }
    }
}

/// What a packet begins with whose capabilities are these.
fn header(asked: u32) -> Vec<u8> {
    let mut payload = Vec::with_capacity(256);
    payload.extend(asked.to_le_bytes());
    payload.extend(LONGEST.to_le_bytes());
    payload.push(CHARSET);
    payload.extend([0; 23]);
    payload
}

/// A value behind its length.
fn put(payload: &mut Vec<u8>, value: &[u8]) {
    match u16::try_from(value.len()) {
        Ok(length @ ..=250) => payload.push(length.to_le_bytes()[0]),
        length => {
            payload.push(0xfc);
            payload.extend(length.unwrap_or(u16::MAX).to_le_bytes());
        }
    }
    payload.extend(&value[..value.len().min(usize::from(u16::MAX))]);
}

/// The password, where no other can read it.
fn clear(password: &str, is_private: bool) -> Result<Vec<u8>, Error> {
    if !is_private {
        return Err(Error::WantsEncryption);
    }
    Ok([password.as_bytes(), &[0]].concat())
}

/// The hash of the password, mixed with the hash of what only the server and its user know.
fn scramble(algorithm: &'static Algorithm, password: &str, mixed: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let hash = |bytes: &[u8]| digest(algorithm, bytes).as_ref().to_vec();
    let first = hash(password.as_bytes());
    let mask = hash(&mixed(&hash(&first)));
    first.iter().zip(mask).map(|(one, other)| one ^ other).collect()
}
