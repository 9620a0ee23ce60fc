//! What once went wrong in the plan, and no longer does: ways that the exploration found, shortened.

use gatehouse::kinds::etcdcluster::observation::{MemberId, Ordinal, RecoveryRequest};

use kit::explore::Impassable;

use crate::world::Action::{Blind, Edit, Elect, Lose, Node, Pass, Step, Tick};
use crate::world::Kubelet::{End, Make, Show, Start};
use crate::world::{Action, Kubelet, Object, Unread};
use crate::{slices, world};

/// So many passes of an operator, with one thing done in each.
fn turns(count: usize) -> Vec<Action> {
    [Pass(0), Step(0)].into_iter().cycle().take(2 * count).collect()
}

/// The volume goes once its data are reported to be there, and before the cluster is recorded. The plan did
/// the same to each next pod: it deleted the volume and left the entry.
#[test]
fn a_seed_whose_volume_goes_once_it_is_reported_begins_again() {
    let seed = Ordinal(0);
    let prepare = [Pass(0), Step(0), Pass(0), Step(0), Pass(0), Step(0), Pass(0), Step(0), Node(seed, Make)];
    let start = [Pass(0), Step(0), Node(seed, Show), Node(seed, Start), Pass(0), Lose(seed)];
    slices::bootstrap().holds_after(&[&prepare[..], &start].concat());
}

/// Two of two members vote, three are asked for, and the ConfigMap cannot be read. That was called as asked for.
#[test]
fn a_cluster_that_is_to_grow_is_not_called_settled_while_the_config_map_is_unread() {
    let slice = slices::blindness();
    slice.holds_after(&[Edit]);
    let blind = Blind(0, Unread::Config);
    let nothing_is_done = Err(Impassable::Idle(1, blind.clone()));
    assert_eq!(slice.walk(&[Edit, blind]), nothing_is_done);
}

/// Another operator deletes a claim that was left, while a pod waits on it that this one made a member's place of. The
/// claim cannot go while the pod is there, no member was made on a claim that goes, and nothing deleted the pod.
#[test]
fn a_pod_that_waits_on_a_claim_which_goes_is_made_again() {
    let grow = [Edit, Pass(0), Step(0), Pass(0), Step(0), Pass(0), Pass(1), Step(1), Pass(1), Step(1)];
    let think_better = [Edit, Pass(1), Step(1), Pass(1), Edit];
    slices::second_thoughts().holds_after(&[&grow[..], &think_better].concat());
}

/// A pod that was told late to wait begins once the survivor has made a cluster of its data: that one is the quorum by
/// then, and the pod has to be stopped all the same.
#[test]
fn a_pod_that_begins_beside_the_survivor_is_stopped_although_that_is_a_quorum() {
    let mut slice = slices::comeback();
    slice.start.is_prompt = false;
    let set_aside = [Edit, Tick, Pass(0), Step(0), Pass(0), Step(0)];
    let fence = [Pass(0), Node(Ordinal(1), Make), Step(0), Pass(0), Step(0)];
    let name =
        [Node(Ordinal(0), End), Pass(0), Step(0), Pass(0), Step(0), Pass(0), Step(0), Pass(0), Step(0)];
    let begin = [Node(Ordinal(2), End), Node(Ordinal(2), Make), Pass(0), Node(Ordinal(1), Start)];
    slice.holds_after(&[&set_aside[..], &fence, &name, &begin].concat());
}

/// The quorum comes back between the look at which a pod was to be stopped for a recovery, and its deletion: that would
/// have cost the quorum again.
#[test]
fn a_recovery_that_is_under_way_stops_no_pod_of_a_quorum_that_is_back() {
    let set_aside = [Edit, Tick, Pass(0), Step(0), Pass(0), Step(0)];
    let fence = [&set_aside[..], &[Pass(0), Step(0), Node(Ordinal(0), Start), Pass(0)]].concat();
    let slice = slices::comeback();
    slice.holds_after(&[&fence[..], &[Elect(MemberId(1))]].concat());
    // What was planned is refused, and the rest of the reconciliation is forgotten.
    slice.holds_after(&[&fence[..], &[Elect(MemberId(1)), Step(0)]].concat());
}

/// A request to recover comes while a member is being replaced, a majority answers again, and it comes to nothing. That
/// a member is missing is not called settled once nothing else is left to do.
#[test]
fn a_replacement_that_a_recovery_interrupted_is_not_called_settled() {
    let way = [
        Action::Node(Ordinal(0), Kubelet::Start),
        Action::Elect(MemberId(1)),
        Action::CatchUp(MemberId(3)),
        Action::Pass(0),
        Action::Step(0),
        Action::Pass(0),
        Action::Step(0),
        Action::Pass(0),
        Action::Step(0),
        Action::Kill(Ordinal(2)),
        Action::Edit,
        Action::Tick,
        Action::Pass(0),
        Action::Node(Ordinal(2), Kubelet::Start),
        Action::Tick,
    ];
    let mut slice = slices::comeback();
    let request = RecoveryRequest { token: "now".to_owned(), survivor: Some(Ordinal(0)) };
    slice.start.edits = vec![world::Edit::Recover(Some(request))];
    slice.holds_after(&way);
}

/// A drain takes a pod between the look at which the next one was to be restarted, and that restart. What was told to
/// go answers until it has ended, and counted as one that serves: one of three was left.
#[test]
fn a_pod_that_is_being_deleted_is_none_that_the_next_one_can_be_spared_for() {
    let look = [Edit, Pass(0), Step(0), Pass(0), Step(0), Pass(0), Step(0), Pass(0), Step(0), Pass(0)];
    slices::drain().holds_after(&[&look[..], &[Action::Evict(Ordinal(1)), Step(0)]].concat());
}

/// A cluster is to stop, and the StatefulSet cannot be read: that was called as asked for while all members ran.
#[test]
fn a_cluster_that_is_to_stop_is_not_called_stopped_while_the_stateful_set_is_unread() {
    let blind = Blind(0, Unread::StatefulSet);
    let nothing_is_done = Err(Impassable::Idle(4, blind.clone()));
    assert_eq!(slices::stopping().walk(&[Edit, Edit, Edit, Edit, blind]), nothing_is_done);
}

/// The claim of the only member is deleted, and another template is asked for. The restart waited for the pod, which has
/// to stay, and was called finished.
#[test]
fn a_restart_that_waits_for_a_pod_which_holds_a_claim_is_not_called_finished() {
    slices::claims().holds_after(&[Action::DeleteClaim(Ordinal(0)), Edit]);
}

/// The claim of the only member is deleted, a stop is asked for, and the pods cannot be read. They were taken for absent,
/// and the stop ended them.
#[test]
fn a_stop_ends_no_pod_that_could_not_be_read_and_holds_a_claim() {
    let blind = Blind(0, Unread::Pods);
    let nothing_is_done = Err(Impassable::Idle(3, blind.clone()));
    let way = [Action::DeleteClaim(Ordinal(0)), Edit, Edit, blind];
    assert_eq!(slices::claims().walk(&way), nothing_is_done);
}

/// A learner was added, and its claim is deleted before it starts. No entry was made for that claim, and the learner was
/// waited for for ever.
#[test]
fn a_learner_whose_claim_is_deleted_before_it_starts_is_removed() {
    let restart = [&[Edit][..], &turns(5), &[Node(Ordinal(0), Start)]].concat();
    let grow = [&[Edit, Edit, Tick][..], &turns(6)].concat();
    slices::claims().holds_after(&[&restart[..], &grow, &[Action::DeleteClaim(Ordinal(1))]].concat());
}

/// A stopped cluster loses what is in its ConfigMap. The status forgot its members in one reconciliation, and it never
/// started again.
#[test]
fn a_cluster_that_is_stopped_without_the_entries_of_its_config_map_starts_again() {
    slices::emptied_config().holds_after(&[Action::LoseConfig, Edit, Pass(0), Edit]);
}

/// What is in the ConfigMap is lost once the others of a recovery were set aside on their claims. Nothing spoke of them
/// any more, and a member was added on the data of one, whose claim was deleted after that.
#[test]
fn what_a_recovery_has_set_aside_outlives_the_entries_of_the_config_map() {
    let way = [Edit, Tick, Pass(0), Step(0), Action::LoseConfig, Pass(0), Step(0), Pass(0), Step(0)];
    slices::emptied_config_in_recovery().holds_after(&way);
}

/// A way that cannot be gone fails with the reason: it is not the same as a slice in which less goes wrong by now.
#[test]
fn a_way_that_cannot_be_gone_says_why() {
    let slice = slices::bootstrap();
    let spent = Action::Evict(Ordinal(0));
    assert_eq!(slice.walk(std::slice::from_ref(&spent)), Err(Impassable::Spent(0, spent)));
    let idle = Action::Step(0);
    assert_eq!(slice.walk(std::slice::from_ref(&idle)), Err(Impassable::Idle(0, idle)));
}

/// The pod that was named to make a cluster of the data goes with its StatefulSet once it has, before that is seen. The
/// next one was named as well, and etcd would have dropped what was acknowledged last.
#[test]
fn a_cluster_is_made_once_of_data_whose_pod_goes_with_its_stateful_set() {
    let begin = [Node(Ordinal(2), Start), Action::LoseObject(Object::StatefulSet)];
    let way = [&[Edit, Tick][..], &turns(10), &begin].concat();
    slices::objects_in_recovery().holds_after(&way);
}

/// StatefulSet and ConfigMap are gone while the survivor has to be restarted. Its entry was rebuilt only beside its
/// pod, and its pod made only for its entry.
#[test]
fn a_survivor_without_stateful_set_and_config_map_comes_back() {
    let lose = [Pass(0), Action::LoseConfig, Action::LoseObject(Object::StatefulSet)];
    slices::objects_in_recovery().holds_after(&[&[Edit, Tick][..], &turns(7), &lose].concat());
}

/// A write has reached two of three members, and another template is asked for: the third one is waited for until it has
/// caught up.
#[test]
fn a_member_that_lacks_a_write_is_waited_for_before_the_next_one_is_restarted() {
    let way = [&[Action::Write(1), Edit][..], &turns(2)].concat();
    let slice = slices::lag();
    slice.holds_after(&way);
    let waits = Err(Impassable::Idle(way.len(), Pass(0)));
    assert_eq!(slice.walk(&[&way[..], &[Pass(0)]].concat()), waits);
}

/// A member votes and does not answer, and another one dies between the look at which the third one was to be restarted
/// and that restart.
#[test]
fn no_member_is_restarted_beside_a_silent_one_and_a_dead_one() {
    let look = [&[Action::Silence(Ordinal(0)), Edit][..], &turns(3), &[Pass(0)]].concat();
    slices::silence().holds_after(&[&look[..], &[Action::Kill(Ordinal(1)), Step(0)]].concat());
}

/// The pod of a member that is to be added comes up as a voter does.
#[test]
fn a_pod_that_is_to_be_a_learner_leaves_the_service_before_it_is_added() {
    for passes in 0..8 {
        slices::serving().holds_after(&[&[Edit][..], &turns(passes)].concat());
    }
}

/// Etcd's leader has the data that are wrong, and names another member.
#[test]
fn a_member_that_an_alarm_names_wrongly_stays() {
    let accuse = [Action::Corrupt(Ordinal(0)), Action::Suspect(MemberId(2))];
    let slice = slices::suspicion();
    slice.holds_after(&accuse);
    slice.holds_after(&[&accuse[..], &[Action::Compare], &turns(2)].concat());
}

/// A member dies once the history has been dropped: the others give no space back until it serves again.
#[test]
fn no_member_gives_space_back_beside_one_that_is_down() {
    let way = [&[Action::Fill][..], &turns(1), &[Action::Kill(Ordinal(1))]].concat();
    let slice = slices::space();
    slice.holds_after(&way);
    let waits = Err(Impassable::Idle(way.len(), Pass(0)));
    assert_eq!(slice.walk(&[&way[..], &[Pass(0)]].concat()), waits);
}

/// A member has lost its claim and its entry: the ConfigMap is deleted while its claim goes, at any time of what follows.
#[test]
fn a_member_whose_claim_and_entry_are_lost_is_replaced() {
    for passes in 0..4 {
        let way = [&[Action::DeleteClaim(Ordinal(0))][..], &turns(passes), &[Action::LoseConfig]].concat();
        slices::claims_and_config().holds_after(&way);
    }
}

/// The API server takes a template that it has refused: pods are of the earlier one, and no change is recorded.
#[test]
fn a_template_that_is_taken_late_is_rolled_out() {
    let way = [&[Edit, Edit][..], &turns(1), &[Edit, Edit, Edit]].concat();
    slices::refused_template().holds_after(&way);
}

/// The pod of a member that is down is recreated for another template before the data of the others were compared, and
/// comes back.
#[test]
fn data_are_compared_although_a_member_that_was_down_comes_back_of_another_template() {
    for passes in 0..3 {
        let way = [&[Action::Kill(Ordinal(2)), Edit][..], &turns(passes)].concat();
        slices::comparison().holds_after(&way);
    }
}

/// A member hears no other one, and answers the operator.
#[test]
fn clients_are_not_led_to_a_member_that_is_cut_off() {
    slices::cut_off().holds_after(&[Action::CutOff(Ordinal(1)), Tick, Pass(0), Step(0)]);
}

/// The claim of the first member may not grow, and those of the others do.
#[test]
fn a_claim_that_may_not_grow_holds_up_no_other() {
    slices::refused_volume().holds_after(&[&[Edit, Edit][..], &turns(2)].concat());
}

/// The members may have logged what 3.7 cannot read since the snapshot that they saved, while they were to run 3.5.
#[test]
fn a_snapshot_from_before_a_downgrade_that_was_called_off_lets_no_member_run_the_next_minor() {
    let down = [&[Edit][..], &turns(2), &[Action::Agree], &turns(4), &[Node(Ordinal(1), Start)]].concat();
    let up = [&[Edit][..], &turns(3), &[Tick], &turns(2), &[Pass(0), Edit]].concat();
    slices::down_and_up().holds_after(&[down, up].concat());
}
