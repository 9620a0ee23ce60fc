//! The plan of TDSets, explored: the very functions that run in production, against a small model of what is around
//! them, in every order in which things can happen within bounds. What is checked and what is not is in
//! docs/correctness.md.

#![expect(clippy::expect_used, reason = "a test says what it expects by panicking")]

mod effects;
mod faults;
mod gate;
mod observations;
mod operator;
mod rules;
mod slices;
mod text;
mod world;

use faults::{Fault, Hand};
use kit::explore::Planted;
use rules::Rule;
use world::World;

kit::slices!(
    made,
    edited,
    kept,
    kept_unread,
    kept_by_its_time,
    referred,
    left,
    lent,
    autoscaled,
    sleeping,
    left_bounded,
    handed_over,
    two_schedules,
    taken,
    suspended,
    refused,
    refused_on_a_ramp,
    edited_on_a_ramp,
    controlled,
    taken_back,
    returned,
    contested,
    changed,
    served_otherwise,
    behind,
    woken_behind,
    unread,
    unread_on_a_ramp,
    undated,
    scaled_by_another,
    without_an_autoscaler,
    invalid,
    unset,
    unowned,
    going,
    lent_and_suspended,
    unowned_and_kept,
    unowned_on_a_ramp,
    unowned_behind,
    applied,
    owned,
    going_asleep,
    out_of_range,
);

const PLANTED: &[Planted<World, Fault>] = &[
    (Fault::Adopts, slices::taken, Rule::ForeignWritten),
    (Fault::DeletesAnyService, slices::taken, Rule::ForeignWritten),
    (Fault::ClaimsNothing, slices::edited, Rule::CountLost),
    (Fault::IgnoresTheElder, slices::two_schedules, Rule::HeldCountWritten),
    (Fault::Oversleeps, slices::made, Rule::Oversleeps),
    (Fault::TakesCountsBack, slices::kept, Rule::ManualCountTakenBack),
    (Fault::ForgetsWhatStands, slices::kept_unread, Rule::ManualCountTakenBack),
    (Fault::LeavesNoCount, slices::left, Rule::LeftWithAnotherCount),
    (Fault::NotesNothing, slices::lent, Rule::OwnCountForgotten),
    (Fault::FinalizesLast, slices::left, Rule::CountedBeforeFinalizer),
    (Fault::TellsTheTime, slices::made, Rule::WritesAtRest),
    (Fault::MakesWithoutCount, slices::made, Rule::MadeWithAnotherCount),
    (Fault::SaysWhatItPlanned, slices::made, Rule::StatusLies),
    (Fault::IgnoresSuspension, slices::suspended, Rule::CountWrittenWhileSuspended),
    (Fault::LeavesBounds, slices::autoscaled, Rule::SettlesWrongly),
    (Fault::ForgetsTheAutoscaler, slices::autoscaled, Rule::AutoscaledCountWritten),
    (Fault::TellsTwice, slices::made, Rule::ToldTwice),
    (Fault::Flaps, slices::made, Rule::NeverSettles),
    (Fault::FreezesTheStatus, slices::refused, Rule::TellsOfAnotherTime),
    (Fault::ForgetsRampsInRefusals, slices::refused_on_a_ramp, Rule::RampOutpaced),
    (Fault::ForgetsRampsInEdits, slices::edited_on_a_ramp, Rule::RampOutpaced),
    (Fault::ForgetsRampsUnread, slices::unread_on_a_ramp, Rule::RampOutpaced),
    (Fault::ResumesInSilence, slices::suspended, Rule::CountedInSilence),
    (Fault::IgnoresControllers, slices::controlled, Rule::ControlledWritten),
    (Fault::LeavesWhatIsControlled, slices::controlled, Rule::ControlledWritten),
    (Fault::TakesBackInSilence, slices::taken_back, Rule::CountedInSilence),
    (Fault::WakesFirst, slices::sleeping, Rule::WokenOutOfBounds),
    (Fault::NeverWakes, slices::sleeping, Rule::SettlesWrongly),
    (Fault::LeavesOldBounds, slices::left_bounded, Rule::LeftWithOtherBounds),
    (Fault::LeavesAsleep, slices::left_bounded, Rule::LeftAsleep),
    (Fault::IgnoresAutoscalers, slices::scaled_by_another, Rule::AutoscaledCountWritten),
    (Fault::WritesWhatGoes, slices::going, Rule::WrittenWhileGoing),
    (Fault::TrustsItsClock, slices::behind, Rule::Undone),
    (Fault::NeverWaits, slices::contested, Rule::TakenBackAtOnce),
    (Fault::NamesNobody, slices::contested, Rule::ContestUntold),
    (Fault::PutsBackAtOnce, slices::changed, Rule::PutBackAtOnce),
    (Fault::LeavesTheService, slices::served_otherwise, Rule::SettlesWrongly),
    (Fault::GoesBackInSilence, slices::returned, Rule::CountedInSilence),
];

#[test]
fn every_planted_fault_is_found_by_the_rule_that_names_it() {
    kit::explore::finds(PLANTED, |fault| Hand(Some(fault)));
}
