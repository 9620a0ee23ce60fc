//! Tests of `gatehouse migrate` on real databases: PostgreSQL and MariaDB, each in a folder of its own, and files of SQLite.
//! Some of them are carried out as DatabaseMigrations, on a control plane.
//!
//! `cargo test --test migrate -- FILTER` runs what matches, and with `--include-ignored` also on MySQL, which is fetched.
//! A missing part is an error that says what installs it; nothing is skipped in silence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it expects by unwrapping"
)]

mod ancestors;
mod bed;
mod concurrent;
mod corpus;
mod crashes;
mod dumps;
mod fenced;
mod folders;
mod going_on;
mod mysql;
mod objects;
mod older;
mod postgres;
mod redaction;
mod reports;
mod resumed;
mod reverting;
mod searched;
mod sessions;
mod splitting;
mod sqlite;
mod tls;
mod waiting;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kit::bed::Bed as ControlPlane;
use kit::databases::{Server, Servers};
use kit::harness::{Harness, Test};

/// Side by side, however few cores there are: runs mostly wait for locks.
const THREADS: usize = 6;
/// For a test: several waits in a row may last as long as any, so that the last one says what it lacked. A test of the
/// corpus, which goes through all of it at night, has four times that.
const LIMIT: Duration = Duration::from_mins(12);

/// A test and its name.
type Named = (String, Run);

/// A test on the server that it is given.
type OnServer = fn(&Server);

/// What a test runs on.
#[derive(Clone, Copy)]
enum Run {
    /// On those that it names itself.
    Servers(fn(&Servers)),
    /// On MariaDB.
    MariaDb(OnServer),
    /// On MySQL.
    MySql(OnServer),
    /// On servers, and as objects of a control plane.
    Objects(fn(&Servers, &ControlPlane)),
}

/// What the tests that are asked for run on.
struct Ground {
    servers: Servers,
    plane: Option<ControlPlane>,
}

impl Run {
    fn on(self, Ground { servers, plane }: &Ground) {
        match self {
            Self::Servers(run) => run(servers),
            Self::MariaDb(run) => run(&servers.mariadb),
            Self::MySql(run) => run(servers.mysql.as_ref().expect("started for it")),
            Self::Objects(run) => run(servers, plane.as_ref().expect("started for it")),
        }
    }

    /// Whether a test runs at night alone: MySQL is fetched from where it changes, and other work would be measured too.
    fn is_long(self, name: &str) -> bool {
        matches!(self, Self::MySql(_)) || name.starts_with("speed::")
    }
}

/// The tests of a module, by name.
macro_rules! tests {
    ($module:ident: $($test:ident),* $(,)?) => {
        [$((concat!(stringify!($module), "::", stringify!($test)).to_owned(), Run::Servers($module::$test))),*]
    };
}

/// The tests of a module that run on the server that they are given, by name.
macro_rules! on_server {
    ($module:ident: $($test:ident),* $(,)?) => {
        [$((stringify!($test), $module::$test as OnServer)),*]
    };
}

fn all() -> Vec<Named> {
    let crashes = tests![crashes:
        a_run_that_is_killed_in_a_transaction_leaves_nothing,
        a_run_that_is_killed_outside_of_one_leaves_a_doubt_that_is_resolved_both_ways,
        an_idempotent_script_runs_again_after_a_doubt,
        a_run_that_is_asked_to_end_ends_its_statement_first,
        a_run_that_is_killed_at_any_point_applies_each_script_once,
        a_server_that_restarts_leaves_nothing_of_a_transaction_and_a_doubt_outside_of_one,
    ];
    let concurrent = tests![concurrent:
        two_runs_at_once_apply_each_script_once,
        a_failed_concurrent_index_never_counts_as_applied,
        an_index_that_another_session_left_is_not_the_scripts,
        a_reader_is_waited_for_no_longer_than_the_lock_timeout,
        a_concurrent_index_outwaits_the_lock_timeout,
    ];
    let fenced = tests![fenced:
        a_run_whose_series_was_taken_over_commits_nothing_more,
        two_pods_of_one_run_apply_each_script_once,
    ];
    let reverting = tests![reverting:
        what_this_object_applied_is_taken_back,
        a_failed_run_is_taken_back_where_that_is_asked_for,
        nothing_is_taken_back_where_a_down_script_lacks,
    ];
    let redaction = tests![redaction:
        neither_credentials_nor_values_are_shown,
        a_wrong_password_is_not_shown,
    ];
    let waiting = tests![waiting:
        an_application_waits_for_a_script,
        an_application_needs_to_read_the_history_alone,
    ];
    let tls = tests![tls:
        certificates_are_checked_as_the_mode_says,
        certificates_of_mariadb_are_checked_as_the_mode_says,
        a_client_certificate_lets_in,
    ];
    [
        &objects()[..],
        &tests![ancestors: their_samples_run],
        &concurrent,
        &on_corpus(),
        &crashes,
        &fenced,
        &folders(),
        &older(),
        &on_postgres(),
        &dumps(),
        &tests![resumed: a_baseline_counts_whole_or_not_at_all],
        &reverting,
        &redaction,
        &tests![reports: what_keeps_a_run_from_being_begun_is_reported],
        &tls,
        &waiting,
        &many(),
        &on_mysql(),
        &on_sqlite(),
    ]
    .concat()
}

/// On databases that are older than their scripts.
fn older() -> Vec<Named> {
    tests![older:
        a_forgotten_baseline_runs_nothing,
        all_scripts_run_where_that_is_asked_for,
        tables_that_are_not_where_scripts_make_theirs_are_no_reason,
        what_a_script_set_before_it_failed_is_no_change,
        a_baseline_that_does_not_count_is_named,
        an_empty_database_gets_all_scripts_whatever_baseline_is_named,
    ]
    .to_vec()
}

/// Folders of files, and the texts in them.
fn folders() -> Vec<Named> {
    tests![folders:
        folders_of_other_tools_are_read_in_order,
        folders_that_mean_something_else_are_refused_by_name,
        sections_of_other_tools_are_refused_with_their_line,
        a_down_script_with_sections_is_refused_before_its_script_runs,
        a_script_that_counts_by_the_baseline_need_not_be_one_that_runs,
        a_script_of_comments_alone_counts_as_applied,
        a_byte_order_mark_hides_nothing,
        what_is_half_applied_names_the_line_ends_too,
        an_order_by_text_that_was_begun_is_not_changed_in_silence,
        placeholders_of_other_tools_are_warned_of,
        a_file_that_is_not_there_is_no_empty_database,
        an_edited_script_is_accepted_by_its_checksum,
    ]
    .to_vec()
}

/// The corpus of scripts, on each engine.
fn on_corpus() -> Vec<Named> {
    macro_rules! tests {
        ($module:literal: $($test:ident),* $(,)?) => {
            [$(
                (concat!($module, "::postgres::", stringify!($test)), Run::Servers(corpus::on_postgres::$test)),
                (concat!($module, "::sqlite::", stringify!($test)), Run::Servers(corpus::on_sqlite::$test)),
                (concat!($module, "::mariadb::", stringify!($test)), Run::MariaDb(corpus::on_server::$test)),
                (concat!($module, "::mysql::", stringify!($test)), Run::MySql(corpus::on_server::$test)),
            )*]
        };
    }
    let speed = tests!["speed": a_megabyte_is_read, ten_thousand_statements];
    let tests = tests!["corpus":
        all_are_equal,
        failures_are_mended,
        deaths_are_survived,
        dumps_run_again,
        is_refused_by_name,
        a_folder_of_hundreds,
    ];
    tests.into_iter().chain(speed).map(|(name, run)| (name.to_owned(), run)).collect()
}

/// As objects of a control plane.
fn objects() -> Vec<Named> {
    macro_rules! tests {
        ($($module:ident: $test:ident),* $(,)?) => {
            vec![$((concat!(stringify!($module), "::", stringify!($test)).to_owned(), Run::Objects($module::$test))),*]
        };
    }
    tests![
        searched: nothing_in_a_cluster_shows_credentials_scripts_or_values,
        objects: a_doubt_is_settled_by_the_word_of_a_person,
        ancestors: their_samples_are_reconciled,
    ]
}

/// What a run on PostgreSQL does, and what it refuses.
fn on_postgres() -> Vec<Named> {
    tests![postgres:
        three_scripts_run_once_however_often_they_are_asked_for,
        an_edited_script_is_blocked_with_both_checksums,
        an_accepted_checksum_changes_nothing_else_of_its_row,
        a_script_before_an_applied_one_runs_where_that_is_allowed,
        a_plan_and_a_rehearsal_write_nothing,
        a_rehearsal_is_like_applying,
        a_plan_is_reported_once_the_history_is_read,
        another_plan_than_the_approved_one_does_not_run,
        a_baseline_counts_as_applied,
        a_baseline_that_was_forgotten_counts_from_the_next_run_on,
        a_check_that_finds_rows_fails,
        a_server_that_takes_no_writes_is_tried_again,
        a_statement_that_takes_too_long_is_ended,
        a_script_cannot_leave_its_transaction,
        what_a_script_leaves_in_its_session_does_not_reach_the_next_one,
        the_server_keeps_a_quiet_connection,
        scripts_of_a_folder_run_without_an_assignment,
    ]
    .to_vec()
}

/// What dumps and scripts of other tools have in them.
fn dumps() -> Vec<Named> {
    tests![dumps:
        a_limit_holds_whatever_a_script_sets,
        a_limit_holds_while_a_script_is_committed,
        no_end_of_a_transaction_hides,
        what_is_for_another_program_is_refused_by_name,
        every_answer_of_the_server_is_understood,
        what_needs_no_transaction_is_known_before_anything_runs,
        a_rehearsal_skips_what_needs_no_transaction,
        a_rehearsal_reports_what_it_cannot_show,
        a_rehearsal_checks_what_a_commit_checks,
        a_rehearsal_defers_constraints_within_each_script,
        a_failure_names_its_statement_and_its_line,
    ]
    .to_vec()
}

/// With many scripts, on each server.
fn many() -> Vec<Named> {
    let run: OnServer = reverting::many_scripts_run_and_are_taken_back_in_order;
    let name = |engine: &str| format!("{engine}::many_scripts_run_and_are_taken_back_in_order");
    let postgres = Run::Servers(|servers| {
        reverting::many_scripts_run_and_are_taken_back_in_order(&servers.postgres);
    });
    vec![(name("postgres"), postgres), (name("mariadb"), Run::MariaDb(run)), (name("mysql"), Run::MySql(run))]
}

fn on_sqlite() -> Vec<Named> {
    tests![sqlite:
        scripts_run_once_and_fail_whole,
        a_baseline_that_was_forgotten_counts_from_the_next_run_on,
        a_forgotten_baseline_runs_nothing,
        all_scripts_run_where_that_is_asked_for,
        two_runs_at_once_apply_each_script_once,
        a_rehearsal_leaves_nothing,
        a_rehearsal_says_how_its_script_failed,
        a_run_at_work_is_not_in_doubt,
        nothing_is_taken_back_before_a_doubt_is_settled,
        what_only_reads_makes_no_file,
        a_reader_at_the_commit_keeps_the_script_out_until_it_ends,
        a_run_that_is_asked_to_end_ends_its_statement_first,
        many_scripts_run_and_are_taken_back_in_order,
        what_a_script_leaves_in_its_session_does_not_reach_the_next_one,
        a_failure_names_its_cause_and_its_line,
        what_needs_no_transaction_is_known_before_anything_runs,
    ]
    .to_vec()
}

/// On MariaDB and MySQL.
fn on_mysql() -> Vec<Named> {
    let scripts = on_server![mysql:
        a_script_goes_on_behind_what_has_run_of_it,
        changes_of_rows_are_taken_back,
        nothing_is_taken_back_beneath_a_script_that_is_half_applied,
        a_script_in_doubt_is_taken_back_once_it_is_known_how_it_ended,
        a_run_that_is_killed_leaves_a_doubt,
        two_runs_at_once_apply_each_script_once,
        a_run_that_is_asked_to_end_ends_its_statement_first,
        a_run_at_work_is_not_in_doubt,
        a_reader_is_waited_for_no_longer_than_the_lock_timeout,
        what_a_script_set_is_set_again_where_it_goes_on,
        what_a_script_sets_does_not_reach_the_next_one,
        what_commits_by_itself_runs_statement_by_statement,
        values_are_not_shown,
    ];
    let resumed = on_server![resumed:
        what_is_left_of_a_script_goes_on_where_it_stood,
        a_down_script_goes_on_behind_what_has_run_of_it,
        what_is_half_taken_back_is_taken_back_before_it_runs_again,
        a_down_script_in_doubt_goes_on_as_the_answer_says,
        a_call_that_failed_half_way_is_in_doubt,
    ];
    let sessions = on_server![sessions:
        a_script_that_no_other_session_follows_is_applied,
        nothing_is_taken_back_for_want_of_a_session,
        no_script_runs_where_the_lock_was_not_passed_on,
        nothing_is_taken_back_without_the_lock,
    ];
    let splitting = on_server![splitting:
        a_name_that_is_a_keyword_opens_no_block,
        several_statements_in_one_text_do_nothing,
        a_delimiter_is_the_clients,
        every_form_of_a_program_is_one_statement,
        a_session_is_the_clients,
        quotes_are_read_as_the_session_reads_them,
        what_takes_locks_or_transactions_is_refused_before_anything_runs,
    ];
    let both = scripts.into_iter().chain(resumed).chain(sessions).chain(splitting).chain(going_on());
    let both: Vec<(&str, OnServer)> = both.collect();
    let mariadb: Vec<Named> =
        both.iter().map(|(test, run)| (format!("mariadb::{test}"), Run::MariaDb(*run))).collect();
    let mysql: Vec<Named> =
        both.iter().map(|(test, run)| (format!("mysql::{test}"), Run::MySql(*run))).collect();
    let encrypted = (
        "mysql::it_asks_for_an_encrypted_connection".to_owned(),
        Run::MySql(mysql::it_asks_for_an_encrypted_connection),
    );
    [&mariadb[..], &mysql, &[encrypted]].concat()
}

/// How a script of MySQL or MariaDB goes on in another session.
fn going_on() -> Vec<(&'static str, OnServer)> {
    on_server![going_on:
        a_script_that_needs_its_session_is_refused_by_line,
        a_temporary_table_and_a_value_of_no_return_are_lost,
        a_statement_that_is_tried_again_has_its_session,
        rows_that_nothing_takes_back_do_not_double,
        rows_that_nothing_takes_back_stay_before_a_refused_statement,
        rows_that_a_trigger_leaves_are_in_doubt,
        a_statement_whose_effect_shows_is_no_doubt,
        rows_and_their_row_of_the_history_are_committed_together,
        a_statement_whose_effect_does_not_show_is_in_doubt,
        an_answer_about_what_the_database_shows_counts_for_nothing,
        rows_that_get_numbers_are_in_doubt,
        a_statement_that_was_never_sent_did_not_take_effect,
        a_first_statement_that_may_run_again_may_have_run,
        statements_that_share_a_transaction_stay_if_one_is_refused,
        what_did_not_run_is_no_doubt,
        a_statement_that_is_too_long_is_found_before_anything_runs,
        a_right_that_lacks_is_the_scripts,
    ]
    .to_vec()
}

fn main() -> ExitCode {
    let mut harness = Harness::from_args().keep_logs(kit::bed::keep_logs);
    let wanted = |(name, run): &Named| harness.lists() || harness.wants(name, run.is_long(name));
    let tests: Vec<_> = all().into_iter().filter(wanted).collect();
    if harness.lists() || tests.is_empty() {
        let listed = |(name, run): Named| Test::new(&name, LIMIT, || {}).long(run.is_long(&name));
        harness.run(tests.into_iter().map(listed).collect(), THREADS);
        return harness.end();
    }
    let ground = match start(&tests) {
        Ok(ground) => Arc::new(ground),
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let tests = tests.into_iter().map(|(name, run)| {
        let ground = Arc::clone(&ground);
        let limit = if name.starts_with("corpus::") { LIMIT * 4 } else { LIMIT };
        Test::new(&name, limit, move || run.on(&ground)).long(run.is_long(&name))
    });
    harness.run(tests.collect(), THREADS);
    drop(ground);
    harness.end()
}

fn start(tests: &[Named]) -> Result<Ground, String> {
    let asks = |what: fn(&Run) -> bool| tests.iter().any(|(_, run)| what(run));
    let mut servers = Server::start_all(None)?;
    if asks(|run| matches!(run, Run::MySql(_))) {
        let server = Server::mysql()?;
        println!("figure: MySQL {}", server.sql("", "SELECT VERSION()")[0][0]);
        servers.mysql = Some(server);
    }
    let plane = asks(|run| matches!(run, Run::Objects(_))).then(objects::control_plane).transpose()?;
    Ok(Ground { servers, plane })
}
