//! The pure code, given unforeseen input: reviews, conversions, schedules and quantities that are random, broken, or a
//! little off a sound one.
//!
//! Each target is a pair of functions: one makes an input from a stream of numbers, the other takes any bytes and
//! panics where something does not hold of them. Every run tries the corpus (`tests/fuzz/corpus/TARGET`), each file an
//! input that once found something or lies where something could be found, and some drawn ones.
//!
//! ```text
//! cargo test --workspace --test fuzz                                            the corpus, and some cases of each target
//! CASES=100000 FUZZ_SEED=7 cargo test --workspace --test fuzz                   more, and others
//! FUZZ_SEED=7 FUZZ_CASE=4711 cargo test --workspace --test fuzz -- quantity     a single one
//! ```

#![expect(clippy::expect_used, clippy::panic, reason = "a test says what it expects by panicking")]

mod corpus;
mod cron;
mod drawn;
mod lens;
mod quantity;
mod reviews;
mod run;
mod text;
mod timetable;
mod zones;

use run::{Target, run};

/// A test for each target, of its name: that of its folder in the corpus.
macro_rules! targets {
    ($($name:ident, $cases:literal: $($module:ident)::+;)+) => {$(
        #[test]
        fn $name() {
            let name = stringify!($name);
            run(&Target { name, cases: $cases, make: $($module)::+::make, check: $($module)::+::check });
        }
    )+};
}

// Each with the cases that `.ci/run` tries.
targets! {
    admission, 1000: reviews::admission;
    annotations, 1000: lens::forged;
    conversion, 1000: reviews::conversion;
    cron, 1000: cron;
    edits, 1000: lens::edits;
    quantity, 5000: quantity;
    timetable, 1000: timetable;
}
