//! Faults and warnings in the terms of the version that the author of an object wrote.
//!
//! Guarantees: a path of the hub, where it stands alone and where it stands in a sentence, is the path of the author's
//! version; a field that this version lacks is said to be the hub's.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{Kind, Version};
use crate::api::field::{FieldError, Path, Reason, Segment, Warning};
use crate::api::lens::{Table, memory};

/// Parts of an object whose fields have other paths in other versions.
const PARTS: [&str; 2] = ["spec", "status"];

/// The author of an object.
pub(super) struct Author {
    /// None for the hub.
    table: Option<&'static Table>,
}

impl Author {
    pub(super) fn of(kind: &dyn Kind, version: Version) -> Self {
        Self { table: kind.lens().table(version) }
    }

    /// An error of the hub.
    pub(super) fn error(&self, fault: FieldError) -> FieldError {
        let Some(table) = self.table else { return fault };
        let missing = || table.path_into(&fault.path).filter(|_| fault.reason == Reason::Required);
        let detail = translated(table, &fault.detail).into_owned();
        match table.path(&fault.path).or_else(missing) {
            Some(path) => FieldError { path, detail, ..fault },
            None => FieldError {
                detail: format!("{}: {detail}", fault.path),
                path: Path::metadata().at("annotations").key(memory::key(&pointer(&fault.path)).0),
                ..fault
            },
        }
    }

    /// A warning about the hub.
    pub(super) fn warning(&self, warning: &Warning) -> Warning {
        self.table.map_or_else(|| warning.clone(), |table| Warning::new(translated(table, warning.as_str())))
    }
}

/// The field of a list item lies with its list: that is what one annotation holds.
fn pointer(path: &Path) -> String {
    let named = path.segments().iter().map_while(|segment| match segment {
        Segment::Field(name) => Some(name.as_ref()),
        Segment::Index(_) | Segment::Key(_) => None,
    });
    named.fold(String::new(), |pointer, name| pointer + "/" + name)
}

/// A sentence with the paths in it in the spoke's terms.
fn translated<'a>(table: &Table, text: &'a str) -> Cow<'a, str> {
    let mut sentence = String::new();
    let mut rest = text;
    while let Some((before, path, after)) = next_path(rest) {
        sentence.push_str(before);
        // Into a text, which does not fail.
        let _written = match table.path(&path) {
            Some(own) => write!(sentence, "{own}"),
            None => write!(sentence, "v1 {path}"),
        };
        rest = after;
    }
    if sentence.is_empty() && rest.len() == text.len() { text.into() } else { (sentence + rest).into() }
}

/// The first path of a field in a text, what is before it, and what is after it.
fn next_path(text: &str) -> Option<(&str, Path, &str)> {
    let mut from = 0;
    loop {
        let (start, part) =
            PARTS.iter().filter_map(|part| Some((from + text[from..].find(part)?, *part))).min()?;
        from = start + part.len();
        let is_inside = text[..start].ends_with(|one: char| one.is_alphanumeric() || "._-/".contains(one));
        let mut path = Path::root().at(part);
        let mut rest = &text[from..];
        while let Some((step, after)) = step(rest) {
            path = path.child(step);
            rest = after;
        }
        // Its end may have been cut.
        if !is_inside && path.segments().len() > 1 && !rest.starts_with('…') {
            return Some((&text[..start], path, rest));
        }
    }
}

/// The step that a text begins with, and the rest of the text.
fn step(text: &str) -> Option<(Segment, &str)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (inside, rest) = inside.split_once(']')?;
        let step = inside.parse().map_or_else(|_| Segment::Key(inside.to_owned()), Segment::Index);
        return Some((step, rest));
    }
    let name = text.strip_prefix('.')?;
    let end = name.find(|one: char| !one.is_ascii_alphanumeric()).unwrap_or(name.len());
    let (name, rest) = name.split_at(end);
    (!name.is_empty()).then(|| (Segment::Field(name.to_owned().into()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tdset::api::TDSetKind;

    #[test]
    fn a_sentence_has_the_paths_of_its_author() {
        let author = Author::of(&TDSetKind, Version::V1Alpha1);
        for (of_hub, of_author) in [
            (
                "spec.windows[12].from: 02:30 is skipped",
                "spec.schedulingConfig[12].startTime: 02:30 is skipped",
            ),
            ("spec.windows: 3 more", "spec.schedulingConfig: 3 more"),
            ("spec.suspend: -> 3 now", "v1 spec.suspend: -> 3 now"),
            ("set spec.timeZone. And spec.resyncMinutes", "set v1 spec.timeZone. And spec.intervalMint"),
            (
                "spec: not there, inspec.windows, a/spec.windows",
                "spec: not there, inspec.windows, a/spec.windows",
            ),
            ("spec.windows[3].repl…", "spec.windows[3].repl…"),
            ("no path", "no path"),
        ] {
            assert_eq!(author.warning(&Warning::new(of_hub)).as_str(), of_author);
        }
        let warning = Warning::new("spec.windows[0].from: unchanged");
        assert_eq!(Author::of(&TDSetKind, Version::V1).warning(&warning), warning);
    }
}
