//! The folder with the backups of a cluster.
//!
//! Guarantees: each step is on the disk before the next one begins, so that whatever happens in between leaves a whole
//! backup, or files that a later attempt knows for leftovers of the same EtcdCluster: their names carry its uid. What an
//! attempt may still be at is not deleted, whether or not the lock holds on other nodes.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{Context, Digest, SHA256};

use super::manifest::{MANIFEST, Manifest, SNAPSHOT};
use super::{Error, database};
use crate::runtime::blocking;

/// How the name of an unfinished file ends.
const PART: &str = ".part";
/// The file that is locked.
const LOCK: &str = "gatehouse.lock";
/// How long after the last write to a file no attempt is at it any more: a Job ends after an hour.
const ABANDONED: Duration = Duration::from_hours(2);
/// Between two attempts to lock it.
const POLL: Duration = Duration::from_millis(500);
/// A backup holds all that etcd knows: it is for the owner and the group of the volume.
const FILE: u32 = 0o640;
/// The same of the folder.
const FOLDER: u32 = 0o750;
/// Bytes of the hash that a snapshot ends with.
const HASH: u64 = 32;
/// Bytes that are read back at a time.
const STEP: usize = 1 << 20;

/// The folder with the backups of a cluster.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    uid: String,
    /// While it is held no other backup runs here: on this node, and on others where the file system tells them.
    lock: File,
}

impl Folder {
    /// The folder for the EtcdCluster of that uid; made where it is not there, and waited for while another client
    /// takes a backup into it.
    pub async fn open(path: &Path, uid: &str) -> Result<Self, Error> {
        let made = DirBuilder::new().recursive(true).mode(FOLDER).create(path);
        made.map_err(Error::file("create", path))?;
        let at = path.join(LOCK);
        let options = OpenOptions::new().create(true).write(true).truncate(false).mode(FILE).open(&at);
        let lock = options.map_err(Error::file("open", &at))?;
        let mut is_told = false;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::info!(folder = %path.display(), "another backup is being taken into it");
                    }
                    tokio::time::sleep(POLL).await;
                }
                Err(TryLockError::Error(error)) => {
                    tracing::warn!(folder = %path.display(), %error, "it is used without a lock");
                    break;
                }
            }
        }
        Ok(Self { path: path.to_owned(), uid: uid.to_owned(), lock })
    }

    /// Deletes what earlier attempts of the same EtcdCluster have left, once none can be at it any more.
    pub fn tidy(&self) -> Result<(), Error> {
        let now = self.now()?;
        let (data, manifest) = (self.part(SNAPSHOT), self.part(MANIFEST));
        let files = self.files()?;
        for name in files.iter().filter(|name| self.is_abandoned(name, now)) {
            if let Some(stem) = name.strip_suffix(&manifest) {
                // What it describes is no backup: its manifest never came to its place, or was about to leave it.
                if !files.contains(&format!("{stem}{MANIFEST}")) {
                    self.delete(&format!("{stem}{SNAPSHOT}"))?;
                }
            } else if !name.ends_with(&data) {
                continue;
            }
            tracing::info!(file = name, "deleting what an earlier attempt has left");
            self.delete(name)?;
        }
        self.settle()
    }

    /// The time by the clock that files here have theirs from, which is that of another host where one serves them. It
    /// takes no room, of which there may be none before something is deleted.
    fn now(&self) -> Result<SystemTime, Error> {
        let time = self.lock.set_len(0).and_then(|()| self.lock.metadata()?.modified());
        time.map_err(Error::file("write", &self.path.join(LOCK)))
    }

    fn is_abandoned(&self, name: &str, now: SystemTime) -> bool {
        let written = fs::metadata(self.path.join(name)).and_then(|file| file.modified());
        written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age >= ABANDONED))
    }

    /// A file for a snapshot that is to be called after `stem`.
    pub fn begin(&self, stem: &str) -> Result<Writer, Error> {
        for end in [SNAPSHOT, MANIFEST] {
            let path = self.path.join(format!("{stem}{end}"));
            if path.try_exists().map_err(Error::file("look for", &path))? {
                return Err(Error::Exists(path));
            }
        }
        let path = self.path.join(format!("{stem}{}", self.part(SNAPSHOT)));
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(FILE).open(&path);
        let file = file.map_err(Error::file("create", &path))?;
        Ok(Writer { file, path, hash: Context::new(&SHA256), size: 0 })
    }

    /// Gives up what was written of that snapshot.
    pub async fn discard(&self, stem: &str) {
        let path = self.path.join(format!("{stem}{}", self.part(SNAPSHOT)));
        if blocking(move || give_up(&path)).await.is_err() {
            tracing::warn!(snapshot = stem, "left to a later attempt");
        }
    }

    /// Gives a verified snapshot its name, and then its manifest.
    pub fn finish(&self, part: &Written, stem: &str, manifest: &Manifest) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(manifest).map_err(Error::Manifest)?;
        let unfinished = self.path.join(format!("{stem}{}", self.part(MANIFEST)));
        let written = OpenOptions::new().create(true).truncate(true).write(true).mode(FILE).open(&unfinished);
        let written = written.and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
        written.map_err(Error::file("write", &unfinished))?;
        // From here on a snapshot without a manifest is known for ours.
        self.settle()?;
        self.rename(&part.path, &format!("{stem}{SNAPSHOT}"))?;
        self.settle()?;
        self.rename(&unfinished, &format!("{stem}{MANIFEST}"))?;
        self.settle()
    }

    /// The backups of this EtcdCluster: those with a manifest, and with the file that it describes.
    pub fn backups(&self) -> Result<Vec<Manifest>, Error> {
        let mut backups = Vec::new();
        for name in self.files()? {
            let Some(stem) = name.strip_suffix(MANIFEST) else { continue };
            let read = fs::read(self.path.join(&name)).map_err(serde_json::Error::io);
            let manifest = match read.and_then(|text| serde_json::from_slice::<Manifest>(&text)) {
                Ok(manifest) => manifest,
                // Whatever it describes is not counted, and not deleted.
                Err(error) => {
                    tracing::warn!(file = name, %error, "a manifest that cannot be read is left as it is");
                    continue;
                }
            };
            let is_ours = manifest.cluster.uid == self.uid && manifest.name == format!("{stem}{SNAPSHOT}");
            let size = fs::metadata(self.path.join(&manifest.name)).map(|file| file.len());
            if is_ours && size.is_ok_and(|size| size == manifest.size) {
                backups.push(manifest);
            }
        }
        Ok(backups)
    }

    /// Deletes a backup: its manifest leaves its place first, so that what is left is no backup, and known for ours.
    pub fn remove(&self, backup: &Manifest) -> Result<(), Error> {
        let Some(stem) = backup.name.strip_suffix(SNAPSHOT) else { return Ok(()) };
        let left = format!("{stem}{}", self.part(MANIFEST));
        self.rename(&self.path.join(format!("{stem}{MANIFEST}")), &left)?;
        self.settle()?;
        self.delete(&backup.name)?;
        self.delete(&left)
    }

    /// How the name of our unfinished files ends.
    fn part(&self, end: &str) -> String {
        format!("{end}.{}{PART}", self.uid)
    }

    fn files(&self) -> Result<Vec<String>, Error> {
        let read = || -> io::Result<Vec<_>> {
            let entries = fs::read_dir(&self.path)?.collect::<io::Result<Vec<_>>>()?;
            Ok(entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        };
        read().map_err(Error::file("list", &self.path))
    }

    fn rename(&self, from: &Path, to: &str) -> Result<(), Error> {
        fs::rename(from, self.path.join(to)).map_err(Error::file("rename", from))
    }

    fn delete(&self, name: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done.map_err(Error::file("delete", &path)),
        }
    }

    /// Waits until the names are on the disk.
    fn settle(&self) -> Result<(), Error> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(Error::file("sync", &self.path))
    }
}

/// A snapshot that is being written.
pub struct Writer {
    file: File,
    path: PathBuf,
    hash: Context,
    size: u64,
}

/// A snapshot that was written, and read back the same.
#[derive(Debug)]
pub struct Written {
    path: PathBuf,
    /// SHA-256 of the whole.
    pub sha256: Digest,
    /// Bytes of the whole.
    pub size: u64,
}

impl Writer {
    /// Adds a piece.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.hash.update(piece);
        self.size += piece.len() as u64;
        self.file.write_all(piece).map_err(Error::file("write", &self.path))
    }

    /// Has it on the disk, reads it back, and looks whether it is a database that reaches `revision`.
    pub fn verified(self, revision: u64) -> Result<Written, Error> {
        let Self { file, path, hash, size } = self;
        file.sync_all().map_err(Error::file("sync", &path))?;
        drop(file);
        let sha256 = hash.finish();
        let (found, read) = read_back(&path).map_err(Error::file("read", &path))?;
        if read != size {
            return Err(Error::Altered { path, why: "its size differs" });
        }
        if found.as_ref() != sha256.as_ref() {
            return Err(Error::Altered { path, why: "its sha256 differs" });
        }
        let read = File::open(&path).map_err(Error::file("read", &path))?;
        if let Err(fault) = database::check(&read, size.saturating_sub(HASH), revision) {
            give_up(&path);
            return Err(Error::Unsound(fault));
        }
        Ok(Written { path, sha256, size })
    }
}

/// Deletes what came to nothing.
fn give_up(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(file = %path.display(), %error, "left to a later attempt");
    }
}

/// Hash and size of what a file has.
fn read_back(path: &Path) -> io::Result<(Digest, u64)> {
    let mut file = File::open(path)?;
    let (mut hash, mut size, mut piece) = (Context::new(&SHA256), 0, vec![0; STEP]);
    loop {
        let count = file.read(&mut piece)?;
        let Some(read) = piece.get(..count).filter(|read| !read.is_empty()) else { break };
        hash.update(read);
        size += read.len() as u64;
    }
    Ok((hash.finish(), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lock may be one of this node alone, and another Job be at work on another one.
    #[tokio::test]
    async fn what_may_still_be_written_stays_and_what_was_left_for_long_goes() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), "u-1").await.unwrap();
        let write = |name: &str, age: Duration| {
            let file = File::create(place.path().join(name)).unwrap();
            file.set_modified(file.metadata().unwrap().modified().unwrap() - age).unwrap();
        };
        let names = ["a.db.u-1.part", "b.db", "b.json.u-1.part"];
        for (age, stays) in [(Duration::from_secs(7100), true), (Duration::from_secs(7300), false)] {
            for name in &names {
                write(name, age);
            }
            folder.tidy().unwrap();
            let files = folder.files().unwrap();
            assert!(names.iter().all(|name| files.iter().any(|file| file == name) == stays), "{files:?}");
        }
        write("c.db.u-2.part", Duration::from_secs(7300));
        folder.tidy().unwrap();
        assert!(place.path().join("c.db.u-2.part").exists(), "it is another EtcdCluster's");
    }

    #[tokio::test]
    async fn what_came_whole_and_is_no_database_is_not_verified_and_goes() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), "u-1").await.unwrap();
        let mut writer = folder.begin("one").unwrap();
        writer.write(&[0; 8192]).unwrap();
        writer.write(&[0; 32]).unwrap();
        let refused = writer.verified(1).unwrap_err();
        assert!(matches!(refused, Error::Unsound(database::Fault::NoDatabase)), "{refused:?}");
        assert_eq!(folder.files().unwrap(), [LOCK]);
    }
}
