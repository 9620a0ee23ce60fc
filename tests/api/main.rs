//! Tests on a real API server: etcd, kube-apiserver and kube-controller-manager as `make tools` builds them, and
//! gatehouse at their gate, running as its ServiceAccount with nothing but the shipped rights.
//!
//! One control plane is started for each version of Kubernetes, all tests of it run side by side in namespaces of
//! their own, and it is torn down at the end, whatever the end is. Tests that kill, restart or take away something
//! that all share start a control plane of their own.
//!
//! `cargo test --test api -- FILTER` runs what matches; names begin with the version: `v1.36::verbs::…`.
//! A missing part is an error that says what to run; nothing is skipped in silence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what it expects by unwrapping"
)]

mod admission;
mod ancestors;
mod certificates;
mod conversion;
mod corpus;
mod direct;
mod etcdcluster;
mod leader;
mod lifecycle;
mod support;
mod tdset;
mod verbs;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use testbed::{KubernetesVersion, Options};

use support::{Bed, Gate};

/// What a test does with a control plane that has gatehouse at its gate.
type Run = fn(&Bed);

/// A test and its name.
type Test = (&'static str, Run);

/// A test that needs a control plane of its own.
type Alone = (&'static str, fn());

/// Which versions a module's tests run on.
struct Module {
    name: &'static str,
    tests: &'static [Test],
    versions: &'static [KubernetesVersion],
}

const NEWEST: &[KubernetesVersion] = &[KubernetesVersion::V1_36];
const EVERY: &[KubernetesVersion] = &KubernetesVersion::ALL;

const MODULES: &[Module] = &[
    Module { name: "admission", tests: admission::TESTS, versions: EVERY },
    Module { name: "ancestors", tests: ancestors::TESTS, versions: NEWEST },
    Module { name: "certificates", tests: certificates::TESTS, versions: NEWEST },
    Module { name: "conversion", tests: conversion::TESTS, versions: EVERY },
    Module { name: "corpus", tests: corpus::TESTS, versions: EVERY },
    Module { name: "etcdcluster", tests: etcdcluster::TESTS, versions: NEWEST },
    Module { name: "tdset", tests: tdset::TESTS, versions: NEWEST },
    Module { name: "tdset::autoscalers", tests: tdset::autoscalers::TESTS, versions: NEWEST },
    Module { name: "tdset::conflicts", tests: tdset::conflicts::TESTS, versions: NEWEST },
    Module { name: "tdset::counts", tests: tdset::counts::TESTS, versions: NEWEST },
    Module { name: "tdset::dates", tests: tdset::dates::TESTS, versions: NEWEST },
    Module { name: "tdset::targets", tests: tdset::targets::TESTS, versions: NEWEST },
    Module { name: "verbs", tests: verbs::TESTS, versions: EVERY },
];

const ALONE: &[(&str, &[Alone])] = &[
    ("leader", leader::TESTS),
    ("lifecycle", lifecycle::TESTS),
    ("tdset", tdset::alone::TESTS),
    ("tdset::mortal", tdset::mortal::TESTS),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut failed = false;
    for version in KubernetesVersion::ALL {
        let wanted = wanted(&arguments, version);
        if wanted.is_empty() {
            continue;
        }
        if arguments.list {
            let trials = wanted.into_iter().map(|(name, _)| Trial::test(name, || Ok(())));
            failed |= libtest_mimic::run(&arguments, trials.collect()).has_failed();
            continue;
        }
        let bed = match Bed::start(&Options { version, ..options() }, Gate::install) {
            Ok(bed) => Arc::new(bed),
            Err(error) => {
                eprintln!("error: unable to start Kubernetes {} with gatehouse: {error}", version.minor());
                return ExitCode::FAILURE;
            }
        };
        let trials = wanted.into_iter().map(|(name, test)| {
            let bed = Arc::clone(&bed);
            Trial::test(name, move || finished(std::panic::AssertUnwindSafe(|| test(&bed))))
        });
        let outcome = libtest_mimic::run(&arguments, trials.collect());
        if outcome.has_failed() {
            bed.show_logs();
        }
        failed |= outcome.has_failed();
    }
    let alone = ALONE.iter().flat_map(|(module, tests)| {
        tests
            .iter()
            .map(move |(name, test)| Trial::test(format!("alone::{module}::{name}"), move || finished(test)))
    });
    let outcome = libtest_mimic::run(&arguments, alone.collect());
    failed |= outcome.has_failed();
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn options() -> Options {
    Options::from_env().unwrap_or_else(|error| panic!("{error}"))
}

/// The tests that this run asks for.
fn wanted(arguments: &Arguments, version: KubernetesVersion) -> Vec<(String, Run)> {
    let modules = MODULES.iter().filter(|module| module.versions.contains(&version));
    let named = modules.flat_map(|module| {
        let prefix = format!("v{}::{}", version.minor(), module.name);
        module.tests.iter().map(move |(name, run)| (format!("{prefix}::{name}"), *run))
    });
    let asked_for =
        |name: &str| arguments.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    named.filter(|(name, _)| asked_for(name)).collect()
}

/// A panic is a failure with the message that was printed.
fn finished(test: impl FnOnce() + std::panic::UnwindSafe) -> Result<(), Failed> {
    std::panic::catch_unwind(test).map_err(|panic| {
        let owned = panic.downcast_ref::<String>().map(String::as_str);
        owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().into()
    })
}
