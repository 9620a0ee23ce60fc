//! A member's volume: what is on it, and its marker.
//!
//! Guarantees: a marker is there as a whole or not at all, whenever the machine loses its power.
//! Assumes: nothing else writes the volume meanwhile; one pod at a time mounts it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::Error;
use super::config::found;
use super::decision::{Data, Volume};
use super::marker::Marker;
use super::work::replace;

/// The marker's file.
const MARK: &str = "gatehouse.json";
/// Etcd's folder, that of its flag `data-dir`.
const DATA: &str = "data";
/// The folder that etcd keeps a member in.
pub const MEMBER: &str = "data/member";
/// The folder that etcd keeps a member's log in.
const LOG: &str = "data/member/wal";
/// What the files of the log end in. Etcd itself goes by them when it asks whether it has been there before.
const LOG_FILE: &str = "wal";
/// Etcd wants its folders for itself alone.
pub const PRIVATE: u32 = 0o700;

/// What is on the volume that is mounted at `root`.
pub fn read(root: &Path) -> Result<Volume, Error> {
    let path = root.join(MARK);
    let marker = match found(fs::read(&path)).map_err(Error::file("read", &path))? {
        Some(text) => Some(serde_json::from_slice(&text).map_err(|source| Error::Content { path, source })?),
        None => None,
    };
    Ok(Volume { marker, data: data(root)? })
}

fn data(root: &Path) -> Result<Data, Error> {
    let (member, log) = (root.join(MEMBER), root.join(LOG));
    if names(&member)?.is_none() {
        return Ok(Data::Empty);
    }
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == LOG_FILE);
    let has_log = names(&log)?.is_some_and(|files| files.iter().any(is_log));
    Ok(if has_log { Data::Log } else { Data::Folder })
}

/// What is in a folder; none where there is no folder.
fn names(folder: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
    let read = || -> io::Result<_> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    found(read()).map_err(Error::file("list", folder))
}

/// Writes the marker.
pub fn write_marker(root: &Path, marker: &Marker) -> Result<(), Error> {
    let path = root.join(MARK);
    let text = serde_json::to_vec(marker).map_err(|source| Error::Content { path: path.clone(), source })?;
    replace(&path, |file| {
        file.write_all(&text)?;
        file.sync_all()
    })?;
    settle(root)
}

/// Makes the folder that etcd keeps a member in, so that one that is missing was taken away.
pub fn make_folder(root: &Path) -> Result<(), Error> {
    let path = root.join(MEMBER);
    let made = DirBuilder::new().recursive(true).mode(PRIVATE).create(&path);
    made.map_err(Error::file("create", &path))?;
    settle(&root.join(DATA))?;
    settle(root)
}

/// Waits until the names in a folder are on the disk.
pub fn settle(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::file("sync", folder))
}
