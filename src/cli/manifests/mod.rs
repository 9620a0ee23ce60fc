//! `gatehouse manifests`: the generated files below `deploy/`, printed, written or compared.
//!
//! Guarantees: a table of paths and contents, the same from every run of a release; comparing never writes.

mod generated;
mod installation;
pub mod rbac;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::Args;

use super::ending::{FAILED, Failure, OK};
use super::output::{self, Format};
use crate::kinds::KINDS;
pub use generated::Generated;
use generated::HEADER;

/// The options of `gatehouse manifests`.
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 done, 1 a file could not be written or, with --check, differs, \
                        2 the command line is wrong.")]
pub struct Options {
    /// Write the files below this folder, which is deploy in the repository.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    write: Option<PathBuf>,
    /// Compare the files below this folder with what would be written.
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
}

/// Why the files are not there as they should be.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// Every generated file, by path.
///
/// # Errors
/// One that cannot be written as YAML.
pub fn generated() -> Result<Vec<Generated>, Failure> {
    let definitions = KINDS.iter().map(|kind| {
        let path = format!("crds/{}.yaml", kind.names().plural);
        let content = HEADER.to_owned() + &Format::Yaml.write(&[serde_json::to_value(kind.definition())?])?;
        Ok(Generated { path, content })
    });
    let mut files = definitions.collect::<Result<Vec<_>, Failure>>()?;
    files.push(Generated { path: "crds/kustomization.yaml".to_owned(), content: kustomization() });
    files.extend(rbac::generated());
    files.extend(installation::generated()?);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// What has kustomize take the definitions.
fn kustomization() -> String {
    let definitions = KINDS.iter().map(|kind| format!("- {}.yaml\n", kind.names().plural));
    format!(
        "{HEADER}# The definitions as they are, without conversion.\n\
         apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{}",
        definitions.collect::<String>()
    )
}

/// Prints or writes the manifests.
///
/// # Errors
/// A file that cannot be read or written.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let files = generated()?;
    if let Some(folder) = &options.write {
        for file in &files {
            write(folder.join(&file.path), &file.content)?;
        }
    } else if let Some(folder) = &options.check {
        return check(folder, &files);
    } else {
        // What the chart is made of are templates, which would make the whole no YAML.
        let files = files.iter().filter(|file| !file.path.starts_with("chart/"));
        let texts: Vec<_> = files.map(|file| format!("# Source: {}\n{}", file.path, file.content)).collect();
        output::print(&texts.join("---\n"))?;
    }
    Ok(ExitCode::from(OK))
}

/// Names every file that is not as it is generated.
fn check(folder: &Path, files: &[Generated]) -> Result<ExitCode, Failure> {
    let mut all_same = true;
    for file in files {
        let path = folder.join(&file.path);
        if !same(&path, &file.content)? {
            all_same = false;
            let command = format!("gatehouse manifests --write {}", folder.display());
            output::error(format!("{} is not what is generated: run {command}", path.display()));
        }
    }
    Ok(ExitCode::from(if all_same { OK } else { FAILED }))
}

fn write(path: PathBuf, content: &str) -> Result<(), Error> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(&path, content)).map_err(|source| Error::Write { path, source })
}

/// A file that is missing is not the same.
fn same(path: &PathBuf, content: &str) -> Result<bool, Error> {
    match fs::read(path) {
        Ok(found) => Ok(found == content.as_bytes()),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Read { path: path.clone(), source }),
    }
}
