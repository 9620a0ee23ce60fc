//! Timetables as text: a line a day, two columns an hour.
//!
//! Guarantees: 80 columns are enough for the picture, its notes wrap there too; without colours nothing is lost; a
//! span that is too short for a column is listed below.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::civil::Date;

use super::preview::{Preview, count_of, length, name_of, said};
use crate::kinds::tdset::api::schedule::Source;
use crate::kinds::tdset::api::schedule::timeline::{DAY_SECONDS, Day, Piece};

/// Columns of a day.
const COLUMNS: usize = 48;
/// Seconds that a column stands for.
const COLUMN: i32 = DAY_SECONDS / 48;
/// Columns before the picture.
const MARGIN: usize = 16;
/// Columns after the picture.
const ASIDE: usize = 14;
/// Columns of everything.
const WIDTH: usize = 80;
/// Blocks of all heights.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// No replica.
const NONE: char = '·';
/// A time that the clocks skip.
const SKIPPED: char = '×';
/// Spans that are too short for the picture and are listed all the same.
const MOST_LISTED: usize = 5;

/// Pictures of timetables, with colours or without.
pub(super) fn render(previews: &[Preview], colours: bool) -> String {
    let pictures = previews.iter().map(|preview| Picture::new(preview, colours).draw());
    pictures.collect::<Vec<_>>().join("\n\n")
}

struct Picture<'a> {
    preview: &'a Preview,
    blocks: BTreeMap<i32, char>,
    colours: bool,
}

impl<'a> Picture<'a> {
    fn new(preview: &'a Preview, colours: bool) -> Self {
        let counts = preview.timeline.spans.iter().filter_map(|span| span.what.replicas);
        Self { preview, blocks: blocks(counts.collect()), colours }
    }

    fn draw(&self) -> String {
        let mut text = format!("{}\n{}\n\n", self.preview.origin.title, self.preview.subtitle());
        let hours = ["0", "3", "6", "9", "12", "15", "18", "21"].map(|hour| format!("{hour:<6}")).concat();
        line(&mut text, &format!("{:MARGIN$}{hours}24", ""));
        let mut unseen = Unseen::default();
        for day in &self.preview.timeline.days {
            self.day(&mut text, day, &mut unseen);
        }
        text.push('\n');
        self.legend(&mut text);
        self.moment(&mut text);
        self.below(&mut text, &unseen);
        text
    }

    fn day(&self, text: &mut String, day: &Day, unseen: &mut Unseen) {
        let first: Vec<&Piece> = day.pieces.iter().filter(|piece| !piece.again).collect();
        let again: Vec<&Piece> = day.pieces.iter().filter(|piece| piece.again).collect();
        let label = day.date.strftime("%a %Y-%m-%d");
        let cells = cells(&first, if day.pieces.is_empty() { ' ' } else { SKIPPED });
        line(text, &format!("{label}  {}  {}", self.paint(&cells), self.aside(day)));
        if let Some(piece) = again.first() {
            let cells = self::cells(&again, ' ');
            line(text, &format!("   {} again  {}", clock(piece.from), self.paint(&cells)));
        }
        for lane in [first, again] {
            let drawn = self::cells(&lane, ' ');
            for piece in lane.into_iter().filter(|piece| !shows(&drawn, piece)) {
                let again = if piece.again { " again" } else { "" };
                let times = format!("{}{again} to {}", clock(piece.from), clock(piece.to));
                unseen.add(format!("{times}, {}", self.preview.what(piece)), day);
            }
        }
        if let Some(moment) = &self.preview.moment
            && let Some(piece) =
                day.pieces.iter().find(|one| one.start <= moment.time && moment.time < one.end)
        {
            let since = i32::try_from(moment.time.duration_since(piece.start).as_secs()).unwrap_or_default();
            let shown = piece.from + since;
            let column = MARGIN + usize::try_from(shown / COLUMN).unwrap_or_default();
            line(text, &format!("{:column$}^ {}", "", clock(shown)));
        }
    }

    /// What is beside a day, bright where the clocks change.
    fn aside(&self, day: &Day) -> String {
        let text = aside(day);
        if self.colours && !day.shifts.is_empty() { format!("{BRIGHT}{text}{PLAIN}") } else { text }
    }

    /// The columns of a line as text.
    fn paint(&self, cells: &[Cell<'_>; COLUMNS]) -> String {
        let mut text = String::new();
        let mut colour = None;
        for cell in cells {
            let (shown, wanted) = match cell {
                Cell::Empty(shown) => (*shown, None),
                Cell::Of(piece) => {
                    let what = &self.preview.timeline.spans[piece.span].what;
                    (self.block(what.replicas), self.colour(&what.source))
                }
            };
            if colour != wanted {
                text.push_str(wanted.unwrap_or(PLAIN));
                colour = wanted;
            }
            text.push(shown);
        }
        if colour.is_some() {
            text.push_str(PLAIN);
        }
        text
    }

    fn block(&self, replicas: Option<i32>) -> char {
        replicas.and_then(|replicas| self.blocks.get(&replicas).copied()).unwrap_or(NONE)
    }

    fn colour(&self, source: &Source) -> Option<&'static str> {
        const WINDOWS: [&str; 5] = ["\u{1b}[36m", "\u{1b}[32m", "\u{1b}[35m", "\u{1b}[34m", "\u{1b}[33m"];
        if !self.colours {
            return None;
        }
        match source {
            Source::Default => None,
            Source::Window(_) => Some(WINDOWS[(self.preview.position(source) - 1) % WINDOWS.len()]),
            Source::Exception(_) => Some("\u{1b}[31m"),
        }
    }

    /// What the blocks mean, and what is not in the picture.
    fn legend(&self, text: &mut String) {
        let seen = self.preview.seen();
        let (mut skipped, mut absent) = (false, Vec::new());
        for day in &self.preview.timeline.days {
            skipped |= cells_skip(day);
        }
        for (at, entry) in self.preview.legend.iter().enumerate() {
            if !seen.contains(&at) {
                if entry.source != Source::Default {
                    absent.push(name_of(&entry.source));
                }
                continue;
            }
            let (block, name) = (self.block(entry.replicas), name_of(&entry.source));
            let colour = self.colour(&entry.source);
            let (on, off) = (colour.unwrap_or_default(), colour.map_or("", |_| PLAIN));
            line(text, &format!("  {on}{block}{off} {:>5}  {name}", count_of(entry)));
        }
        if skipped {
            line(text, &format!("  {SKIPPED}        skipped by the clocks"));
        }
        if !absent.is_empty() {
            wrapped(text, &format!("not on these days: {}", absent.join(", ")));
        }
        text.push('\n');
    }

    /// What holds at the instant of which to tell, and what comes next.
    fn moment(&self, text: &mut String) {
        let Some(moment) = &self.preview.moment else { return };
        let preview = self.preview;
        wrapped(text, &format!("{}: {}", preview.shown(moment.time), said(&moment.now)));
        match &moment.next {
            Some(next) => {
                wrapped(text, &format!("{}: {}, the next change", preview.shown(next.time), said(&next.to)));
            }
            None => line(text, "nothing changes within 400 days"),
        }
    }

    /// Changes of the clocks, spans that have no column, and notes.
    fn below(&self, text: &mut String, unseen: &Unseen) {
        for day in &self.preview.timeline.days {
            self.preview.changes(day).for_each(|change| wrapped(text, &change));
            if day.pieces.is_empty() {
                wrapped(text, &format!("{} does not occur there", day.date.strftime("%a %Y-%m-%d")));
            }
        }
        for (what, first, count) in unseen.0.iter().take(MOST_LISTED) {
            let on = first.strftime("%a %Y-%m-%d");
            let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            wrapped(text, &format!("too short to be seen: {what}, on {on}{more}"));
        }
        if let Some(more) = unseen.0.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
            line(text, &format!("too short to be seen: {more} more, which -o json has"));
        }
        let pieces = self.preview.timeline.days.iter().flat_map(|day| &day.pieces);
        if pieces.into_iter().any(|piece| piece.from % COLUMN != 0) {
            wrapped(
                text,
                "a column is half an hour and shows what holds longest in it; -o json has the minutes",
            );
        }
        self.preview.notes.iter().for_each(|note| wrapped(text, note));
        if self.preview.timeline.spans.iter().any(|span| span.glide.is_some()) {
            line(text, "the picture shows the scheduled counts, not the way by the ramp");
        }
        while text.ends_with("\n\n") {
            text.pop();
        }
    }
}

/// Bold and yellow.
const BRIGHT: &str = "\u{1b}[1;33m";
/// No colour.
const PLAIN: &str = "\u{1b}[0m";

/// A column of a line.
#[derive(Clone, Copy)]
enum Cell<'a> {
    Empty(char),
    Of(&'a Piece),
}

/// Each column with the piece that holds longest in it, the first of equals.
fn cells<'a>(pieces: &[&'a Piece], empty: char) -> [Cell<'a>; COLUMNS] {
    let mut cells = [Cell::Empty(empty); COLUMNS];
    let mut left = 0;
    for cell in &mut cells {
        let overlap = |piece: &Piece| (piece.to.min(left + COLUMN) - piece.from.max(left)).max(0);
        let longest = pieces.iter().rev().max_by_key(|piece| overlap(piece)).copied();
        if let Some(piece) = longest.filter(|piece| overlap(piece) > 0) {
            *cell = Cell::Of(piece);
        }
        left += COLUMN;
    }
    cells
}

fn shows(cells: &[Cell<'_>], piece: &Piece) -> bool {
    cells.iter().any(|cell| matches!(cell, Cell::Of(shown) if *shown == piece))
}

/// Whether a whole column of the day is skipped by the clocks.
fn cells_skip(day: &Day) -> bool {
    let first: Vec<&Piece> = day.pieces.iter().filter(|piece| !piece.again).collect();
    !first.is_empty() && cells(&first, SKIPPED).iter().any(|cell| matches!(cell, Cell::Empty(_)))
}

/// What no column shows, the same at the same time of days told once: with the first of them, and how many there are.
#[derive(Debug, Default)]
struct Unseen(Vec<(String, Date, usize)>);

impl Unseen {
    fn add(&mut self, what: String, day: &Day) {
        match self.0.iter_mut().find(|(known, ..)| *known == what) {
            Some((_, _, count)) => *count += 1,
            None => self.0.push((what, day.date, 1)),
        }
    }
}

/// What is beside a day: its length where that is not 24 hours, and its exceptions.
fn aside(day: &Day) -> String {
    let mut parts = Vec::new();
    if day.pieces.is_empty() {
        parts.push("no such day".to_owned());
    } else if day.length().as_secs() != i64::from(DAY_SECONDS) {
        parts.push(length(day.length()));
    }
    parts.extend(day.exceptions.iter().map(|name| format!("!{name}")));
    let text = parts.join(" ");
    if text.chars().count() <= ASIDE {
        return text;
    }
    text.chars().take(ASIDE - 1).chain(['…']).collect()
}

/// A block for each count: its height tells the count, and different counts have different ones as long as there
/// are enough.
fn blocks(counts: Vec<i32>) -> BTreeMap<i32, char> {
    let mut counts: Vec<i32> = counts.into_iter().filter(|count| *count > 0).collect();
    counts.sort_unstable();
    counts.dedup();
    let most = counts.last().copied().unwrap_or(1);
    let share = |count: i32| {
        let eighths = (i64::from(count) * 8 + i64::from(most) - 1) / i64::from(most);
        usize::try_from(eighths).unwrap_or(1).clamp(1, 8)
    };
    let mut found = BTreeMap::new();
    let (mut last, length) = (0, counts.len());
    for (at, count) in counts.into_iter().enumerate() {
        let mut height = share(count);
        if length <= BLOCKS.len() {
            // Room is left for those above.
            height = height.max(last + 1).min(BLOCKS.len() - (length - 1 - at));
        }
        last = height;
        found.insert(count, BLOCKS[height - 1]);
    }
    found
}

/// A time of day.
pub(super) fn clock(seconds: i32) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if rest == 0 { format!("{hours:02}:{minutes:02}") } else { format!("{hours:02}:{minutes:02}:{rest:02}") }
}

/// A line without spaces at its end.
fn line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// A note, broken between words where it is too long.
fn wrapped(text: &mut String, note: &str) {
    let mut column = 0;
    for word in note.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            text.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        let _written = write!(text, "{word}");
        column += length;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_differ_look_different_as_long_as_there_are_blocks() {
        let drawn = |counts: &[i32]| blocks(counts.to_vec()).into_values().collect::<String>();
        assert_eq!(drawn(&[0]), "");
        assert_eq!(drawn(&[1, 2]), "▄█");
        assert_eq!(drawn(&[3, 6, 3, 12]), "▂▄█");
        assert_eq!(drawn(&[1, 2, 3, 10_000]), "▁▂▃█");
        assert_eq!(drawn(&[9997, 9998, 9999, 10_000]), "▅▆▇█");
        assert_eq!(drawn(&[1, 2, 3, 4, 5, 6, 7, 8]), "▁▂▃▄▅▆▇█");
        assert_eq!(drawn(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).chars().count(), 9);
    }

    #[test]
    fn a_long_note_is_broken_between_words() {
        let mut text = String::new();
        wrapped(&mut text, &"word ".repeat(20));
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().nth(1).unwrap().starts_with("  word"));
    }
}
