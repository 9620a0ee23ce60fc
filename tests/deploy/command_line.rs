//! The binary takes the command lines that its pods are given.

use std::collections::BTreeSet;

use clap::{CommandFactory as _, Parser as _};
use gatehouse::cli::Cli;
use gatehouse::runtime::telemetry::FILTER_VARIABLE;
use kit::deploy::{Rendered, deployment, everything, of_kind, variant};
use serde_json::Value;

/// Variables that are no options of ours.
const OF_OTHERS: [&str; 2] = [FILTER_VARIABLE, "HTTPS_PROXY"];

fn container(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]
}

fn arguments(deployment: &Value) -> Vec<String> {
    let arguments = container(deployment)["args"].as_array().expect("arguments");
    arguments.iter().map(|one| one.as_str().expect("text").to_owned()).collect()
}

#[test]
fn the_binary_takes_every_command_line() {
    for Rendered { source, objects, .. } in everything() {
        for deployment in of_kind(objects, "Deployment") {
            let words = std::iter::once("gatehouse".to_owned()).chain(arguments(deployment));
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{source}: {error}");
            }
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
            let variables = &container(deployment)["env"];
            for variable in variables.as_array().expect("variables") {
                let name = variable["name"].as_str().expect("a name");
                assert!(known.contains(name) || OF_OTHERS.contains(&name), "{source}: {name}");
            }
        }
    }
}

/// Seconds of `--drain-delay=12s`. Nothing drains where that is not said: controllers without a gate.
fn seconds(arguments: &[String], option: &str) -> u64 {
    let value = arguments.iter().find_map(|one| one.strip_prefix(option)?.strip_prefix('='));
    let Some(value) = value else {
        assert!(arguments.contains(&"--only=controllers".to_owned()), "{option} in {arguments:?}");
        return 0;
    };
    value.strip_suffix('s').and_then(|value| value.parse().ok()).expect("seconds")
}

#[test]
fn a_pod_has_more_time_to_end_than_its_drain_takes() {
    for Rendered { source, objects, .. } in everything() {
        for deployment in of_kind(objects, "Deployment") {
            let pod = &deployment["spec"]["template"]["spec"];
            let arguments = arguments(deployment);
            let drain = seconds(&arguments, "--drain-delay") + seconds(&arguments, "--drain-deadline");
            // Ten seconds for connections that are being closed, five for the controllers (`Patience`).
            let grace = pod["terminationGracePeriodSeconds"].as_u64().expect("seconds");
            assert!(grace >= drain + 10 + 5, "{source}: {grace} s for a drain of {drain} s");
        }
    }
}

#[test]
fn ports_of_pods_are_those_that_are_listened_on() {
    for Rendered { source, objects, .. } in everything() {
        for deployment in of_kind(objects, "Deployment") {
            let arguments = arguments(deployment);
            let ports = container(deployment)["ports"].as_array().expect("ports");
            let options = [("webhook", "--listen="), ("metrics", "--health-listen=")];
            let listens = options.map(|(name, option)| {
                let listens = arguments.iter().find(|one| one.starts_with(option));
                let port = ports.iter().find(|port| port["name"] == name);
                let port = port.map(|port| port["containerPort"].as_u64().expect("a port"));
                let is_same = listens.zip(port).is_none_or(|(one, port)| one.ends_with(&format!(":{port}")));
                assert!(is_same && listens.is_some() == port.is_some(), "{source}: {listens:?} and {port:?}");
                port.is_some()
            });
            let serves_reviews = !arguments.contains(&"--only=controllers".to_owned());
            assert_eq!(listens, [serves_reviews, true], "{source}");
        }
    }
}

#[test]
fn what_is_stored_is_left_alone_where_the_values_say_so() {
    let is_said =
        |name: &str| arguments(deployment(variant(name))).contains(&"--migrate-storage=false".to_owned());
    assert_eq!(["default", "everything"].map(is_said), [false, true]);
}

#[test]
fn more_arguments_come_last() {
    let arguments = arguments(deployment(variant("everything")));
    assert_eq!(arguments.last().map(String::as_str), Some("--worker-threads=2"));
}
