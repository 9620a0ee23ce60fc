//! Files and folders that hold secrets: readable by their owner alone.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::Error;

/// So many random bytes of the kernel, in hexadecimal.
pub(crate) fn random_hex(bytes: usize) -> Result<String, Error> {
    let mut buffer = vec![0; bytes];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut buffer))
        .map_err(Error::io("reading /dev/urandom"))?;
    let mut text = String::with_capacity(2 * bytes);
    for byte in buffer {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(digit.into(), 16));
        }
    }
    Ok(text)
}

/// Makes a folder, and those above it, for the owner alone.
pub(crate) fn private_folder(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(Error::io(format!("making the folder {}", path.display())))
}

/// The folder of a control plane: the given one, which must be new or empty, or a new one of a unique name.
pub(crate) fn own_folder(given: Option<&Path>) -> Result<PathBuf, Error> {
    let Some(path) = given else {
        let name = format!("testbed-{}-{}", std::process::id(), random_hex(4)?);
        let path = std::env::temp_dir().join(name);
        private_folder(&path)?;
        return Ok(path);
    };
    let path = std::path::absolute(path).map_err(Error::io(format!("finding {}", path.display())))?;
    private_folder(&path)?;
    let mut entries = fs::read_dir(&path).map_err(Error::io(format!("reading {}", path.display())))?;
    if entries.next().is_some() { Err(Error::FolderInUse(path)) } else { Ok(path) }
}

/// Writes a file for the owner alone, in place of what was there.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .map_err(Error::io(format!("writing {}", path.display())))
}

/// Removes a folder with all it holds; that it is gone already is fine.
pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::Io { doing: format!("removing {}", path.display()), source: error })
        }
        _ => Ok(()),
    }
}
