//! The plan of an EtcdCluster, explored: the very function that runs in production, against a model of everything
//! around it, in every order in which things can happen within bounds. What is checked and what is not is in
//! docs/correctness.md.

#![expect(clippy::expect_used, reason = "a test says what it expects by panicking")]

mod conformance;
mod faults;
mod liveness;
mod mutants;
mod rules;
mod slices;
mod traces;
mod world;

use faults::{Fault, Hand};
use kit::explore::Planted;
use rules::Rule;
use world::World;

kit::slices!(
    bootstrap,
    growth,
    shrinking,
    loss,
    upgrade,
    recovery,
    blindness,
    two_operators,
    comeback,
    survivors,
    drain,
    stopping,
    deletion,
    deletion_that_keeps,
    certificates,
    claims,
    config,
    emptied_config,
    config_in_recovery,
    emptied_config_in_recovery,
    objects_in_recovery,
    objects,
    labels,
    serving,
    earlier_release,
    lag,
    silence,
    silence_of_all,
    suspicion,
    space,
    downgrade,
    growth_called_off,
    shrinking_beside_the_dead,
    recovery_for_another_template,
    claim_in_recovery,
    claims_and_config,
    passwords,
    names,
    left_claims,
    strangers,
    cut_off,
    refused_template,
    refused_volume,
    refused_budget,
    refused_services,
    refused_at_first,
    refused_volumes_and_services,
    protected,
    orphans,
    volumes,
    memory_of_one,
    memory_that_grows,
    memory,
    memory_without_quorum,
    tight_space,
    no_space_left,
    spare_room,
    careful_upgrade,
    patches,
    refused_versions,
    down_and_up,
    comparison,
    initial_check
);

/// What is too large to be looked at whole, gone through at random.
mod random {
    use super::slices;

    kit::large_slices!(growth, shrinking, loss, upgrade, recovery, accidents);
}

const PLANTED: &[Planted<World, Fault>] = &[
    (Fault::ForgetsWhatWasSetAside, slices::config_in_recovery, Rule::SetAsideLost),
    (Fault::AddsVoters, slices::growth, Rule::QuorumCost),
    (Fault::AddsTwoAtOnce, slices::growth_to_five, Rule::TooManyMembers),
    (Fault::TakesUnknownVolumesForNone, slices::blindness, Rule::SoundMemberReplaced),
    (Fault::ChangesAnyList, slices::blindness, Rule::ChangedUnknown),
    (Fault::TrustsAnyList, slices::blindness, Rule::StatusLies),
    (Fault::IgnoresGuards, slices::second_thoughts, Rule::MembersVolume),
    (Fault::LooksOnce, slices::upgrade, Rule::QuorumCost),
    (Fault::ForgetsTheCluster, slices::bootstrap, Rule::SecondCluster),
    (Fault::KeepsNoRecord, slices::bootstrap, Rule::SecondCluster),
    (Fault::DeletesVolumesFirst, slices::shrinking, Rule::MembersVolume),
    (Fault::RejoinsEmpty, slices::loss, Rule::WriteLost),
    (Fault::NeverReplaces, slices::loss, Rule::SettlesWrongly),
    (Fault::RollsWithoutGate, slices::upgrade, Rule::QuorumCost),
    (Fault::RollsAllAtOnce, slices::upgrade, Rule::TwoAtOnce),
    (Fault::RollsTheLeaderFirst, slices::upgrade, Rule::LeaderRestartedFirst),
    (Fault::SkipsMinors, slices::upgrade, Rule::MinorsApart),
    (Fault::RemovesTheLeader, slices::shrinking, Rule::LeaderRemoved),
    (Fault::ForcesWithoutFence, slices::survivors, Rule::ForcedBesideOthers),
    (Fault::ForcesAgain, slices::comeback, Rule::ForcedTwice),
    (Fault::RunsWhoIsSetAside, slices::comeback, Rule::RemovedMemberRuns),
    (Fault::ForgetsTheRecovery, slices::comeback, Rule::SettlesWrongly),
    (Fault::GoesOnFromTheLeast, slices::survivors, Rule::PoorerSurvivor),
    (Fault::IgnoresPause, slices::stopping, Rule::WorkedWhilePaused),
    (Fault::ShrinksTheSetFirst, slices::shrinking, Rule::NeverSettles),
    (Fault::ShrinksTheSetAtOnce, slices::shrinking, Rule::QuorumCost),
    (Fault::LeavesLeftovers, slices::shrinking, Rule::SettlesWrongly),
    (Fault::OverlooksTheUnstarted, slices::growth, Rule::NeverSettles),
    (Fault::NeverLetsGo, slices::deletion, Rule::SettlesWrongly),
    (Fault::TakesVolumesAlong, slices::deletion_that_keeps, Rule::MembersVolume),
    (Fault::SignsTooEarly, slices::certificates, Rule::LeafNotTrusted),
    (Fault::ForgetsTheAuthority, slices::certificates, Rule::LeafNotTrusted),
    (Fault::TrustsForEver, slices::certificates, Rule::SettlesWrongly),
    (Fault::EndsPodsThatHoldClaims, slices::claims, Rule::MembersVolume),
    (Fault::RecoversPastHeldClaims, slices::claim_in_recovery, Rule::MembersVolume),
    (Fault::WaitsForClaimsToStay, slices::claims_and_config, Rule::SettlesWrongly),
    (Fault::ForgetsWhoTheMembersAre, slices::config, Rule::SettlesWrongly),
    (Fault::LeavesPodsUnlabelled, slices::earlier_release, Rule::SettlesWrongly),
    (Fault::OverlooksLabels, slices::labels, Rule::SettlesWrongly),
    (Fault::AddsWhoServes, slices::serving, Rule::LearnerServesClients),
    (Fault::OverlooksLag, slices::lag, Rule::LaggingQuorum),
    (Fault::RestartsTheSilent, slices::silence, Rule::QuorumCost),
    (Fault::BelievesTheAlarm, slices::suspicion, Rule::SoundMemberReplaced),
    (Fault::BelievesTheMember, slices::initial_check, Rule::SoundMemberReplaced),
    (Fault::OverlooksOwnWords, slices::initial_check, Rule::SettlesWrongly),
    (Fault::DefragmentsAllAtOnce, slices::space, Rule::TwoAtOnce),
    (Fault::DefragmentsBesideTheMissing, slices::space, Rule::DefragmentedBesideMissing),
    (Fault::DefragmentsTheLeaderFirst, slices::space, Rule::LeaderDefragmentedFirst),
    (Fault::DisarmsAtOnce, slices::space, Rule::DisarmedFull),
    (Fault::LowersUnasked, slices::downgrade, Rule::RunsTooOld),
    (Fault::CallsUnknownAvailable, slices::loss, Rule::StatusLies),
    (Fault::NeverGrowsVolumes, slices::volumes, Rule::SettlesWrongly),
    (Fault::TakesGrowingForGrown, slices::volumes, Rule::StatusLies),
    (Fault::LetsInUnasked, slices::passwords, Rule::LetInUnasked),
    (Fault::OverlooksPasswords, slices::passwords, Rule::SettlesWrongly),
    (Fault::TakesMemoryForDisk, slices::memory_of_one, Rule::MembersVolume),
    (Fault::WorksTakenNames, slices::names, Rule::TouchedAnothers),
    (Fault::WorksTakenClaims, slices::left_claims, Rule::TouchedAnothers),
    (Fault::TakesStrangersForOurs, slices::strangers, Rule::WorkedBesideStranger),
    (Fault::OverlooksWhoIsCutOff, slices::cut_off, Rule::LedToWhoIsCutOff),
    (Fault::TriesTheRefusedFirst, slices::refused_volume, Rule::SettlesWrongly),
    (Fault::IgnoresProtection, slices::protected, Rule::DeletedProtected),
    (Fault::SkipsTheBackup, slices::patches, Rule::NoBackup),
    (Fault::SkipsTheSnapshot, slices::careful_upgrade, Rule::LogUnreadable),
    (Fault::SkipsTheSnapshot, slices::down_and_up, Rule::LogUnreadable),
    (Fault::LowersUnallowed, slices::refused_versions, Rule::VersionNotAllowed),
    (Fault::OverlooksPatches, slices::refused_versions, Rule::VersionNotAllowed),
    (Fault::DropsAllHistory, slices::tight_space, Rule::HistoryDropped),
    (Fault::DefragmentsAgain, slices::spare_room, Rule::DefragmentedForNothing),
    (Fault::DefragmentsForLittle, slices::spare_room, Rule::DefragmentedForNothing),
    (Fault::RestartsUncompared, slices::comparison, Rule::RestartedUncompared),
    (Fault::OverlooksSize, slices::no_space_left, Rule::SettlesWrongly),
    (Fault::OverlooksLostServices, slices::objects, Rule::SettlesWrongly),
    (Fault::OverlooksLostBudgets, slices::objects, Rule::SettlesWrongly),
    (Fault::OverlooksLostSets, slices::objects, Rule::SettlesWrongly),
    (Fault::HealsAllAtOnce, slices::silence_of_all, Rule::TwoAtOnce),
];

#[test]
fn every_planted_fault_is_found_by_the_rule_that_names_it() {
    kit::explore::finds(PLANTED, |fault| Hand(Some(fault)));
}
