//! The mounted ConfigMap, as a kubelet keeps it: files that lead through the link `..data` into a folder, so that all
//! of them change at once.
//!
//! Guarantees: what is read is of one version of the ConfigMap.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::Error;
use super::entry::Entry;

/// The link to the files of now.
const LINK: &str = "..data";

/// The entry of a member's pod.
#[derive(Debug)]
pub struct MountedConfig {
    /// What it is to be.
    pub entry: Entry,
    /// The whole of etcd's configuration file.
    pub flags: Vec<u8>,
}

/// The entry and flags of `member`; none while it has no entry.
///
/// # Errors
/// Something is there that cannot be read.
pub fn read(folder: &Path, member: &str) -> Result<Option<MountedConfig>, Error> {
    let now = match fs::canonicalize(folder.join(LINK)) {
        Ok(now) => now,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file("follow", &folder.join(LINK))(error)),
    };
    let (entry, flags) = (now.join(format!("{member}.json")), now.join(format!("{member}.yaml")));
    // Either is missing where the folder has just been replaced, too: the next look finds the new one.
    let read = |path: &Path| found(fs::read(path)).map_err(Error::file("read", path));
    let (Some(text), Some(flags)) = (read(&entry)?, read(&flags)?) else { return Ok(None) };
    match serde_json::from_slice(&text) {
        Ok(entry) => Ok(Some(MountedConfig { entry, flags })),
        Err(source) => Err(Error::Content { path: entry, source }),
    }
}

/// A missing file is none.
pub fn found<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
