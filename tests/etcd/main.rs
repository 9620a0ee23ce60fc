//! Tests of the etcd client on real members of 3.5, 3.6 and 3.7, as plain processes that are killed, frozen, removed
//! and added; with clients beside them whose histories are checked.
//!
//! `cargo test --test etcd -- FILTER` runs what matches; names begin with the version: `v3.6::members::…`.
//! A missing part is an error that says what to build; nothing is skipped in silence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it expects by unwrapping"
)]

mod audit;
mod auth;
mod backup;
mod bed;
mod checker_selftest;
mod configuration;
mod conformance;
mod cut_off;
mod data;
mod failures;
mod flag_values;
mod initial_check;
mod lag;
mod links;
mod maintenance;
mod members;
mod support;

use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use kit::harness::{Harness, Test};
use testbed::EtcdVersion;
use tokio::runtime::{Builder, Runtime};

/// Side by side, however few cores there are: members mostly wait for each other.
const THREADS: usize = 6;
/// For a test: more than it waits for anything, so that the wait tells first what did not come.
const LIMIT: Duration = Duration::from_mins(5);

/// For one that measures at several sizes of the database.
const LONG: Duration = Duration::from_mins(25);

/// A test under way.
type Running = Pin<Box<dyn Future<Output = ()>>>;

/// What a test does with members of a version.
type Run = fn(EtcdVersion) -> Running;

/// A test and its name.
type Named = (&'static str, Run);

/// The tests of a module, by name.
macro_rules! tests {
    ($module:ident: $($test:ident),* $(,)?) => {
        [$((concat!(stringify!($module), "::", stringify!($test)), {
            let run: Run = |version| -> Running { Box::pin($module::$test(version)) };
            run
        })),*]
    };
}

/// Tests that need no etcd, by name.
macro_rules! pure_tests {
    ($module:ident: $($test:ident),* $(,)?) => {
        [$((concat!(stringify!($module), "::", stringify!($test)), $module::$test as fn())),*]
    };
}

fn on_every_version() -> Vec<Named> {
    let members = tests![members:
        a_member_knows_itself,
        a_learner_is_added_refused_promotion_and_promoted,
        what_is_there_already_is_refused_by_name,
        a_member_is_removed_once,
        the_leader_hands_over,
        a_member_that_is_cut_off_answers_of_what_it_remembers_alone,
        a_learner_names_the_leader_that_it_last_heard_of,
        a_voter_that_is_left_alone_and_has_written_since_comes_back,
    ];
    let maintenance = tests![maintenance:
        status_has_the_fields_of_its_version,
        a_full_database_is_compacted_defragmented_and_disarmed,
        a_snapshot_is_whole,
        voters_have_equal_hashes,
        a_downgrade_is_judged,
    ];
    let data = tests![data:
        keys_are_written_read_and_deleted,
        a_transaction_compares,
        what_was_compacted_is_gone,
    ];
    let auth = tests![auth:
        root_by_certificate_may_all_and_a_stranger_nothing,
        root_has_a_password_beside_its_certificate_which_changes,
        a_user_that_was_made_without_a_password_never_gets_one,
        who_shows_no_certificate_or_trusts_another_authority_is_not_served,
    ];
    let failures = tests![failures:
        a_killed_leader_costs_no_acknowledged_write,
        a_frozen_leader_costs_no_acknowledged_write,
        growing_and_shrinking_costs_no_acknowledged_write,
        all_members_killed_at_once_come_back_with_all,
    ];
    let configuration = tests![configuration:
        a_member_runs_by_what_is_rendered_and_answers_its_probes,
        every_flag_that_is_free_is_written_as_etcd_reads_it,
    ];
    let lag = tests![lag:
        a_member_that_is_cut_off_lags_until_it_has_applied_what_it_missed,
    ];
    let cut_off = tests![cut_off:
        a_member_that_hears_no_other_one_is_led_to_by_no_service,
    ];
    let audit = tests![audit:
        voters_that_hold_the_same_are_found_equal_at_any_revision,
        a_member_whose_file_was_altered_is_named_by_the_others,
        a_member_that_does_not_start_over_its_data_is_named_by_the_others,
    ];
    let backup = tests![backup:
        a_backup_is_taken_of_a_follower_and_can_be_restored,
        backups_that_nothing_asks_to_keep_go_and_those_of_others_stay,
        what_an_attempt_has_left_is_no_backup_and_goes,
        no_backup_is_taken_of_another_cluster_or_without_a_member,
        no_backup_is_taken_while_the_data_of_any_member_are_suspect,
        a_backup_over_tls_shows_the_clients_certificate,
    ];
    // Those that take longest come first, so that none of them is left over at the end.
    let first = [&failures[..], &members, &flag_values(), &maintenance, &backup, &audit].concat();
    [&first[..], &lag, &cut_off, &data, &auth, &configuration].concat()
}

fn flag_values() -> Vec<Named> {
    tests![flag_values:
        values_that_the_gate_takes_are_those_that_etcd_starts_with,
        flags_that_the_gate_takes_together_are_those_that_etcd_starts_with,
    ]
    .to_vec()
}

/// Those that measure, and run only where they are asked for, alone.
fn measurements() -> Vec<Named> {
    tests![initial_check:
        a_member_starts_with_and_without_a_comparison_of_all_data,
    ]
    .to_vec()
}

fn pure() -> Vec<(&'static str, fn())> {
    pure_tests![checker_selftest:
        a_store_without_faults_is_believed,
        a_lost_write_is_found,
        a_history_that_lost_its_end_is_found,
        a_lost_deletion_is_found,
        a_stale_read_is_found,
        a_write_that_came_before_one_that_had_been_reported_is_found,
        a_doubled_write_is_found,
        an_unknown_write_that_happened_twice_is_found,
        two_calls_that_claim_one_change_are_found,
        a_failed_write_that_happened_is_found,
        a_write_and_a_deletion_without_a_writer_are_found,
        an_unknown_write_that_happened_before_it_was_sent_is_found,
        a_wrong_value_is_found,
        a_comparison_that_should_not_have_held_is_found,
    ]
    .into_iter()
    .chain(pure_tests![conformance: little_that_is_explained_and_much_that_is_asked_again_fail])
    .chain(pure_tests![flag_values: every_flag_has_values])
    .collect()
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A test that leaves no logs of an earlier run beside its own.
fn test(name: String, limit: Duration, run: impl FnOnce() + Send + 'static) -> Test {
    let title = name.clone();
    Test::new(name, limit, move || {
        bed::forget_logs(&title);
        run();
    })
}

fn main() -> ExitCode {
    let mut tests: Vec<_> = pure().into_iter().map(|(name, run)| test(name.to_owned(), LIMIT, run)).collect();
    for (name, run, limit, is_long) in conformance::TESTS {
        tests.push(test(format!("conformance::{name}"), limit, run).long(is_long));
    }
    for version in EtcdVersion::ALL {
        for (name, run) in on_every_version() {
            let name = format!("v{}::{name}", version.minor());
            tests.push(test(name, LIMIT, move || runtime().block_on(run(version))));
        }
        for (name, run) in measurements() {
            let name = format!("v{}::{name}", version.minor());
            tests.push(test(name, LONG, move || runtime().block_on(run(version))).long(true));
        }
    }
    let mut harness = Harness::from_args().keep_logs(bed::keep_logs);
    harness.run(tests, THREADS);
    harness.end()
}
