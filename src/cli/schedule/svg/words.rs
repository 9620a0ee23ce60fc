//! The texts of the picture: its description, its notes, and the names of colours.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::style::{LEFT, WIDTH, wide};
use crate::cli::schedule::preview::{Preview, said};
use crate::cli::schedule::text::clock;
use crate::kinds::tdset::api::schedule::timeline::Span;

/// What a colour stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A count, by its position in the legend of the preview.
    Count(usize),
    /// Days on which the clocks change.
    Change,
    /// Times that do not come.
    Skipped,
}

/// The days in words.
pub fn description(preview: &Preview) -> String {
    let mut lines = vec![format!("{}: {}.", preview.origin.title, preview.subtitle())];
    for day in &preview.timeline.days {
        let pieces = day.pieces.iter().map(|piece| {
            let again = if piece.again { " again" } else { "" };
            format!("{}{again} {}", clock(piece.from), preview.what(piece))
        });
        let pieces: Vec<_> = pieces.collect();
        let pieces = if pieces.is_empty() { "does not occur".to_owned() } else { pieces.join(", ") };
        let changes = day.shifts.iter().map(|shift| preview.told(shift));
        let told: Vec<_> = std::iter::once(pieces).chain(changes).collect();
        lines.push(format!("{}: {}.", day.date.strftime("%a %Y-%m-%d"), told.join("; ")));
    }
    lines.extend(preview.notes.iter().map(|note| format!("{note}.")));
    lines.join("\n")
}

/// A text that is no markup.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// What colours stand for, as lines of entries.
pub fn legend(preview: &Preview) -> Vec<Vec<Entry>> {
    let days = &preview.timeline.days;
    let shifts = || days.iter().flat_map(|day| &day.shifts);
    let mut entries: Vec<Entry> = preview.seen().into_iter().map(Entry::Count).collect();
    entries.extend(shifts().next().map(|_| Entry::Change));
    entries.extend(shifts().find(|shift| shift.before < shift.after).map(|_| Entry::Skipped));
    let mut lines: Vec<Vec<Entry>> = vec![Vec::new()];
    let mut left = 0;
    for entry in entries {
        let width = entry_width(preview, &entry);
        if left + width > WIDTH - LEFT - 20 && left > 0 {
            lines.push(Vec::new());
            left = 0;
        }
        left += width;
        if let Some(line) = lines.last_mut() {
            line.push(entry);
        }
    }
    lines
}

/// What an entry needs.
pub fn entry_width(preview: &Preview, entry: &Entry) -> i32 {
    wide(&named(preview, entry)).saturating_add(36)
}

/// An entry in words.
pub fn named(preview: &Preview, entry: &Entry) -> String {
    match entry {
        Entry::Count(at) => said(&preview.legend[*at]),
        Entry::Change => "the clocks change".to_owned(),
        Entry::Skipped => "skipped by the clocks".to_owned(),
    }
}

/// What is below the picture.
pub fn notes(preview: &Preview) -> Vec<String> {
    let mut notes: Vec<_> = preview.timeline.days.iter().flat_map(|day| preview.changes(day)).collect();
    if let Some(moment) = &preview.moment {
        let mut text = format!("{}: {}", preview.shown(moment.time), said(&moment.now));
        if let Some(next) = &moment.next {
            let _written = write!(text, "; next {}: {}", preview.shown(next.time), said(&next.to));
        }
        notes.push(text);
    }
    notes.extend(preview.notes.iter().cloned());
    if preview.timeline.spans.iter().any(is_seen_moving) {
        notes.push("the line is the count during the ramp, unless another client changes it".to_owned());
    }
    notes
}

/// Whether the count is on its way for more than a pixel or two.
pub fn is_seen_moving(span: &Span) -> bool {
    const SEEN: SignedDuration = SignedDuration::from_mins(3);
    let arrives = span.glide.map(|glide| glide.arrives.unwrap_or(Timestamp::MAX));
    arrives.is_some_and(|arrives| arrives.duration_since(span.start) >= SEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_never_markup() {
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
