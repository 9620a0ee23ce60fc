//! What may be wrong with an operator.

/// What is wrong with the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It adds members as voters.
    AddsVoters,
    /// It does so for the next one while the last one has not started.
    AddsTwoAtOnce,
    /// It takes volumes that could not be read for gone.
    TakesUnknownVolumesForNone,
    /// It goes by any member's list, without a majority's word.
    TrustsAnyList,
    /// It does so in what it does, and not in what it says.
    ChangesAnyList,
    /// It changes another list than it decided on.
    IgnoresGuards,
    /// It deletes pods without asking once more whether the others serve.
    LooksOnce,
    /// It forgets the cluster until a member has begun.
    ForgetsTheCluster,
    /// It deletes the volume of a member that it is to remove.
    DeletesVolumesFirst,
    /// It tells a pod to join as the member that it was, on an empty volume.
    RejoinsEmpty,
    /// It removes no member whose data are gone.
    NeverReplaces,
    /// It takes the next pod down before the last one is back.
    RollsWithoutGate,
    /// It takes all pods down in one reconciliation.
    RollsAllAtOnce,
    /// It begins with the leader.
    RollsTheLeaderFirst,
    /// It takes members to run the minor before the one that is asked for.
    SkipsMinors,
    /// It removes the leader without handing over.
    RemovesTheLeader,
    /// It does not wait for the others to stop before it forces a cluster.
    ForcesWithoutFence,
    /// It works what is paused.
    IgnoresPause,
    /// It makes the StatefulSet smaller instead of removing a member.
    ShrinksTheSetFirst,
    /// It does so at once down to as many as are asked for.
    ShrinksTheSetAtOnce,
    /// It leaves what removed members left.
    LeavesLeftovers,
    /// It does not see members that were added and have not started.
    OverlooksTheUnstarted,
    /// It never writes down which cluster it is, and goes by the one that answers.
    KeepsNoRecord,
    /// It has the next pod make a cluster of the data once more.
    ForcesAgain,
    /// It forgets that it recovers.
    ForgetsTheRecovery,
    /// It goes on from the member that has least of the log.
    GoesOnFromTheLeast,
    /// It starts those again that a recovery has set aside.
    RunsWhoIsSetAside,
    /// It keeps an object that is deleted.
    NeverLetsGo,
    /// It deletes volumes with the object that are to stay.
    TakesVolumesAlong,
    /// It signs by another authority before every member trusts it.
    SignsTooEarly,
    /// It forgets an authority whose certificates members still show.
    ForgetsTheAuthority,
    /// It never forgets one.
    TrustsForEver,
    /// It ends pods whose claims are being deleted.
    EndsPodsThatHoldClaims,
    /// It does so in a recovery.
    RecoversPastHeldClaims,
    /// It gives no member an entry while its claim is being deleted.
    WaitsForClaimsToStay,
    /// It does not look at which members the status lists.
    ForgetsWhoTheMembersAre,
    /// It does not see on claims what a recovery has set aside that is over.
    ForgetsWhatWasSetAside,
    /// It does not have pods come up as voters do.
    LeavesPodsUnlabelled,
    /// It takes a pod that comes up as a voter does for one that clients are not led to.
    AddsWhoServes,
    /// It does not see that a voter's pod has lost its label.
    OverlooksLabels,
    /// It takes every member for one that has caught up.
    OverlooksLag,
    /// It restarts who does not answer without asking the others.
    RestartsTheSilent,
    /// It takes the member that an alarm names for the one whose data are wrong.
    BelievesTheAlarm,
    /// It takes a member that does not start because its data differ for the one whose data are wrong.
    BelievesTheMember,
    /// It does not read why a member does not start.
    OverlooksOwnWords,
    /// It has every member give free space back in one reconciliation.
    DefragmentsAllAtOnce,
    /// It does so whether or not the others serve.
    DefragmentsBesideTheMissing,
    /// It begins with the leader.
    DefragmentsTheLeaderFirst,
    /// It disarms an alarm about space at once.
    DisarmsAtOnce,
    /// It takes members to have agreed on the minor that is asked for.
    LowersUnasked,
    /// It calls a cluster available whose members it could not ask.
    CallsUnknownAvailable,
    /// It lets no volume grow.
    NeverGrowsVolumes,
    /// It takes a volume that is to grow for one that has.
    TakesGrowingForGrown,
    /// It lets clients in before etcd asks who they are.
    LetsInUnasked,
    /// It takes root to have the password that it is to have.
    OverlooksPasswords,
    /// It takes data in memory for data on disk.
    TakesMemoryForDisk,
    /// It takes objects of another owner for its own.
    WorksTakenNames,
    /// It takes claims of another owner for its own.
    WorksTakenClaims,
    /// It takes a member of another cluster for one of ours.
    TakesStrangersForOurs,
    /// It takes a member that follows no leader for one that serves.
    OverlooksWhoIsCutOff,
    /// It forgets what the API server has refused, and tries that before anything else.
    TriesTheRefusedFirst,
    /// It does not see that deleting is refused.
    IgnoresProtection,
    /// It begins an upgrade without a backup.
    SkipsTheBackup,
    /// It takes each member to have saved a snapshot.
    SkipsTheSnapshot,
    /// It brings members down whether or not that is allowed.
    LowersUnallowed,
    /// It takes each patch for one that members can go on from.
    OverlooksPatches,
    /// It drops all of the history at once.
    DropsAllHistory,
    /// It has a member give space back again and again.
    DefragmentsAgain,
    /// It does so where there is little.
    DefragmentsForLittle,
    /// It restarts members whose data were not compared for long.
    RestartsUncompared,
    /// It does not see that members with much data start with the comparison of all of them.
    OverlooksSize,
    /// It does not see that the Services are lost.
    OverlooksLostServices,
    /// It does not see that the PodDisruptionBudget is lost.
    OverlooksLostBudgets,
    /// It does not see that the StatefulSet is lost.
    OverlooksLostSets,
    /// It restarts all that do not answer at once, where the quorum is lost.
    HealsAllAtOnce,
}
