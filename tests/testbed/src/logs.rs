//! Gathers what tells why a test failed, from a cluster in whatever state.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::Error;

/// What kubectl is asked, and the file that takes its answer.
const QUESTIONS: [(&str, &str); 5] = [
    (
        "objects.txt",
        "get all,persistentvolumeclaims,persistentvolumes,leases,crds,validatingwebhookconfigurations,mutatingwebhookconfigurations --all-namespaces --output=wide",
    ),
    ("events.txt", "get events --all-namespaces --sort-by=.lastTimestamp --output=wide"),
    ("pods.txt", "describe pods --all-namespaces"),
    ("nodes.txt", "describe nodes"),
    ("pods.yaml", "get pods --all-namespaces --output=yaml"),
];

/// Fills the folder `into`. `folder` is the cluster's own, if it is ours: the logs of components and
/// containers are copied from it. Those of others are asked for.
pub(crate) fn collect(
    folder: Option<&Path>,
    kubectl: &dyn Fn() -> Command,
    into: &Path,
) -> Result<(), Error> {
    make(into)?;
    for (file, question) in QUESTIONS {
        ask(kubectl().args(question.split_whitespace()), &into.join(file))?;
    }
    match folder {
        Some(folder) => {
            copy_logs(folder, into)?;
            let pods = folder.join("node/log/pods");
            if pods.is_dir() { copy_tree(&pods, &into.join("containers")) } else { Ok(()) }
        }
        None => ask_for_containers(kubectl, &into.join("containers")),
    }
}

/// The files `*.log` of a folder.
pub(crate) fn copy_logs(folder: &Path, into: &Path) -> Result<(), Error> {
    make(into)?;
    for path in entries(folder)? {
        if path.extension().is_some_and(|extension| extension == "log")
            && let Some(name) = path.file_name()
        {
            copy(&path, &into.join(name))?;
        }
    }
    Ok(())
}

/// The logs of all containers, as the API server has them: of the present and of the previous run of each.
fn ask_for_containers(kubectl: &dyn Fn() -> Command, into: &Path) -> Result<(), Error> {
    make(into)?;
    let pods = kubectl().args(["get", "pods", "--all-namespaces", "--output=json"]).output();
    let pods = pods.map_err(Error::io("running kubectl"))?.stdout;
    let pods: Value = serde_json::from_slice(&pods).unwrap_or_default();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        let containers = ["initContainers", "containers"].map(|field| pod["spec"][field].as_array());
        for container in containers.into_iter().flatten().flatten() {
            let container = text(&container["name"]);
            for previous in [false, true] {
                let suffix = if previous { ".previous" } else { "" };
                let file = into.join(format!("{namespace}_{name}_{container}{suffix}.log"));
                let arguments = ["logs", "--namespace", &namespace, &name, "--container", &container];
                ask(kubectl().args(arguments).arg(format!("--previous={previous}")), &file)?;
            }
        }
    }
    Ok(())
}

/// Writes what a command says, errors included, to a file.
fn ask(command: &mut Command, file: &Path) -> Result<(), Error> {
    let doing = || format!("writing {}", file.display());
    let output = fs::File::create(file).map_err(Error::io(doing()))?;
    let errors = output.try_clone().map_err(Error::io(doing()))?;
    command
        .arg("--request-timeout=20s")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .map(drop) // that it fails is said in the file
        .map_err(Error::io("running kubectl"))
}

/// Symbolic links are left out: containerd's are to the same files again.
fn copy_tree(from: &Path, into: &Path) -> Result<(), Error> {
    make(into)?;
    for path in entries(from)? {
        let Some(name) = path.file_name() else { continue };
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            copy_tree(&path, &into.join(name))?;
        } else {
            copy(&path, &into.join(name))?;
        }
    }
    Ok(())
}

/// A file that went meanwhile is no error: pods come and go.
fn copy(from: &Path, into: &Path) -> Result<(), Error> {
    match fs::copy(from, into) {
        Err(error) if from.exists() => {
            Err(Error::Io { doing: format!("copying {}", from.display()), source: error })
        }
        _ => Ok(()),
    }
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, Error> {
    let doing = format!("reading {}", folder.display());
    let mut found: Vec<_> = match fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) if !folder.exists() => Vec::new(),
        Err(source) => return Err(Error::Io { doing, source }),
    };
    found.sort();
    Ok(found)
}

fn make(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io(format!("making the folder {}", folder.display())))
}
