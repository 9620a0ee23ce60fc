//! Validates the durations of a DatabaseMigration: each has bounds.

use std::time::Duration;

use crate::api::duration;
use crate::api::field::{FieldError, Path, Validation};
use crate::kinds::databasemigration::api::v1::{DatabaseMigrationSpec, Legacy};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const WEEK: Duration = Duration::from_hours(168);

pub(super) fn validate(spec: &DatabaseMigrationSpec, validation: &mut Validation) {
    let path = Path::spec();
    let mut within = |path: Path,
                      given: Option<&duration::Duration>,
                      least: Duration,
                      most: Duration,
                      text: &str| {
        let Some(given) = given else { return };
        match given.get() {
            Err(error) => validation.reject(FieldError::invalid(path, given.as_str(), error.to_string())),
            Ok(length) if length < least || length > most => {
                validation.reject(FieldError::invalid(path, given.as_str(), format!("must be from {text}")));
            }
            Ok(_) => {}
        }
    };
    for (at, script) in spec.scripts.iter().enumerate() {
        let Some(timeouts) = &script.timeouts else { continue };
        let path = path.at("scripts").index(at).at("timeouts");
        within(path.at("statement"), timeouts.statement.as_ref(), SECOND, WEEK, "1s to 168h");
        let (least, most) = (Duration::from_millis(10), Duration::from_mins(10));
        within(path.at("lock"), timeouts.lock.as_ref(), least, most, "10ms to 10m");
    }
    if let Some(retry) = &spec.retry {
        let most = Duration::from_hours(1);
        within(path.at("retry").at("backoff"), retry.backoff.as_ref(), SECOND, most, "1s to 1h");
    }
    if let Some(given) = spec.legacy.as_ref().and_then(Legacy::max_migration_time) {
        let path = path.at("legacy").at("validation").at("performanceThresholds").at("maxMigrationTime");
        // A value that is no text is no duration, and is shown as it is written.
        let text = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
        within(path, Some(&duration::Duration(text)), MINUTE, WEEK, "1m to 168h");
    }
    if let Some(runner) = &spec.runner {
        let path = path.at("runner");
        within(path.at("deadline"), runner.deadline.as_ref(), MINUTE, WEEK, "1m to 168h");
        within(path.at("ttl"), runner.ttl.as_ref(), MINUTE, Duration::from_hours(720), "1m to 720h");
    }
}
