//! Points at which a build for tests can be made to die, to panic, or to lose an answer, so that tests see what comes
//! after that.
//!
//! `GATEHOUSE_FAIL_POINTS=kill:FILE` ends the process as a crash would, the first time that it comes to a point which
//! FILE does not name. `panic:FILE` has it panic there. `lose:FILE` has it not hear, once, that what was done at a
//! point is done. What has acted is added to FILE, a line each, so that the next one that comes there passes.
//! `kill:FILE:storage` is about points alone whose names begin with `storage`, and `kill:FILE:storage.read#3` is about the
//! third time that the process comes to the point `storage.read`.
//!
//! Never: anything of it in a release build, unless that is built with the feature `fail-points`.

/// Dies or panics here, where that is asked for.
pub fn reached(point: &'static str) {
    tracing::debug!(point);
    #[cfg(any(debug_assertions, feature = "fail-points"))]
    armed::reached(point);
}

/// Whether the answer to what was done here is to be lost.
#[must_use]
pub fn loses(point: &'static str) -> bool {
    #[cfg(any(debug_assertions, feature = "fail-points"))]
    return armed::acts("lose", point);
    #[cfg(not(any(debug_assertions, feature = "fail-points")))]
    return {
        let _never = point;
        false
    };
}

#[cfg(any(debug_assertions, feature = "fail-points"))]
mod armed {
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::process::{Command, abort, id};
    use std::sync::{Mutex, PoisonError};

    /// Who comes to a point first is one. How often the process came to the point whose times are counted.
    static TURN: Mutex<usize> = Mutex::new(0);

    pub fn reached(point: &str) {
        if acts("kill", point) {
            let _sent = Command::new("kill").args(["-KILL", &id().to_string()]).status();
            abort();
        }
        assert!(!acts("panic", point), "a fail point was reached");
    }

    /// What is asked for, and the file of it.
    fn asked() -> Option<(String, String)> {
        let told = std::env::var("GATEHOUSE_FAIL_POINTS").ok()?;
        let (asked, file) = told.split_once(':')?;
        Some((asked.to_owned(), file.to_owned()))
    }

    /// Whether that is what is asked for, and this is the first time.
    pub fn acts(what: &str, point: &str) -> bool {
        let mut times = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((asked, file)) = asked().filter(|(asked, _)| asked == what) else { return false };
        let (file, about) = file.split_once(':').unwrap_or((&file, ""));
        match about.split_once('#') {
            Some((counted, _)) if counted != point => return false,
            Some((_, time)) => {
                *times += 1;
                if time.parse() != Ok(*times) {
                    return false;
                }
            }
            None if !point.starts_with(about) => return false,
            None => {}
        }
        let is_known = || fs::read_to_string(file).unwrap_or_default().lines().any(|line| line == point);
        let acts = !is_known() && add(file, point).is_ok();
        if acts {
            tracing::info!(point, fate = asked, "acts");
        }
        acts
    }

    fn add(file: &str, point: &str) -> std::io::Result<()> {
        let mut file = File::options().create(true).append(true).open(file)?;
        writeln!(file, "{point}")?;
        file.sync_all()
    }
}
