//! Validates the options of etcd.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::flags::{self, Standing};
use super::super::v1::{AutoCompaction, CompactionMode, EtcdClusterSpec, Options};
use super::super::versions;
use crate::api::duration;
use crate::api::field::{FieldError, Path, Rendered as _, Validation};

/// Etcd's own heartbeat.
const USUAL_HEARTBEAT: Duration = Duration::from_millis(100);
/// Etcd's own election timeout.
const USUAL_ELECTION: Duration = Duration::from_secs(1);
/// Etcd refuses to start with a longer one (`maxElectionMs` of `server/embed/config.go`).
const LONGEST_ELECTION: Duration = Duration::from_secs(50);
/// Etcd refuses to start with fewer heartbeats in an election timeout.
const LEAST_HEARTBEATS: u32 = 5;

pub fn validate(spec: &EtcdClusterSpec, validation: &mut Validation) {
    let Some(options) = &spec.options else { return };
    let path = Path::spec().at("options");
    if let Some(compaction) = &options.auto_compaction {
        validate_compaction(compaction, &path.at("autoCompaction"), validation);
    }
    if let Some(count) = options.snapshot_count.filter(|count| !(100..=1_000_000).contains(count)) {
        validation.reject(FieldError::invalid(
            path.at("snapshotCount"),
            count,
            "must be between 100 and 1000000",
        ));
    }
    validate_timing(options, &path, validation);
    let minor = spec.version.as_deref().and_then(versions::parse).map(|version| version.minor);
    if let (Some(extra), Some(minor)) = (&options.extra, minor) {
        for flag in extra.keys() {
            validate_flag(flag, minor, path.at("extra").key(flag), validation);
        }
    }
}

fn validate_compaction(compaction: &AutoCompaction, path: &Path, validation: &mut Validation) {
    let path = path.at("retention");
    let mode = compaction.mode.unwrap_or(CompactionMode::Periodic);
    let Some(retention) = &compaction.retention else {
        validation.reject(FieldError::required(path, "says how much is kept, such as 1h or 1000"));
        return;
    };
    let shown = match retention {
        IntOrString::Int(number) => number.rendered(),
        IntOrString::String(text) => text.rendered(),
    };
    let detail = match (mode, retention) {
        (CompactionMode::Periodic, IntOrString::String(text)) => match duration::parse(text) {
            Ok(time) if !time.is_zero() => return,
            Ok(_) => "must be longer than nothing, such as 1h".to_owned(),
            Err(error) => error.to_string(),
        },
        (CompactionMode::Periodic, IntOrString::Int(_)) => {
            "must be a duration with its unit, such as 1h, in mode Periodic".to_owned()
        }
        (CompactionMode::Revision, IntOrString::Int(number)) if *number > 0 => return,
        (CompactionMode::Revision, IntOrString::String(text))
            if text.parse::<i64>().is_ok_and(|number| number > 0) =>
        {
            return;
        }
        (CompactionMode::Revision, _) => {
            "must be a number of revisions above zero, such as 1000, in mode Revision".to_owned()
        }
    };
    validation.reject(FieldError { value: Some(shown), ..FieldError::invalid(path, "", detail) });
}

fn validate_timing(options: &Options, path: &Path, validation: &mut Validation) {
    let (heartbeat_path, election_path) = (path.at("heartbeatInterval"), path.at("electionTimeout"));
    let heartbeat = options.heartbeat_interval.as_ref();
    let election = options.election_timeout.as_ref();
    let beat = heartbeat.map(|given| whole_milliseconds(given, heartbeat_path, validation));
    let wait = election.map(|given| whole_milliseconds(given, election_path.clone(), validation));
    let (Some(beat), Some(wait)) =
        (beat.unwrap_or(Some(USUAL_HEARTBEAT)), wait.unwrap_or(Some(USUAL_ELECTION)))
    else {
        return;
    };
    let shown = election.map_or("1s", duration::Duration::as_str);
    if wait > LONGEST_ELECTION {
        validation.reject(FieldError::invalid(election_path, shown, "must be at most 50s"));
    } else if wait < beat.saturating_mul(LEAST_HEARTBEATS) {
        let detail = format!(
            "must be at least {LEAST_HEARTBEATS} times spec.options.heartbeatInterval ({})",
            heartbeat.map_or("100ms", duration::Duration::as_str)
        );
        validation.reject(FieldError::invalid(election_path, shown, detail));
    }
}

/// Etcd's flag counts in whole milliseconds.
fn whole_milliseconds(
    given: &duration::Duration,
    path: Path,
    validation: &mut Validation,
) -> Option<Duration> {
    let detail = match given.get() {
        Ok(time) if !time.is_zero() && time.subsec_nanos() % 1_000_000 == 0 => return Some(time),
        Ok(_) => "must be a whole number of milliseconds above zero, such as 100ms".to_owned(),
        Err(error) => error.to_string(),
    };
    validation.reject(FieldError::invalid(path, given.as_str(), detail));
    None
}

fn validate_flag(flag: &str, minor: u64, path: Path, validation: &mut Validation) {
    if flag.starts_with('-') {
        let bare = flag.trim_start_matches('-');
        validation.reject(FieldError::invalid(
            path,
            flag,
            format!("must have no leading dashes: write {bare}"),
        ));
        return;
    }
    match flags::standing(flag, minor) {
        Standing::Free => {}
        Standing::Owned => {
            validation.reject(FieldError::forbidden(path, "the operator sets this flag itself"));
        }
        Standing::Field(field) => {
            validation
                .reject(FieldError::forbidden(path, format!("has a field of its own: spec.options.{field}")));
        }
        Standing::Elsewhere => {
            validation.reject(FieldError::invalid(
                path,
                flag,
                format!("is a flag that etcd 3.{minor} does not have"),
            ));
        }
        Standing::Unknown => validation.reject(FieldError::invalid(path, flag, "is no flag of etcd")),
    }
}
