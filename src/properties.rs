//! Settings for property tests.
//!
//! Guarantees: a run draws the cases that the run before it drew, so that what fails was changed since.
//! `PROPTEST_RNG_SEED=7` draws others and `PROPTEST_CASES=10000` draws more: proptest reads both by itself.
//! What fails is kept below `proptest-regressions/`, to be committed, and is tried first from then on.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use proptest::test_runner::{Config, RngSeed};
use random_objects::Source;
use serde_json::Value;

use crate::api::{Kind, Version};
use crate::kinds::KINDS;

static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> =
    LazyLock::new(|| KINDS.iter().map(|kind| kind.definition()).collect());

/// A random object of `kind`, as written in `version`.
pub fn object(source: &mut Source, kind: &dyn Kind, version: Version) -> Value {
    let known = |definition: &&CustomResourceDefinition| definition.spec.names.kind == kind.names().kind;
    source.object(DEFINITIONS.iter().find(known).unwrap(), version.as_str())
}

/// What is drawn from where the environment says nothing.
const SEED: u64 = 1;

/// How many cases proptest tries by itself.
const CASES: u32 = 256;

/// The configuration that every property takes.
pub fn config() -> Config {
    seeded(Config::default())
}

/// The same for a property that is tried so often where the environment says nothing, and as many times more as others
/// are where it does.
pub fn cases(usual: u32) -> Config {
    let config = config();
    Config { cases: usual.saturating_mul(config.cases).div_ceil(CASES), ..config }
}

/// Seeds for what draws by itself, so many where the environment says nothing.
pub fn seeds(usual: u32) -> impl Iterator<Item = u64> {
    let config = cases(usual);
    let first = if let RngSeed::Fixed(seed) = config.rng_seed { seed } else { SEED };
    (0..config.cases).map(move |offset| first.wrapping_add(offset.into()))
}

fn seeded(config: Config) -> Config {
    match config.rng_seed {
        RngSeed::Random => Config { rng_seed: RngSeed::Fixed(SEED), ..config },
        RngSeed::Fixed(_) => config,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    use super::*;

    fn drawn(seed: RngSeed) -> Vec<u64> {
        let mut runner = TestRunner::new(seeded(Config { rng_seed: seed, ..Config::default() }));
        let mut draw = || any::<u64>().new_tree(&mut runner).unwrap().current();
        (0..10).map(|_| draw()).collect()
    }

    #[test]
    fn cases_are_the_same_in_each_run_unless_others_are_asked_for() {
        assert_eq!(drawn(RngSeed::Random), drawn(RngSeed::Random));
        assert_eq!(drawn(RngSeed::Fixed(7)), drawn(RngSeed::Fixed(7)));
        assert_ne!(drawn(RngSeed::Random), drawn(RngSeed::Fixed(7)));
    }

    #[test]
    fn a_property_that_is_tried_more_seldom_is_still_tried() {
        let all = config().cases;
        assert_eq!((cases(2 * CASES).cases, cases(CASES).cases), (2 * all, all));
        assert!(cases(1).cases > 0);
    }
}
