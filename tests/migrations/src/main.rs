//! The plan of DatabaseMigrations, explored: the very function that runs in production, against a small model of what is
//! around it, in every order in which things can happen within bounds. What is checked and what is not is in
//! docs/correctness.md.

#![expect(clippy::expect_used, reason = "a test says what it expects by panicking")]

mod database;
mod faults;
mod look;
mod operator;
mod rules;
mod runs;
mod slices;
mod text;
mod world;

use faults::{Fault, Hand};
use kit::explore::Planted;
use rules::Rule;
use world::World;

kit::slices!(
    lost_answers,
    deaths,
    refused,
    failures,
    two_operators,
    two_runs,
    edited_sources,
    approval,
    approved_and_held,
    approved_and_asked_for,
    doubt,
    corrected_answer,
    doubt_and_deleted_jobs,
    doubt_and_approval,
    doubt_and_plan,
    two_operators_and_a_doubt,
    deletion,
    deletion_unheard,
    deletion_unseen,
    deletion_that_fails,
    deletion_in_doubt,
    deletion_approved,
    deletion_of_a_plan,
    rehearsal_and_plan,
    verification,
    deletion_while_verified,
    held,
    late_runs,
    drained_nodes,
    sidecar,
    late_reverts,
    answer_before_the_doubt,
);

/// What is too large to be looked at whole, gone through at random.
mod random {
    use super::slices;

    kit::large_slices!(life_of_approved_scripts);
}

const PLANTED: &[Planted<World, Fault>] = &[
    (Fault::ApprovesItself, slices::approval, Rule::Unapproved),
    (Fault::RevertsUnapproved, slices::deletion_approved, Rule::Unapproved),
    (Fault::ForgetsApprovedTexts, slices::approval, Rule::ApprovalForgotten),
    (Fault::TellsAnotherPlan, slices::approval, Rule::OtherPlan),
    (Fault::ForgetsTheLastRun, slices::lost_answers, Rule::SettlesWrongly),
    (Fault::ForgetsLostRuns, slices::two_runs, Rule::NumberTwice),
    (Fault::StartsBesideOthers, slices::lost_answers, Rule::TwoRuns),
    (Fault::HoldsNothing, slices::lost_answers, Rule::RunWithoutFinalizer),
    (Fault::StartsBeforeTexts, slices::lost_answers, Rule::RunWithoutTexts),
    (Fault::KeepsOldTexts, slices::edited_sources, Rule::RunWithoutTexts),
    (Fault::DeletesTexts, slices::lost_answers, Rule::TextsDeleted),
    (Fault::UsesAnswersAgain, slices::doubt, Rule::AnswerUsedTwice),
    (Fault::WastesAnswers, slices::doubt_and_plan, Rule::AnswerWasted),
    (Fault::TurnsAnswersAround, slices::doubt, Rule::OtherAnswer),
    (Fault::KeepsNothingForDeletion, slices::deletion, Rule::SettlesWrongly),
    (Fault::KeepsWhatWasPlanned, slices::deletion_of_a_plan, Rule::OthersTakenBack),
    (Fault::GuessesWhatWasApplied, slices::deletion_unseen, Rule::OthersTakenBack),
    (Fault::IgnoresSuspension, slices::held, Rule::StartedWhileHeld),
    (Fault::IgnoresRequirements, slices::held, Rule::StartedWhileHeld),
    (Fault::RepeatsFailures, slices::failures, Rule::RunAgain),
    (Fault::HasNoPatience, slices::deaths, Rule::Hurries),
    (Fault::NeverGivesUp, slices::deaths, Rule::Hurries),
    (Fault::LetsGoAtOnce, slices::deletion, Rule::GoneWhileRunning),
    (Fault::TakesNothingBack, slices::deletion, Rule::LeftApplied),
    (Fault::AppliesWhileDeleting, slices::deletion_that_fails, Rule::OtherPurpose),
    (Fault::LetsNothingGo, slices::deletion, Rule::SettlesWrongly),
    (Fault::SaysWhatItPlanned, slices::lost_answers, Rule::StatusLies),
    (Fault::AppliesWhatIsMissing, slices::verification, Rule::AppliedUnasked),
    (Fault::TakesScriptsForApplied, slices::lost_answers, Rule::NeverCarriedOut),
    (Fault::RunsDoubtsAgain, slices::doubt, Rule::CarriedOutTwice),
    (Fault::TrustsTheDeadline, slices::late_runs, Rule::StatusLies),
    (Fault::TrustsSilence, slices::drained_nodes, Rule::StatusLies),
    (Fault::UsesAnswersAgain, slices::answer_before_the_doubt, Rule::AnswerUsedTwice),
    (Fault::Oversleeps, slices::lost_answers, Rule::Oversleeps),
    (Fault::WritesAlways, slices::lost_answers, Rule::NeverSettles),
    (Fault::AsksForNothing, slices::approval, Rule::SettlesWrongly),
];

#[test]
fn every_planted_fault_is_found_by_the_rule_that_names_it() {
    kit::explore::finds(PLANTED, |fault| Hand(Some(fault)));
}
