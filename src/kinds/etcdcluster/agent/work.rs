//! The folder that the containers of a pod share: what the init container leaves to the container of etcd.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::config::{MountedConfig, found};
use super::entry::Entry;

/// This program.
const PROGRAM: &str = "gatehouse";
/// Etcd's configuration file.
pub const FLAGS: &str = "etcd.yaml";
/// The same for an etcd that was let make a cluster of its data, and is started again.
pub const FLAGS_AGAIN: &str = "etcd-again.yaml";
/// The line of that file which makes a cluster of the data, and the one which does not.
const FORCES: (&str, &str) = ("force-new-cluster: true", "force-new-cluster: false");
/// The file of the start permit.
const PERMIT: &str = "pass.json";

/// The permission to start etcd in this pod, for as long as the pod lives.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct StartPermit {
    /// The entry that the operator wrote.
    pub entry: Entry,
    /// Uid of the pod.
    pub pod: String,
    /// Uid of the EtcdCluster.
    pub cluster: String,
    /// Whether the data lie in memory.
    pub is_in_memory: bool,
}

/// Copies this program: etcd's image has no shell, and none of what would be needed.
pub fn copy_program(work: &Path) -> Result<(), Error> {
    let own = std::env::current_exe().map_err(Error::file("find", Path::new(PROGRAM)))?;
    let source = File::open(&own).map_err(Error::file("open", &own))?;
    replace(&work.join(PROGRAM), |file| {
        io::copy(&mut &source, file)?;
        file.set_permissions(source.metadata()?.permissions())
    })
}

/// Writes a permit and etcd's configuration.
pub fn leave(work: &Path, permit: &StartPermit, mounted: &MountedConfig) -> Result<(), Error> {
    let path = work.join(PERMIT);
    let text = serde_json::to_vec(permit).map_err(|source| Error::Content { path: path.clone(), source })?;
    replace(&work.join(FLAGS), |file| file.write_all(&mounted.flags))?;
    replace(&work.join(FLAGS_AGAIN), |file| file.write_all(&again(&mounted.flags)))?;
    replace(&path, |file| file.write_all(&text))
}

/// The flags without the one that makes a cluster of the data.
fn again(flags: &[u8]) -> Vec<u8> {
    let (forces, does_not) = (FORCES.0.as_bytes(), FORCES.1.as_bytes());
    let lines = flags.split(|byte| *byte == b'\n');
    let lines: Vec<_> = lines.map(|line| if line == forces { does_not } else { line }).collect();
    lines.join(&b'\n')
}

/// The permit; none where no guard has left one.
pub fn permit(work: &Path) -> Result<Option<StartPermit>, Error> {
    let path = work.join(PERMIT);
    let Some(text) = found(fs::read(&path)).map_err(Error::file("read", &path))? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|source| Error::Content { path, source })
}

/// Puts a file in the place of what is there, as a whole. Whether it has to be on the disk by then is up to `write`:
/// this folder would not outlive a loss of power anyway.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Error> {
    let beside = PathBuf::from(format!("{}.new", path.display()));
    let written = File::create(&beside).and_then(|mut file| write(&mut file));
    written.and_then(|()| fs::rename(&beside, path)).map_err(Error::file("write", path))
}
