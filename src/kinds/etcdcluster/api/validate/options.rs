//! Validates the options of etcd.

use std::collections::BTreeMap;
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
    if let Some(extra) = &options.extra {
        validate_extra(extra, spec.version.as_deref(), &path.at("extra"), validation);
    }
}

/// The flags, for the minor of the version. A version that is absent or does not read may come to be any minor: there a
/// flag is refused only if no minor takes it.
fn validate_extra(
    extra: &BTreeMap<String, String>,
    version: Option<&str>,
    path: &Path,
    validation: &mut Validation,
) {
    let minor = version.and_then(versions::parse).map(|version| version.minor);
    let minors: Vec<_> =
        minor.map_or_else(|| versions::MINORS.iter().map(|one| one.minor).collect(), |minor| vec![minor]);
    for (flag, value) in extra {
        let judged = minors
            .iter()
            .rev()
            .map(|minor| (flags::standing(flag, *minor), flag_fault(flag, value, *minor, path)));
        let judged: Vec<_> = judged.collect();
        if judged.iter().any(|(_, fault)| fault.is_none()) {
            continue;
        }
        // A minor that has the flag says what is wrong with its value.
        let best = judged.iter().position(|(standing, _)| *standing == Standing::Free).unwrap_or(0);
        if let Some((_, Some(fault))) = judged.into_iter().nth(best) {
            validation.reject(fault);
        }
    }
    let pairs = minors.iter().map(|minor| flags::conflicts(extra, *minor)).min_by_key(Vec::len);
    for (flag, detail) in pairs.into_iter().flatten() {
        let value = extra.get(flag).map_or("", String::as_str);
        validation.reject(FieldError::invalid(path.key(flag), value, detail));
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

/// Why etcd of that minor cannot be given a flag with that value.
fn flag_fault(flag: &str, value: &str, minor: u64, path: &Path) -> Option<FieldError> {
    let path = path.key(flag);
    if flag.starts_with('-') {
        let bare = flag.trim_start_matches('-');
        return Some(FieldError::invalid(path, flag, format!("must have no leading dashes: write {bare}")));
    }
    match flags::standing(flag, minor) {
        Standing::Free => {
            flags::fault(flag, value, minor).map(|detail| FieldError::invalid(path, value, detail))
        }
        Standing::Owned => Some(FieldError::forbidden(path, "the operator sets this flag itself")),
        Standing::Field(field) => {
            Some(FieldError::forbidden(path, format!("has a field of its own: spec.options.{field}")))
        }
        Standing::Elsewhere => {
            Some(FieldError::invalid(path, flag, format!("is a flag that etcd 3.{minor} does not have")))
        }
        Standing::Unknown => Some(FieldError::invalid(path, flag, "is no flag of etcd")),
    }
}
