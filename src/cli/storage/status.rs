//! `gatehouse storage status`: which versions objects are stored in, and what holds old versions back.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::super::ending::{FAILED, Failure, OK};
use super::super::output::{self, Format as Structured};
use super::{Chunks, connect, looking, read};
use crate::runtime::supervisor::chain;
use crate::storage::observation::Definition;
use crate::storage::plan::condition;
use crate::storage::plan::usage::{Obstacle, Usage, obstacles};

/// The options of `gatehouse storage status`.
#[derive(Args, Debug)]
#[command(
    after_help = "A version can be removed from a definition when storedVersions does not name it (gatehouse storage migrate), it \
                  is not served, and no managed fields name it. Managers are known by the managed fields of the objects: what \
                  was overwritten since does not show.\n\n\
                  Rights: get of customresourcedefinitions, or list where no definition is named, and list of the objects.\n\n\
                  Exit codes: 0 shown, 1 the API server does not say all, 2 the command line is wrong or there is no such \
                  definition."
)]
pub struct Options {
    /// Names of definitions, such as tdsets.gatehouse.dev. Without one: those that have, or may have objects in, more
    /// than one version.
    #[arg(value_name = "CRD", conflicts_with = "all")]
    definitions: Vec<String>,
    /// All definitions.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    chunks: Chunks,
    /// How it is shown.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// Shows it.
pub(super) async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let requests = connect().await?;
    let look = looking(&requests, options.chunks);
    let mut all = Vec::new();
    if options.definitions.is_empty() {
        let is_shown =
            |one: &Definition| options.all || one.versions.len() > 1 || !one.maybe_stored().is_empty();
        all.extend(look.definitions().await?.into_iter().filter(is_shown));
    }
    match read(&look, &options.definitions).await {
        Ok(definitions) => all.extend(definitions),
        Err(code) => return Ok(ExitCode::from(code)),
    }
    let mut code = OK;
    let mut found = Vec::new();
    for definition in all {
        match look.usage(&definition).await {
            Ok(usage) => found.push((definition, Some(usage))),
            Err(error) => {
                output::error(chain(&error));
                code = FAILED;
                found.push((definition, None));
            }
        }
    }
    let text = match options.output {
        Format::Text => text(&found),
        Format::Json => Structured::Json.write(&[structured(&found)])?,
        Format::Yaml => Structured::Yaml.write(&[structured(&found)])?,
    };
    output::print(&text)?;
    Ok(ExitCode::from(code))
}

/// A definition, and who has written its objects where that is known.
type Found = (Definition, Option<Usage>);

/// The versions that there are or were besides the storage version.
fn others<'a>(definition: &'a Definition, usage: &'a Usage) -> Vec<&'a str> {
    let names = definition.versions.iter().map(|version| version.name.as_str());
    let mut all: Vec<_> = names.filter(|name| *name != definition.storage_version()).collect();
    for more in definition.maybe_stored().into_iter().chain(usage.unknown(definition)) {
        if !all.contains(&more) {
            all.push(more);
        }
    }
    all
}

/// The versions that the API server serves.
fn served(definition: &Definition) -> Vec<&str> {
    let served = definition.versions.iter().filter(|version| version.is_served);
    served.map(|version| version.name.as_str()).collect()
}

fn text(found: &[Found]) -> String {
    let mut rows =
        vec![["DEFINITION", "KIND", "STORED AS", "MAYBE ALSO AS", "SERVED AS", "OBJECTS"].map(str::to_owned)];
    for (definition, usage) in found {
        let older = definition.maybe_stored().join(",");
        let served = served(definition);
        rows.push([
            definition.name.clone(),
            definition.kind.clone(),
            definition.storage_version().to_owned(),
            if older.is_empty() { "-".to_owned() } else { older },
            if served.is_empty() { "-".to_owned() } else { served.join(",") },
            usage.as_ref().map_or_else(|| "?".to_owned(), |usage| usage.objects.to_string()),
        ]);
    }
    let mut text = table(&rows);
    for (definition, usage) in found {
        let Some(usage) = usage else { continue };
        for version in others(definition, usage) {
            let holds = obstacles(definition, usage, version);
            let title = if holds.is_empty() { "nothing holds" } else { "what holds" };
            // A text takes whatever is written to it.
            let _written = writeln!(text, "\n{}: {title} {version} back", definition.name);
            for obstacle in holds {
                text += &sentences(definition, usage, version, &obstacle);
            }
        }
    }
    output_lines(&text)
}

/// Nothing that comes from an object moves the cursor of a terminal.
fn output_lines(text: &str) -> String {
    text.lines().map(|line| output::one_line(line) + "\n").collect()
}

fn sentences(definition: &Definition, usage: &Usage, version: &str, obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Stored => {
            let known = if !definition.is_doubtful() {
                "storedVersions"
            } else if condition::has_kubernetes_failed(&definition.conditions) {
                "Kubernetes' own migration failed (StorageMigrating), whatever storedVersions says"
            } else {
                "a migration has not come to its end (StorageMigrated), whatever storedVersions says"
            };
            let name = &definition.name;
            let mut text =
                format!("  objects may be stored in it ({known}): gatehouse storage migrate {name}\n");
            if let Some(message) = definition.not_migrated() {
                // A text takes whatever is written to it.
                let _written = writeln!(text, "    {}: {message}", condition::TYPE);
            }
            text
        }
        Obstacle::Served => {
            "  it is served: set served: false in the definition once no client uses it\n".to_owned()
        }
        Obstacle::ManagedFields => {
            let mut text = String::from("  managers have written by it:\n");
            for (manager, writes) in usage.of(version) {
                let last =
                    writes.last.map_or_else(|| "at an unknown time".to_owned(), |last| format!("{last:.0}"));
                // A text takes whatever is written to it.
                let _written = writeln!(
                    text,
                    "    {} ({}): {} objects, last {last}, {}",
                    manager.name, manager.operation, writes.objects, writes.example
                );
            }
            if !definition.serves(version) {
                text += "    none can any more: gatehouse storage migrate takes their entries away\n";
            }
            text
        }
    }
}

/// Columns as wide as what is in them.
fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        text += cells.collect::<Vec<_>>().join("   ").trim_end();
        text.push('\n');
    }
    text
}

fn structured(found: &[Found]) -> Value {
    let one = |(definition, usage): &Found| {
        let mut value = json!({
            "name": definition.name,
            "kind": definition.kind,
            "storageVersion": definition.storage_version(),
            "storedVersions": definition.stored,
            "servedVersions": served(definition),
        });
        if let Some(message) = definition.not_migrated() {
            value["notMigrated"] = json!(message);
        }
        if let Some(usage) = usage {
            value["objects"] = json!(usage.objects);
            let others = others(definition, usage);
            value["otherVersions"] =
                others.into_iter().map(|version| other(definition, usage, version)).collect();
        }
        value
    };
    json!({"definitions": found.iter().map(one).collect::<Vec<_>>()})
}

fn other(definition: &Definition, usage: &Usage, version: &str) -> Value {
    let word = |obstacle: Obstacle| match obstacle {
        Obstacle::Stored => "Stored",
        Obstacle::Served => "Served",
        Obstacle::ManagedFields => "ManagedFields",
    };
    let managers = usage.of(version).map(|(manager, writes)| {
        json!({"name": manager.name, "operation": manager.operation, "objects": writes.objects,
            "last": writes.last, "example": writes.example})
    });
    json!({
        "version": version,
        "heldBackBy": obstacles(definition, usage, version).into_iter().map(word).collect::<Vec<_>>(),
        "managers": managers.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["A", "B"], ["long", "b"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "A      B\nlong   b\n");
    }
}
