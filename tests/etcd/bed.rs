//! Room for members, and the logs that they leave.
//!
//! Guarantees: where a test panics, or hangs until its limit, what its members logged is left below `target/etcd`.
//! Assumes: a test makes its beds on its own thread, which bears the name of the test.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io, thread};

use kit::wait::{PATIENCE, eventually_async};
use testbed::EtcdBed;

/// The folders of the beds that are there, and the tests that made them.
static BEDS: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Room for the members of a cluster, of the test that makes it.
pub struct Bed(EtcdBed);

impl Bed {
    /// Where clients come over plain HTTP, or with `tls` by certificate.
    pub fn new(tls: bool) -> Self {
        let bed = Self(EtcdBed::new(tls).unwrap());
        beds().insert(bed.folder(), test_name());
        bed
    }

    /// Where each member has its data, and its log beside them.
    pub fn folder(&self) -> PathBuf {
        self.data(0).parent().unwrap().to_owned()
    }

    /// Waits until something is so.
    pub async fn eventually<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let look = async || look().await.ok_or_else(|| format!("no {what}"));
        eventually_async(PATIENCE, look, || self.logs()).await
    }
}

impl Deref for Bed {
    type Target = EtcdBed;

    fn deref(&self) -> &EtcdBed {
        &self.0
    }
}

impl DerefMut for Bed {
    fn deref_mut(&mut self) -> &mut EtcdBed {
        &mut self.0
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let folder = self.folder();
        let test = beds().remove(&folder);
        if let Some(test) = test.filter(|_| thread::panicking()) {
            copy_logs(&folder, &test);
        }
    }
}

/// The name of the test whose thread this is.
pub fn test_name() -> String {
    thread::current().name().unwrap_or("test").to_owned()
}

/// Keeps the logs of the members that a failed test still has; where they are, and those of the members that it had.
pub fn keep_logs(test: &str) -> String {
    for (folder, _) in beds().iter().filter(|(_, owner)| *owner == test) {
        copy_logs(folder, test);
    }
    let kept = kept(test);
    if kept.exists() { format!("the logs of its members are in {}", kept.display()) } else { String::new() }
}

/// Removes what an earlier run of a test has left.
pub fn forget_logs(test: &str) {
    match fs::remove_dir_all(kept(test)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("{}: {error}", kept(test).display()),
        _ => {}
    }
}

fn beds() -> MutexGuard<'static, BTreeMap<PathBuf, String>> {
    BEDS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kept(test: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/etcd").join(test)
}

/// The test has failed already: that its logs are not kept is no more than a line.
fn copy_logs(folder: &Path, test: &str) {
    let to = kept(test).join(folder.file_name().unwrap_or_default());
    let copied = (|| {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "log") {
                fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
            }
        }
        io::Result::Ok(())
    })();
    if let Err(error) = copied {
        eprintln!("{test}: the logs in {} were not kept: {error}", folder.display());
    }
}
