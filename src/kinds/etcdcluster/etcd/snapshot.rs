//! A member's database as a stream, checked against the hash that etcd ends it with.

use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};

use super::client::{Answers, Client, Rpc};
use super::error::Error;

/// Bytes of the hash at the end.
const TRAILER: usize = 32;
/// What the length of a database is a multiple of.
const SECTOR: u64 = 512;

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct SnapshotRequest {}

#[derive(Clone, PartialEq, prost::Message)]
struct Piece {
    #[prost(uint64, tag = "2")]
    remaining: u64,
    #[prost(bytes = "vec", tag = "3")]
    data: Vec<u8>,
    #[prost(string, tag = "4")]
    version: String,
}

impl Rpc for SnapshotRequest {
    type Answer = Piece;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Snapshot";
    const DOING: &'static str = "take a snapshot";
}

/// A snapshot that is not whole, or not what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The stream broke.
    #[error(transparent)]
    Call(#[from] Error),
    /// The stream ended early, or has no hash at its end.
    #[error("the snapshot from {endpoint} ended after {size} bytes with {remaining} to come")]
    Incomplete {
        /// The member's URL.
        endpoint: String,
        /// Bytes that came.
        size: u64,
        /// Bytes that had been announced beyond them.
        remaining: u64,
    },
    /// The hash at its end is another than that of what came before.
    #[error("the snapshot from {endpoint} does not have the sha256 that it ends with")]
    Corrupt {
        /// The member's URL.
        endpoint: String,
    },
}

/// What is known of a snapshot that came whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// Bytes of the whole, the hash at its end among them.
    pub size: u64,
    /// The hash of what comes before it.
    pub sha256: [u8; 32],
    /// Version of the database's format, such as `3.6.0`. Since 3.6; empty before.
    pub storage_version: String,
}

/// A snapshot as it comes.
#[derive(Debug)]
pub struct Snapshot {
    answers: Answers<Piece>,
    endpoint: String,
    patience: Duration,
    check: Check,
    remaining: u64,
    storage_version: String,
    seal: Option<Seal>,
}

impl Client {
    /// Begins a snapshot of the member's database.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn snapshot(&self) -> Result<Snapshot, Error> {
        let answers = self.stream(SnapshotRequest {}, false, self.limits.piece).await?;
        Ok(Snapshot {
            answers,
            endpoint: self.endpoint().to_owned(),
            patience: self.limits.piece,
            check: Check::new(),
            remaining: 0,
            storage_version: String::new(),
            seal: None,
        })
    }
}

impl Snapshot {
    /// The next bytes of the file, the hash at its end among them, as `etcdutl snapshot restore` wants it; none when
    /// all have come, and only if they are what the member sent.
    ///
    /// # Errors
    /// See [`SnapshotError`]. What came so far is worth nothing then.
    pub async fn piece(&mut self) -> Result<Option<Vec<u8>>, SnapshotError> {
        if let Some(piece) = self.answers.next(self.patience).await? {
            self.remaining = piece.remaining;
            self.storage_version = piece.version;
            self.check.update(&piece.data);
            return Ok(Some(piece.data));
        }
        let size = self.check.size;
        let endpoint = || self.endpoint.clone();
        if self.remaining > 0 || !is_sealed(size) {
            return Err(SnapshotError::Incomplete { endpoint: endpoint(), size, remaining: self.remaining });
        }
        let Some(sha256) = self.check.clone().finish() else {
            return Err(SnapshotError::Corrupt { endpoint: endpoint() });
        };
        self.seal = Some(Seal { size, sha256, storage_version: self.storage_version.clone() });
        Ok(None)
    }

    /// What is known of it, once all has come.
    #[must_use]
    pub const fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }
}

/// Whether a stream of so many bytes may be a database and the hash of it. One of nothing but a hash is none.
const fn is_sealed(size: u64) -> bool {
    size > SECTOR && size % SECTOR == TRAILER as u64
}

/// Hashes all but the last bytes, which are what the hash has to be.
#[derive(Clone)]
struct Check {
    hash: Context,
    last: Vec<u8>,
    size: u64,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Check").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Check {
    fn new() -> Self {
        Self { hash: Context::new(&SHA256), last: Vec::new(), size: 0 }
    }

    fn update(&mut self, data: &[u8]) {
        self.size += data.len() as u64;
        self.last.extend_from_slice(data);
        let known = self.last.len().saturating_sub(TRAILER);
        self.hash.update(&self.last[..known]);
        self.last.drain(..known);
    }

    /// The hash, if it is what the last bytes say.
    fn finish(self) -> Option<[u8; 32]> {
        let said = <[u8; TRAILER]>::try_from(self.last).ok()?;
        (self.hash.finish().as_ref() == said).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::digest::digest;

    fn sealed(data: &[u8]) -> Vec<u8> {
        [data, digest(&SHA256, data).as_ref()].concat()
    }

    fn check(file: &[u8], pieces: usize) -> Option<[u8; 32]> {
        let mut check = Check::new();
        file.chunks(pieces).for_each(|piece| check.update(piece));
        check.finish()
    }

    #[test]
    fn the_hash_is_found_however_the_file_is_cut() {
        let file = sealed(&[7; 1024]);
        for pieces in [1, 31, 32, 33, 512, 4096] {
            assert_eq!(check(&file, pieces).as_ref().map(|hash| &hash[..]), Some(&file[1024..]), "{pieces}");
        }
    }

    #[test]
    fn a_hash_of_nothing_is_no_snapshot() {
        let nothing = sealed(&[]);
        assert!(check(&nothing, 7).is_some() && !is_sealed(nothing.len() as u64));
        assert!(is_sealed(sealed(&[0; 1024]).len() as u64));
        assert!(!is_sealed(1024) && !is_sealed(1057) && !is_sealed(0));
    }

    #[test]
    fn a_changed_byte_and_a_lost_end_are_noticed() {
        let file = sealed(&[7; 1024]);
        for changed in [0, 1023, 1024, file.len() - 1] {
            let mut file = file.clone();
            file[changed] ^= 1;
            assert_eq!(check(&file, 100), None, "{changed}");
        }
        assert_eq!(check(&file[..1024], 100), None);
        assert_eq!(check(&file[..20], 100), None);
    }
}
