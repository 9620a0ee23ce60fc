//! A plan is the same with what is kept from the reconciliation before as without it.

use super::super::plan;
use super::*;
use crate::kinds::tdset::kept::Kept;
use crate::kinds::tdset::observation::Remembered;

/// What was read, with what is kept.
fn with_kept(kept: &Kept, observed: &Observed) -> Observed {
    let whole = kept.whole(observed.deployment.as_ref(), observed.service.as_ref());
    let remembered = Remembered { outlook: kept.outlook(), whole, ..observed.remembered.clone() };
    Observed { remembered, ..observed.clone() }
}

proptest! {
    #![proptest_config(crate::properties::config())]

    #[test]
    fn what_is_kept_changes_no_plan(start in 0..31_536_000_i64, later in -600..200_000_i64, count in 0..20_i32) {
        let shop = shop();
        let time = |seconds: i64| Timestamp::from_second(1_767_225_600 + seconds).unwrap().to_string();
        let mut cluster = Cluster::settled(&shop, &time(start));
        let mut kept = Kept::default();
        let spec = kept.spec(&shop, Vec::new);
        kept.found(&plan(&spec, &cluster.0), &cluster.0);
        cluster = cluster.at(&time(start + later));
        cluster.edit(|deployment| scale(deployment, count, "kubectl"));
        let seen = with_kept(&kept, &cluster.0);
        prop_assert_eq!(seen.remembered.whole, Whole { deployment: true, service: true });
        let of = |observed: &Observed| {
            let mut plan = plan(&spec, observed);
            plan.detail.outlook = None;
            plan
        };
        prop_assert_eq!(of(&seen), of(&cluster.0));
    }
}

#[test]
fn what_lacks_something_is_looked_at_until_it_does_not() {
    let shop = shop();
    let mut cluster = Cluster::settled(&shop, EARLY);
    let mut kept = Kept::default();
    let spec = kept.spec(&shop, Vec::new);
    let mut look = |cluster: &Cluster| {
        let seen = with_kept(&kept, &cluster.0);
        let planned = plan(&spec, &seen);
        kept.found(&planned, &seen);
        (seen.remembered.whole.deployment, planned.actions.len())
    };
    assert_eq!([look(&cluster), look(&cluster)], [(false, 0), (true, 0)]);
    cluster.edit(|deployment| {
        let pods = &mut deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap().containers;
        pods[0].image = Some("other:1".to_owned());
        deployment.metadata.generation = Some(9);
    });
    assert_eq!([look(&cluster), look(&cluster)], [(false, 1), (false, 1)]);
}
