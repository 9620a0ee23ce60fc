//! The condition types of a TDSet, and their reasons.

use crate::api::condition::{condition_types, reasons};

condition_types! {
    /// The workload has the count that it should have now, and all of it is ready.
    Ready,
    /// The count or the workload is on its way: a ramp, a roll-out.
    Progressing,
    /// The timetable is valid, and the dates that it takes from elsewhere could be read.
    ScheduleValid,
    /// `spec.suspend` holds replica writes back.
    Suspended,
    /// A count that another client wrote stands until the next transition.
    ManualOverride,
    /// Another client owns the workload or its count.
    Conflict,
}

reasons! {
    /// The count is the scheduled one.
    AsScheduled,
    /// Pods are missing that the count asks for.
    PodsNotReady,
    /// The count moves by a ramp.
    Ramping,
    /// The workload rolls out another template.
    RollingOut,
    /// No transition is under way.
    UpToDate,
    /// The timetable is valid.
    Valid,
    /// The timetable makes no sense; the message names the fields.
    InvalidSchedule,
    /// The time zone is not in the database of this release.
    UnknownTimeZone,
    /// The ConfigMap with dates, or its key, is not there.
    DatesNotFound,
    /// The API server does not say what dates the ConfigMap has.
    DatesNotReadable,
    /// The ConfigMap with dates has a line that is none.
    InvalidDates,
    /// `spec.suspend` is true.
    SuspendedBySpec,
    /// `spec.suspend` is not true.
    NotSuspended,
    /// Another owner's count stands for now.
    ManuallyScaled,
    /// The count is the operator's own.
    NotOverridden,
    /// The workload of `target.ref` is not there.
    TargetNotFound,
    /// The workload of `target.ref` cannot be scaled.
    TargetNotScalable,
    /// The API server does not say what count the workload of `target.ref` has.
    TargetNotReadable,
    /// gatehouse may not do what it takes; the message names verb and resource.
    Forbidden,
    /// The object does not pass the gate's validation.
    SpecInvalid,
    /// The object is in the namespace of gatehouse, where nothing is made.
    NamespaceRefused,
    /// An object of the name to create is there and is not ours.
    NameTaken,
    /// Another TDSet has the same target.
    OtherSchedule,
    /// An autoscaler that the spec does not name scales the same target.
    OtherAutoscaler,
    /// Another controller owns the workload or the autoscaler.
    ControlledByOther,
    /// Another client takes the count back each time that it is written.
    Contested,
    /// The autoscaler of the spec is not there.
    AutoscalerNotFound,
    /// The autoscaler of the spec scales something else.
    AutoscalerTargetMismatch,
    /// The scheduled count is outside of what the autoscaler allows.
    ReplicasOutOfRange,
    /// No other client writes the count.
    NoConflict,
    /// The API server refused a write that is not that of the count.
    ApplyFailed,
    /// The API server refused the count.
    CountRefused,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::condition::State;

    #[test]
    fn a_statement_carries_the_words_of_the_api() {
        let statement = ConditionType::ScheduleValid.is(false, Reason::UnknownTimeZone, "spec.timeZone: …");
        assert_eq!((statement.about, statement.reason), ("ScheduleValid", "UnknownTimeZone"));
        assert_eq!(statement.state, State::False);
    }
}
