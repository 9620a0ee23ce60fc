//! The offset of the wall clock, read from a file. For tests.
//!
//! Assumes: the file is replaced and not written to, so that a look at it finds all of it.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use std::{fs, io};

use jiff::{SignedDuration, Timestamp};

/// Between two looks at a file.
const PAUSE: Duration = Duration::from_millis(20);

/// The variable that names the file.
const VARIABLE: &str = "GATEHOUSE_CLOCK";

static FILE: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os(VARIABLE).map(PathBuf::from));

/// Between two looks at the clocks: shorter where a file has them jump, so that a test need not wait.
pub(super) fn pause(usual: Duration) -> Duration {
    if FILE.is_some() { PAUSE } else { usual }
}

/// A time of the machine's clock as that of this process.
pub(super) fn added_to(real: Timestamp) -> Timestamp {
    let Some(file) = FILE.as_deref() else { return real };
    real.saturating_add(said_by(file)).unwrap_or(real)
}

/// What a file says.
fn said_by(file: &Path) -> SignedDuration {
    read(file).unwrap_or_else(|error| {
        // A test that asked for another time must not get this one.
        tracing::error!(error, "{VARIABLE} is to name a file with a signed duration such as PT2H or -30m");
        std::process::abort()
    })
}

fn read(file: &Path) -> Result<SignedDuration, String> {
    match fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => Ok(SignedDuration::ZERO),
        Ok(text) => text.trim().parse().map_err(|error| format!("{}: {error}", file.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SignedDuration::ZERO),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_the_clock_is_off_by() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clock");
        assert_eq!(read(&file), Ok(SignedDuration::ZERO));
        for (text, seconds) in
            [("", 0), ("\n", 0), ("PT2H\n", 7200), ("-PT2H", -7200), ("90s", 90), ("1h 2m ago", -3720)]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(read(&file), Ok(SignedDuration::from_secs(seconds)), "{text}");
        }
        fs::write(&file, "2 hours or so").unwrap();
        let error = read(&file).unwrap_err();
        assert!(error.contains("clock: "), "{error}");
        assert!(read(folder.path()).is_err(), "a folder");
    }
}
