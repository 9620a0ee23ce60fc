//! Points at which a debug build can be made to die, or to lose an answer, so that tests see what comes after that.
//!
//! `GATEHOUSE_FAIL_POINTS=kill:FILE` ends the process as a crash would, the first time that it comes to a point which
//! FILE does not name. `lose:FILE` has it not hear, once, that what was done at a point is done. A point that has acted
//! is added to FILE, a line each, so that whoever comes there next passes.
//!
//! Never: anything of it in a release build.

/// Dies here, where that is asked for.
pub fn reached(point: &'static str) {
    tracing::debug!(point);
    #[cfg(debug_assertions)]
    armed::reached(point);
}

/// Whether the answer to what was done here is to be lost.
#[must_use]
pub fn loses(point: &'static str) -> bool {
    #[cfg(debug_assertions)]
    return armed::acts("lose", point);
    #[cfg(not(debug_assertions))]
    return {
        let _never = point;
        false
    };
}

#[cfg(debug_assertions)]
mod armed {
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::process::{Command, abort, id};

    pub fn reached(point: &str) {
        if acts("kill", point) {
            let _sent = Command::new("kill").args(["-KILL", &id().to_string()]).status();
            abort();
        }
    }

    /// Whether that is what is asked for, and this is the first time.
    pub fn acts(what: &str, point: &str) -> bool {
        let Ok(told) = std::env::var("GATEHOUSE_FAIL_POINTS") else { return false };
        let Some((asked, file)) = told.split_once(':') else { return false };
        let is_known = || fs::read_to_string(file).unwrap_or_default().lines().any(|line| line == point);
        asked == what && !is_known() && add(file, point).is_ok()
    }

    fn add(file: &str, point: &str) -> std::io::Result<()> {
        let mut file = File::options().create(true).append(true).open(file)?;
        writeln!(file, "{point}")?;
        file.sync_all()
    }
}
