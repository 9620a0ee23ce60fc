//! The binary takes the command lines that its pods are given.

use std::collections::BTreeSet;

use clap::{CommandFactory as _, Parser as _};
use gatehouse::cli::Cli;
use gatehouse::runtime::telemetry::FILTER_VARIABLE;
use kit::deploy::{Rendered, deployment, everything, of_kind, variant};
use serde_json::Value;

/// Variables that are no options of ours.
const OF_OTHERS: [&str; 2] = [FILTER_VARIABLE, "HTTPS_PROXY"];

fn container(objects: &[Value]) -> &Value {
    &deployment(objects)["spec"]["template"]["spec"]["containers"][0]
}

fn arguments(objects: &[Value]) -> Vec<String> {
    let arguments = container(objects)["args"].as_array().expect("arguments");
    arguments.iter().map(|one| one.as_str().expect("text").to_owned()).collect()
}

#[test]
fn the_binary_takes_every_command_line() {
    for Rendered { source, objects, .. } in everything() {
        if of_kind(objects, "Deployment").is_empty() {
            continue;
        }
        let words = std::iter::once("gatehouse".to_owned()).chain(arguments(objects));
        if let Err(error) = Cli::try_parse_from(words) {
            panic!("{source}: {error}");
        }
    }
}

#[test]
fn the_binary_reads_every_variable() {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").expect("a command");
    let options = serve.get_arguments().chain(command.get_arguments());
    let known: BTreeSet<_> =
        options.filter_map(|option| option.get_env()).filter_map(|name| name.to_str()).collect();
    for Rendered { source, objects, .. } in everything() {
        for deployment in of_kind(objects, "Deployment") {
            let variables = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
            for variable in variables.as_array().expect("variables") {
                let name = variable["name"].as_str().expect("a name");
                assert!(known.contains(name) || OF_OTHERS.contains(&name), "{source}: {name}");
            }
        }
    }
}

/// Seconds of `--drain-delay=12s`.
fn seconds(arguments: &[String], option: &str) -> u64 {
    let value = arguments.iter().find_map(|one| one.strip_prefix(option)?.strip_prefix('='));
    value.and_then(|value| value.strip_suffix('s')?.parse().ok()).expect("seconds")
}

#[test]
fn a_pod_has_more_time_to_end_than_its_drain_takes() {
    for Rendered { source, objects, .. } in everything() {
        for deployment in of_kind(objects, "Deployment") {
            let pod = &deployment["spec"]["template"]["spec"];
            let arguments = arguments(objects);
            let drain = seconds(&arguments, "--drain-delay") + seconds(&arguments, "--drain-deadline");
            // Ten seconds for connections that are being closed, five for the operator (`Patience`).
            let grace = pod["terminationGracePeriodSeconds"].as_u64().expect("seconds");
            assert!(grace >= drain + 10 + 5, "{source}: {grace} s for a drain of {drain} s");
        }
    }
}

#[test]
fn ports_of_pods_are_those_that_are_listened_on() {
    for Rendered { source, objects, .. } in everything() {
        if of_kind(objects, "Deployment").is_empty() {
            continue;
        }
        let arguments = arguments(objects);
        for (port, option) in [(0, "--listen="), (1, "--health-listen=")] {
            let port = container(objects)["ports"][port]["containerPort"].as_u64().expect("a port");
            let listens = arguments.iter().find(|one| one.starts_with(option)).expect("an address");
            assert!(listens.ends_with(&format!(":{port}")), "{source}: {listens} and {port}");
        }
    }
}

#[test]
fn more_arguments_come_last() {
    assert_eq!(arguments(variant("everything")).last().map(String::as_str), Some("--worker-threads=2"));
}
