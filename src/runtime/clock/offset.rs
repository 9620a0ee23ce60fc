//! What the wall clock is off by, as a file says, and who is due when that changes.
//!
//! Guarantees: nobody is rung for because time passes, for that is what timers are for; nobody who is due by a jump is
//! passed by, whether the jump came before, while or after the wait was reckoned.
//! Assumes: the file is replaced and not written to, so that a look at it finds all of it.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use futures::stream::{self, Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};

/// Between two looks at the file.
const PAUSE: Duration = Duration::from_millis(20);

/// The variable that names the file.
const VARIABLE: &str = "GATEHOUSE_CLOCK";

static FILE: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os(VARIABLE).map(PathBuf::from));

/// The file that says what the clock is off by, where there is to be one.
pub(super) fn file() -> Option<&'static Path> {
    FILE.as_deref()
}

/// A time of the machine's clock as that of this process.
pub(super) fn added_to(real: Timestamp) -> Timestamp {
    let Some(file) = file() else { return real };
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

/// What the clock shows, and what it is off by.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    time: Timestamp,
    offset: SignedDuration,
}

/// When who is due, and what the clock was off by when that was reckoned.
#[derive(Debug)]
pub struct Alarms<Key> {
    file: Option<PathBuf>,
    due: Mutex<HashMap<Key, Shown>>,
}

impl<Key> Alarms<Key> {
    pub(super) fn of(file: Option<&Path>) -> Self {
        Self { file: file.map(Path::to_owned), due: Mutex::new(HashMap::new()) }
    }
}

impl<Key: Clone + Eq + Hash> Alarms<Key> {
    /// None where the clock does not jump.
    pub(super) fn shown(&self) -> Option<Shown> {
        let offset = said_by(self.file.as_ref()?);
        #[expect(clippy::disallowed_methods, reason = "the clock is made here")]
        let time = Timestamp::now().saturating_add(offset).unwrap_or(Timestamp::MAX);
        Some(Shown { time, offset })
    }

    pub(super) fn set(&self, key: &Key, shown: Option<Shown>, after: Option<Duration>) {
        let Some(Shown { time, offset }) = shown else { return };
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(after) = after else {
            due.remove(key);
            return;
        };
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        let time = time.saturating_add(after).unwrap_or(Timestamp::MAX);
        due.insert(key.clone(), Shown { time, offset });
    }

    /// Those who are due although their timers have not run out, and whose alarms are thereby off.
    fn due(&self) -> Vec<Key> {
        let Some(now) = self.shown() else { return Vec::new() };
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let rung = due.extract_if(|_, alarm| alarm.offset != now.offset && alarm.time <= now.time);
        rung.map(|(key, _)| key).collect()
    }
}

/// Those who are due by a jump, as it comes. Without a file that never is.
pub(super) fn rung<Key>(alarms: Arc<Alarms<Key>>) -> impl Stream<Item = Key> + Send
where
    Key: Clone + Eq + Hash + Send + Sync + 'static,
{
    let looks = stream::unfold(alarms, async |alarms| {
        alarms.file.as_ref()?;
        tokio::time::sleep(PAUSE).await;
        Some((stream::iter(alarms.due()), alarms))
    });
    looks.flatten()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A clock that is off by what a file says.
    struct Clock(TempDir);

    impl Clock {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self) -> PathBuf {
            self.0.path().join("clock")
        }

        fn jump(&self, offset: &str) {
            let next = self.0.path().join("next");
            fs::write(&next, offset).unwrap();
            fs::rename(next, self.file()).unwrap();
        }

        fn alarms(&self) -> Alarms<&'static str> {
            Alarms::of(Some(&self.file()))
        }
    }

    const HOUR: Option<Duration> = Some(Duration::from_hours(1));

    #[test]
    fn a_file_says_what_the_clock_is_off_by() {
        let clock = Clock::new();
        assert_eq!(read(&clock.file()), Ok(SignedDuration::ZERO));
        for (text, seconds) in
            [("", 0), ("\n", 0), ("PT2H\n", 7200), ("-PT2H", -7200), ("90s", 90), ("1h 2m ago", -3720)]
        {
            clock.jump(text);
            assert_eq!(read(&clock.file()), Ok(SignedDuration::from_secs(seconds)), "{text}");
        }
        clock.jump("2 hours or so");
        let error = read(&clock.file()).unwrap_err();
        assert!(error.contains("clock: "), "{error}");
        assert!(read(clock.0.path()).is_err(), "a folder");
    }

    #[test]
    fn a_jump_rings_once_for_those_who_are_due_by_it() {
        let clock = Clock::new();
        let alarms = clock.alarms();
        let set = |key, after| alarms.set(&key, alarms.shown(), after);
        set("soon", HOUR);
        set("late", Some(Duration::from_hours(3)));
        set("never", HOUR);
        set("never", None);
        assert_eq!(alarms.due(), [""; 0]);
        clock.jump("PT59M");
        assert_eq!(alarms.due(), [""; 0]);
        clock.jump("PT1H");
        assert_eq!(alarms.due(), ["soon"]);
        assert_eq!(alarms.due(), [""; 0]);
        clock.jump("PT2H");
        assert_eq!(alarms.due(), [""; 0]);
        clock.jump("PT3H");
        assert_eq!(alarms.due(), ["late"]);
    }

    #[test]
    fn who_is_due_because_time_has_passed_has_a_timer() {
        let clock = Clock::new();
        clock.jump("PT2H");
        let alarms = clock.alarms();
        alarms.set(&"at once", alarms.shown(), Some(Duration::ZERO));
        assert_eq!(alarms.due(), [""; 0]);
    }

    #[test]
    fn a_jump_while_a_wait_is_reckoned_is_not_missed() {
        let clock = Clock::new();
        let alarms = clock.alarms();
        let shown = alarms.shown();
        clock.jump("PT1H");
        assert_eq!(alarms.due(), [""; 0]);
        alarms.set(&"reckoned before", shown, HOUR);
        assert_eq!(alarms.due(), ["reckoned before"]);
        alarms.set(&"reckoned after", shown, Some(Duration::ZERO));
        assert_eq!(alarms.due(), ["reckoned after"]);
    }

    #[tokio::test]
    async fn who_waits_is_told_of_a_jump() {
        let clock = Clock::new();
        let alarms = Arc::new(clock.alarms());
        alarms.set(&"soon", alarms.shown(), HOUR);
        let mut rung = Box::pin(rung(Arc::clone(&alarms)));
        clock.jump("PT1H");
        assert_eq!(rung.next().await, Some("soon"));
    }

    #[tokio::test]
    async fn without_a_file_nothing_is_kept_and_nobody_is_rung_for() {
        let alarms = Arc::new(Alarms::of(None));
        alarms.set(&"soon", alarms.shown(), HOUR);
        assert!(alarms.due.lock().unwrap().is_empty());
        assert_eq!(Box::pin(rung(alarms)).next().await, None);
    }
}
