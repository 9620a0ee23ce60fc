//! `testbed`: a control plane, or a whole cluster, that stays up until it is taken down.

use std::{
    error::Error as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::{Args, Parser, Subcommand};
use testbed::{
    Error, KubernetesVersion, Options,
    instance::{Instances, Record},
};

/// A real Kubernetes control plane on this machine, listening on 127.0.0.1 alone, or a whole cluster with a
/// node in a network of its own.
#[derive(Debug, Parser)]
#[command(name = "testbed")]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Starts a control plane unless it is up; prints the path of its kubeconfig
    Up {
        #[command(flatten)]
        name: Name,
        /// The minor version of Kubernetes: 1.37 or 1.34
        #[arg(long, value_name = "VERSION", env = "TESTBED_KUBERNETES")]
        kubernetes: Option<KubernetesVersion>,
        /// Where data and logs go instead of the state folder; new or empty
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Starts no controllers
        #[arg(long, conflicts_with = "node")]
        no_controller_manager: bool,
        /// Makes a whole cluster of it, with a node that runs pods; root on Linux alone
        #[arg(long)]
        node: bool,
    },
    /// Stops all that runs under the name, also what a crash left, and removes its folders
    Down {
        #[command(flatten)]
        name: Name,
    },
    /// Shows what runs, under every name or one; fails if that one is not up
    Status {
        #[arg(long)]
        name: Option<String>,
    },
    /// Prints the path of the kubeconfig of one that is up
    Kubeconfig {
        #[command(flatten)]
        name: Name,
    },
    /// Loads the images of archives (of OCI or of Docker) onto the node
    Load {
        #[command(flatten)]
        name: Name,
        #[arg(required = true, value_name = "FILE")]
        archives: Vec<PathBuf>,
    },
    /// Copies logs of components and containers, objects and events into a folder
    Logs {
        #[command(flatten)]
        name: Name,
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
    },
    /// Runs a command on the node, where it sees the node's network, files and processes
    OnNode {
        #[command(flatten)]
        name: Name,
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Starts a command beside the control plane, to be stopped with it; prints its process id
    Exec {
        #[command(flatten)]
        name: Name,
        /// What the process is called in `status` and in the name of its log
        #[arg(long)]
        label: String,
        /// Where its output is appended
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
        /// Stops the one that runs under the label first
        #[arg(long)]
        replace: bool,
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct Name {
    /// Which control plane
    #[arg(long, default_value = "default")]
    name: String,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprint!("error: {error}");
            let mut cause = error.source();
            while let Some(inner) = cause {
                eprint!(": {inner}");
                cause = inner.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

fn run(action: Action) -> Result<ExitCode, Error> {
    let instances = Instances::from_env()?;
    match action {
        Action::Up { name: Name { name }, kubernetes, folder, no_controller_manager, node } => {
            let controller_manager = !no_controller_manager;
            let options = Options { folder, controller_manager, node, ..Options::from_env()? };
            up(&instances, &name, kubernetes, options)?;
        }
        Action::Down { name: Name { name } } => {
            let state = if instances.down(&name)? { "is down" } else { "was not up" };
            eprintln!("`{name}` {state}");
        }
        Action::Status { name } => return status(&instances, name.as_deref()),
        Action::Kubeconfig { name: Name { name } } => {
            let record = instances.read(&name)?.filter(Record::is_up).ok_or(Error::NotUp(name))?;
            println!("{}", record.kubeconfig.display());
        }
        Action::Load { name: Name { name }, archives } => {
            for archive in archives {
                instances.load_image(&name, &archive)?;
                eprintln!("{} is loaded", archive.display());
            }
        }
        Action::Logs { name: Name { name }, into } => {
            instances.collect_logs(&name, &into)?;
            eprintln!("logs, objects and events of `{name}` are in {}", into.display());
        }
        Action::OnNode { name: Name { name }, command } => return on_node(&instances, &name, &command),
        Action::Exec { name: Name { name }, label, log, replace, command } => {
            if let Some((program, arguments)) = command.split_first() {
                let mut command = Command::new(program);
                command.args(arguments);
                let process = instances.exec(&name, &label, &mut command, log.as_deref(), replace)?;
                eprintln!("`{label}` started; its log is {}", process.log.display());
                println!("{}", process.id.pid());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn on_node(instances: &Instances, name: &str, command: &[String]) -> Result<ExitCode, Error> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(ExitCode::FAILURE);
    };
    let mut command = instances.on_node(name, Path::new(program))?;
    let status = command.args(arguments).status();
    let status = status.map_err(|source| Error::Io { doing: "running nsenter".to_owned(), source })?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn up(
    instances: &Instances,
    name: &str,
    version: Option<KubernetesVersion>,
    options: Options,
) -> Result<(), Error> {
    let (record, started) = match version {
        Some(version) => instances.up_with_version(name, version, options)?,
        None => instances.up(name, options)?,
    };
    let state = if started { "is up" } else { "is up already" };
    eprintln!("`{name}` {state}: kubernetes {} at {}", record.kubernetes, record.server);
    if !record.control_plane.iter().any(|process| process.label == "kube-controller-manager") {
        eprintln!("it has no controllers: Deployments and Jobs get no Pods and garbage is not collected");
    }
    println!("{}", record.kubeconfig.display());
    Ok(())
}

fn status(instances: &Instances, name: Option<&str>) -> Result<ExitCode, Error> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => instances.names()?,
    };
    if names.is_empty() {
        println!("nothing is up");
    }
    let mut all_up = true;
    for each in names {
        if let Some(record) = instances.read(&each)? {
            all_up &= record.is_up();
            show(&each, &record);
        } else {
            all_up = false;
            println!("{each}: not up");
        }
    }
    Ok(if name.is_some() && !all_up { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(name: &str, record: &Record) {
    let state = if record.is_up() { "up" } else { "not whole" };
    println!("{name}: {state}, kubernetes {} at {}", record.kubernetes, record.server);
    println!("  kubeconfig {}", record.kubeconfig.display());
    for process in record.control_plane.iter().chain(&record.others) {
        let memory = process.id.resident_kib().filter(|_| record.runs(process));
        let state = memory.map_or_else(|| "ended".to_owned(), |kib| format!("{} MiB", kib / 1024));
        println!("  {:<24} {:>8} {:>9}  {}", process.label, process.id.pid(), state, process.log.display());
    }
}
