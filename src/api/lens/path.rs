//! Where the author of a spoke's object finds a field of the hub.

use super::super::field::{Path, Segment};
use super::{Row, tree};

/// The spoke's path for a path of the hub. A path above several rows gives the nearest object that the spoke has.
pub(super) fn to_spoke(rows: &[Row], hub: &Path) -> Option<Path> {
    let shared = |segments: &[Segment]| matches!(segments, [] | [Segment::Field(_)]);
    if shared(hub.segments()) || !is_part(hub.segments(), "spec") && !is_part(hub.segments(), "status") {
        return Some(hub.clone());
    }
    segments(rows, hub.segments()).map(Path::from)
}

/// The spoke's first field in an object of the hub that the spoke has no place for as a whole.
pub(super) fn into_spoke(rows: &[Row], hub: &Path) -> Option<Path> {
    let steps = tree::steps(above(rows, hub.segments())?.spoke()?);
    Some(Path::from(steps.map(field).collect::<Vec<_>>()))
}

fn field(step: &str) -> Segment {
    Segment::Field(step.to_owned().into())
}

fn is_part(segments: &[Segment], part: &str) -> bool {
    matches!(segments.first(), Some(Segment::Field(name)) if name == part)
}

fn segments(rows: &[Row], hub: &[Segment]) -> Option<Vec<Segment>> {
    let (row, rest) = rows
        .iter()
        .filter_map(|row| Some((row, strip(row.hub(), hub)?)))
        .max_by_key(|(row, _)| tree::steps(row.hub()).count())
        .or_else(|| Some((above(rows, hub)?, &[][..])))?;
    let mut spoke: Vec<Segment> = tree::steps(row.spoke()?).map(field).collect();
    match (row, rest) {
        (Row::List { items, .. }, [index @ Segment::Index(_), rest @ ..]) => {
            spoke.push(index.clone());
            if !rest.is_empty() {
                spoke.extend(segments(items, rest).unwrap_or_default());
            }
        }
        (Row::Value { .. } | Row::HubOnly { .. }, _) => {}
        _ => spoke.extend(rest.iter().cloned()),
    }
    Some(spoke)
}

/// What follows in `hub` after the steps of `pointer`, if it starts with them.
fn strip<'a>(pointer: &str, hub: &'a [Segment]) -> Option<&'a [Segment]> {
    let mut rest = hub;
    for step in tree::steps(pointer) {
        match rest.split_first() {
            Some((Segment::Field(name), tail)) if name == step => rest = tail,
            _ => return None,
        }
    }
    Some(rest)
}

/// A row below the path: the fault lies with an object of which the spoke has some field.
fn above<'a>(rows: &'a [Row], hub: &[Segment]) -> Option<&'a Row> {
    rows.iter().filter(|row| row.spoke().is_some()).find(|row| {
        let mut steps = tree::steps(row.hub());
        hub.iter()
            .all(|segment| matches!(segment, Segment::Field(name) if steps.next() == Some(name.as_ref())))
    })
}
