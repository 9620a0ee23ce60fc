//! The copy of a member's data, made before etcd irrevocably makes a new cluster of them.
//!
//! Guarantees: a copy that has its name is whole, and on the disk; it is never made again, changed or deleted here.
//! What an attempt that was given up has left is gone before the next one, and after one for which there was no room.
//! Assumes: etcd does not run, and nothing else writes the volume, so that plain copies of its files are consistent.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::config::found;
use super::decision::Cause;
use super::volume::{MEMBER, PRIVATE, settle};
use super::{Error, Refusal};

/// The folder with the copies, each below the entry of the log up to which its recovery keeps the data.
const COPIES: &str = "before-recovery";

/// The folder of a member within what etcd takes for its data.
const IN_COPY: &str = "member";

/// Bytes after which the copy checks for a signal.
const STEP: u64 = 16 << 20;

/// Copies the data on the volume that is mounted at `root`, unless that was done. To stop is to drop this.
pub async fn make(root: &Path, raft_index: u64) -> Result<Result<(), Refusal>, Error> {
    let copies = root.join(COPIES);
    let (whole, part) = (copies.join(raft_index.to_string()), copies.join(format!("{raft_index}.part")));
    if whole.try_exists().map_err(Error::file("look for", &whole))? {
        return Ok(Ok(()));
    }
    tracing::info!(copy = %whole.display(), "copying the data");
    clear(&part)?;
    if let Err(error) = folder(&root.join(MEMBER), &part.join(IN_COPY)).await {
        return match &error {
            Error::File { source, .. } if is_lack_of_room(source) => {
                clear(&part)?;
                let words = "there is no room to copy the data before they are changed for good";
                Ok(Err(Refusal { cause: Cause::NoRoom, words }))
            }
            _ => Err(error),
        };
    }
    settle(&part)?;
    fs::rename(&part, &whole).map_err(Error::file("name", &whole))?;
    settle(&copies)?;
    settle(root)?;
    tracing::info!(copy = %whole.display(), "the data are copied");
    Ok(Ok(()))
}

fn is_lack_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Deletes what another attempt has left.
fn clear(part: &Path) -> Result<(), Error> {
    found(fs::remove_dir_all(part)).map(|_| ()).map_err(Error::file("delete", part))
}

/// Copies a folder and the folders in it.
async fn folder(from: &Path, to: &Path) -> Result<(), Error> {
    let mut left = vec![(from.to_owned(), to.to_owned())];
    let mut made = Vec::new();
    while let Some((from, to)) = left.pop() {
        let new = DirBuilder::new().recursive(true).mode(PRIVATE).create(&to);
        new.map_err(Error::file("create", &to))?;
        for (path, is_folder) in content(&from)? {
            let target = to.join(path.file_name().unwrap_or_default());
            if is_folder {
                left.push((path, target));
            } else {
                file(&path, &target).await?;
            }
        }
        made.push(to);
    }
    made.iter().try_for_each(|folder| settle(folder))
}

/// The files and folders in a folder. Etcd makes nothing else.
fn content(folder: &Path) -> Result<Vec<(PathBuf, bool)>, Error> {
    let read = || -> io::Result<Vec<_>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir())))).collect()
    };
    read().map_err(Error::file("list", folder))
}

async fn file(from: &Path, to: &Path) -> Result<(), Error> {
    let source = File::open(from).map_err(Error::file("open", from))?;
    let target = File::create(to).map_err(Error::file("create", to))?;
    loop {
        // Within a file system that can, bytes are shared and not moved.
        let copied = io::copy(&mut io::Read::take(&source, STEP), &mut &target);
        if copied.map_err(Error::file("write", to))? == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mode = source.metadata().map_err(Error::file("look at", from))?.permissions();
    target.set_permissions(mode).map_err(Error::file("write", to))?;
    target.sync_all().map_err(Error::file("sync", to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_volume_is_distinguished_from_a_broken_one() {
        // Of errno(3): ENOSPC, EDQUOT, EIO, EACCES, EROFS.
        for (code, is_full) in [(28, true), (122, true), (5, false), (13, false), (30, false)] {
            assert_eq!(is_lack_of_room(&io::Error::from_raw_os_error(code)), is_full, "{code}");
        }
    }

    #[tokio::test]
    async fn folders_in_folders_are_copied_and_a_file_in_many_steps_whole() {
        let folder = tempfile::tempdir().unwrap();
        let snap = folder.path().join(MEMBER).join("snap");
        fs::create_dir_all(&snap).unwrap();
        let size = usize::try_from(STEP).unwrap() * 2 + 1;
        fs::write(snap.join("db"), vec![7; size]).unwrap();
        make(folder.path(), 9).await.unwrap().unwrap();
        let copy = fs::read(folder.path().join("before-recovery/9/member/snap/db")).unwrap();
        assert!(copy == vec![7; size], "{} of {size} bytes", copy.len());
    }
}
