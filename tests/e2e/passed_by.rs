//! The tests that the checks of a change leave out because they take long, and when they run instead.
//!
//! Guarantees: each test that is passed by is of one part of the night; each that takes no more than [`SLICE`] is of
//! one slice as well, and slices follow one another in turn. A name that no test has is an error.
//!
//! | | what runs |
//! |---|---|
//! | nothing is said | all tests but those that are passed by; those are listed as ignored |
//! | `SLICE=n` | the slice of that number, counted on from the first after the last |
//! | `WITH_SLICE=n` | all tests but those that are passed by, and that slice |
//! | `NIGHTLY_PART=release` | all that `.ci/run` runs, and what is passed by of both ways of deploying |
//! | `NIGHTLY_PART=long-1`, `long-2` | that part of what is passed by |

use std::time::Duration;

/// When a test that is passed by runs at night.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// gatehouse as it ships.
    Release,
    /// Operators that die or are answered otherwise, all through a life.
    Long1,
    /// Operators that die at what clusters seldom have, chains of edits, many clusters.
    Long2,
}

/// The longest slice, in seconds of tests one after the other.
const SLICE: u64 = 200;

/// How long a test of `.ci/run` may take.
const LIMIT: Duration = Duration::from_mins(15);

/// By title, with the seconds that each takes on two cores without another beside it. A comment says what covers for the
/// tests below it at each change, beside the slices.
const PASSED_BY: &[(&str, u64, Part)] = &[
    // What large objects take at most, on the cluster tier. The figure is of the program that ships.
    ("chart::a_replica_at_rest_takes_little_memory", 12, Part::Release),
    // The same cluster without an operator; and what else goes on while every replica is down. It stops every replica.
    ("chart::etcd_without_gatehouse_is_reached_by_its_service", 100, Part::Release),
    // `tests/certificates.rs` on a real etcd; the states of a rotation beside the code.
    ("chart::etcd_follows_another_authority", 200, Part::Release),
    // The same with one member: `chart::etcd_of_one_member_is_set_back_too`.
    ("chart::etcd_with_an_image_that_does_not_start_is_set_back", 160, Part::Release),
    // The same tests by the chart; `tests/deploy` checks that both ways of deploying create the same objects.
    ("kustomize::every_example_is_applied_and_worked", 30, Part::Release),
    ("kustomize::a_rolling_restart_fails_no_call", 130, Part::Release),
    ("kustomize::a_killed_leader_is_replaced_and_nothing_is_done_twice", 50, Part::Release),
    // The same faults in `tests/model`, at every step of every plan; `tests/api/tdset/crashing_operator.rs` and
    // `tests/api/databasemigration/dying_operator.rs`.
    ("chart::etcd_outlives_an_operator_that_dies_at_every_point", 180, Part::Long1),
    ("chart::etcd_outlives_an_operator_that_loses_the_answer_at_every_point", 100, Part::Long1),
    ("chart::etcd_outlives_an_operator_that_loses_the_answer_to_each_kind_of_effect", 110, Part::Long1),
    ("chart::etcd_outlives_an_operator_that_is_answered_in_every_other_way", 780, Part::Long1),
    // The same faults in `tests/model`; a recovery that nothing disturbs, on the cluster tier.
    ("chart::etcd_is_brought_back_by_an_operator_that_dies_at_it", 250, Part::Long2),
    ("chart::etcd_is_brought_back_by_an_operator_that_loses_answers", 220, Part::Long2),
    // The same faults in `tests/model`.
    ("chart::etcd_gets_room_from_an_operator_that_dies_at_it", 50, Part::Long2),
    ("chart::etcd_gets_room_from_an_operator_that_loses_answers", 50, Part::Long2),
    (
        "chart::etcd_that_few_large_revisions_fill_gets_room_from_an_operator_that_dies_at_it",
        120,
        Part::Long2,
    ),
    ("chart::etcd_replaces_a_member_that_does_not_start_over_its_data", 90, Part::Long2),
    ("chart::etcd_is_brought_down_by_an_operator_that_dies_at_it", 170, Part::Long2),
    ("chart::etcd_is_brought_down_by_an_operator_that_loses_answers", 150, Part::Long2),
    ("chart::etcd_without_a_writer_is_upgraded_by_an_operator_that_dies_at_it", 60, Part::Long2),
    ("chart::etcd_without_a_writer_is_upgraded_by_an_operator_that_loses_answers", 60, Part::Long2),
    ("chart::etcd_asks_who_is_there_for_an_operator_that_dies_at_it", 60, Part::Long2),
    ("chart::etcd_asks_who_is_there_for_an_operator_that_loses_answers", 60, Part::Long2),
    ("chart::etcd_is_backed_up_by_an_operator_that_dies_at_it", 70, Part::Long2),
    ("chart::etcd_is_backed_up_by_an_operator_that_loses_answers", 60, Part::Long2),
    // `tests/chains.rs`; single edits on the cluster tier.
    ("chart::etcd_is_the_same_whatever_way_it_came", 1200, Part::Long2),
    // The tests of the reconciliation beside the code, of one cluster.
    ("chart::a_cluster_that_hangs_holds_up_no_other", 900, Part::Long2),
    // The slices `silence` and `silence_of_all` in `tests/model`.
    ("chart::etcd_keeps_a_member_that_does_not_answer", 340, Part::Long2),
    // The tests of the plan beside the code, of each object in each state of a cluster.
    ("chart::etcd_keeps_its_members_whatever_of_its_objects_is_deleted", 500, Part::Long2),
    // The same tests with little data; which checks are left off at that size, in the tests beside the code.
    ("chart::etcd_of_two_gibibytes_is_grown_rolled_and_a_member_replaced", 330, Part::Long2),
];

/// Which tests a run is about.
pub enum Run {
    /// All; those that are passed by only where ignored tests are asked for.
    All,
    /// These of those that are passed by, and all others too where that is so.
    Some { passed_by: Vec<&'static str>, and_others: bool },
}

impl Run {
    /// What the environment asks for of the tests that there are.
    pub fn asked(titles: &[String]) -> Result<Self, String> {
        if let Some((title, ..)) = PASSED_BY.iter().find(|(title, ..)| !titles.iter().any(|one| one == title))
        {
            return Err(format!("{title} is passed by, and there is no such test"));
        }
        let asked = ["SLICE", "WITH_SLICE", "NIGHTLY_PART"];
        let mut asked = asked.into_iter().filter_map(|name| Some((name, variable(name)?)));
        match (asked.next(), asked.next()) {
            (None, _) => Ok(Self::All),
            (Some(("NIGHTLY_PART", part)), None) => night(&part),
            (Some((name, number)), None) => {
                let number = number.parse().map_err(|_| format!("{name}={number} is no number"))?;
                Ok(Self::Some { passed_by: slice(number), and_others: name == "WITH_SLICE" })
            }
            (Some((one, _)), Some((other, _))) => Err(format!("{one} and {other} are both set: choose one")),
        }
    }

    /// Whether a test is of this run, and, if it is, whether only where ignored tests are asked for.
    pub fn takes(&self, title: &str) -> Option<bool> {
        let is_passed_by = PASSED_BY.iter().any(|(one, ..)| *one == title);
        match self {
            Self::All => Some(is_passed_by),
            Self::Some { passed_by, and_others } => {
                let is_taken = if is_passed_by { passed_by.contains(&title) } else { *and_others };
                is_taken.then_some(false)
            }
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn night(name: &str) -> Result<Run, String> {
    let part = match name {
        "release" => Part::Release,
        "long-1" => Part::Long1,
        "long-2" => Part::Long2,
        _ => return Err(format!("NIGHTLY_PART={name}: there is release, long-1 and long-2")),
    };
    let passed_by = PASSED_BY.iter().filter(|(_, _, of)| *of == part).map(|(title, ..)| *title).collect();
    Ok(Run::Some { passed_by, and_others: part == Part::Release })
}

fn slice(number: usize) -> Vec<&'static str> {
    let mut slices = slices();
    let (count, number) = (slices.len(), number % slices.len());
    let titles = slices.swap_remove(number);
    eprintln!("slice {number} of 0 to {}: {}", count - 1, titles.join(", "));
    titles
}

/// Each test goes into the first slice that has room for it.
fn slices() -> Vec<Vec<&'static str>> {
    let mut slices: Vec<(u64, Vec<&str>)> = Vec::new();
    for (title, seconds, _) in PASSED_BY.iter().filter(|(_, seconds, _)| *seconds <= SLICE) {
        match slices.iter_mut().find(|(taken, _)| taken + seconds <= SLICE) {
            Some((taken, titles)) => {
                *taken += seconds;
                titles.push(title);
            }
            None => slices.push((*seconds, vec![title])),
        }
    }
    slices.into_iter().map(|(_, titles)| titles).collect()
}

/// How long a test may take: where it is known how long it takes, three times that and what its waits take to fail.
pub fn limit(title: &str) -> Duration {
    let known = PASSED_BY.iter().find(|(one, ..)| *one == title);
    known.map_or(LIMIT, |(_, seconds, _)| Duration::from_secs(3 * seconds) + LIMIT / 2)
}
