//! Which changes of a Deployment's status a TDSet has to be called for.

use super::*;
use crate::controllers::difference::Difference;
use crate::kinds::tdset::state::words;

/// The Deployment of the shop at these numbers.
fn at_numbers(observed: &Observed, numbers: [i32; 4], is_seen: bool, is_stuck: bool) -> Arc<FoundDeployment> {
    let [replicas, ready, updated, available] = numbers;
    let mut observed = observed.clone();
    edit(&mut observed, |deployment| {
        deployment.metadata.generation = Some(2);
        deployment.spec.as_mut().unwrap().replicas = Some(2);
        let progress = json!({"type": "Progressing", "status": if is_stuck { "False" } else { "True" }});
        deployment.status = serde_json::from_value(json!({
            "observedGeneration": if is_seen { 2 } else { 1 }, "replicas": replicas, "readyReplicas": ready,
            "updatedReplicas": updated, "availableReplicas": available, "unavailableReplicas": 2 - available,
            "conditions": [progress],
        }))
        .unwrap();
    });
    let mut found = FoundDeployment::clone(observed.deployment.as_ref().unwrap());
    found.trim();
    Arc::new(found)
}

#[test]
fn of_a_deployment_whose_difference_is_nothing_the_status_is_the_same_and_of_one_in_numbers_its_words() {
    let tdset = shop();
    let observed = Cluster::settled(&tdset, EARLY).0;
    let spec = Spec::resolve(&tdset, Vec::new());
    let few = || 1..4;
    let mut all = Vec::new();
    for (replicas, ready) in few().flat_map(|replicas| few().map(move |ready| (replicas, ready))) {
        for (updated, available) in few().flat_map(|updated| few().map(move |available| (updated, available)))
        {
            for (is_seen, is_stuck) in [(true, false), (true, true), (false, false), (false, true)] {
                let numbers = [replicas, ready, updated, available];
                let found = at_numbers(&observed, numbers, is_seen, is_stuck);
                let plan = super::super::plan(
                    &spec,
                    &Observed { deployment: Some(Arc::clone(&found)), ..observed.clone() },
                );
                assert_eq!(plan.actions, [], "{numbers:?}");
                all.push((found, words(&plan.status), plan));
            }
        }
    }
    let mut seen = [0_u32; 3];
    for (before, said, plan_before) in &all {
        for (after, says, plan_after) in &all {
            match FoundDeployment::difference(before, after) {
                Difference::Nothing => {
                    seen[0] += 1;
                    assert_eq!(plan_before, plan_after, "{before:?} {after:?}");
                }
                Difference::Numbers => {
                    seen[1] += 1;
                    assert_eq!(said, says, "{before:?} {after:?}");
                }
                Difference::More => seen[2] += 1,
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn a_deployment_that_differs_in_more_than_its_status_differs_in_more_than_numbers() {
    let observed = Cluster::settled(&shop(), EARLY).0;
    let before = at_numbers(&observed, [2, 1, 2, 1], true, false);
    let after = |change: &dyn Fn(&mut Deployment)| {
        let mut observed = Observed { deployment: Some(Arc::clone(&before)), ..observed.clone() };
        edit(&mut observed, change);
        let mut found = FoundDeployment::clone(observed.deployment.as_ref().unwrap());
        found.trim();
        FoundDeployment::difference(&before, &found)
    };
    assert_eq!(
        after(&|deployment| deployment.metadata.resource_version = Some("9".to_owned())),
        Difference::Nothing
    );
    let numbers: &dyn Fn(&mut Deployment) = &|deployment| {
        deployment.status.as_mut().unwrap().ready_replicas = Some(0);
    };
    assert_eq!(after(numbers), Difference::Numbers);
    let changes: [&dyn Fn(&mut Deployment); 6] = [
        &|deployment| deployment.metadata.uid = Some("e".to_owned()),
        &|deployment| deployment.metadata.annotations.get_or_insert_default().clear(),
        &|deployment| deployment.metadata.owner_references = None,
        &|deployment| deployment.metadata.deletion_timestamp = Some(Time(at(EARLY))),
        &|deployment| scale(deployment, 3, "kubectl"),
        &|deployment| deployment.spec.as_mut().unwrap().paused = Some(true),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_eq!(after(change), Difference::More, "{number}");
    }
}
