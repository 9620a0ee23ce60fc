//! One day: its bars, their labels, changes of the clocks, and the ramp.

use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Timestamp};

use super::Panel;
use super::style::{
    AGAIN, BAR, BAR_AGAIN, FILLS, LEFT, PLOT, ROW, WIDTH, tenths, tenths_across, tenths_at, wide,
};
use super::words::{escaped, is_seen_moving};
use crate::api::time_zone::Shift;
use crate::cli::schedule::preview::{count_of, length, said};
use crate::cli::schedule::text::clock;
use crate::kinds::tdset::api::schedule::Source;
use crate::kinds::tdset::api::schedule::timeline::{DAY_SECONDS, Day, Piece, Timeline};

/// What a label leaves free beside the line of the instant, in tenths of a pixel.
const BESIDE: i32 = 200;
/// Lines beside a day.
const MOST_ASIDE: usize = 3;

/// The height of a day.
pub fn height(day: &Day) -> i32 {
    if day.pieces.iter().any(|piece| piece.again) { ROW + AGAIN } else { ROW }
}

impl Panel<'_> {
    /// The light behind the days on which the clocks change.
    pub fn lit(&mut self, day: &Day, top: i32) {
        if !day.shifts.is_empty() {
            let (top, height, width) = (top + 1, height(day), WIDTH - 24);
            self.put(&format!(
                "<rect class=\"change\" x=\"12\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"4\"/>"
            ));
        }
    }

    pub fn day(&mut self, day: &Day, top: i32) {
        let base = top + ROW - 6;
        self.text("24", base - 3, "bold", &day.date.strftime("%a").to_string());
        self.text("56", base - 3, "", &day.date.to_string());
        self.put(&format!("<path class=\"base\" d=\"M{LEFT} {base}H{}\"/>", LEFT + PLOT));
        self.aside(day, base);
        for shift in &day.shifts {
            self.skipped(shift, day, base);
        }
        let place = |piece: &Piece| if piece.again { (base + AGAIN, BAR_AGAIN) } else { (base, BAR) };
        for piece in &day.pieces {
            self.bar(day, piece, place(piece));
        }
        if let Some(first) = day.pieces.iter().find(|piece| piece.again) {
            let text = format!("{} again", clock(first.from));
            self.text("56", base + AGAIN - 2, "quiet small", &text);
        }
        self.ramp(day, base);
        let moment = self.moment(day, base);
        for piece in &day.pieces {
            let change = !day.shifts.is_empty();
            self.label(piece, place(piece), moment.filter(|_| !piece.again), change);
        }
    }

    /// Length and exceptions, right of the day.
    fn aside(&mut self, day: &Day, base: i32) {
        let mut lines: Vec<(String, &str)> = Vec::new();
        if day.pieces.is_empty() {
            lines.push(("no such day".to_owned(), "alarm small"));
        } else if day.length().as_secs() != i64::from(DAY_SECONDS) {
            lines.push((length(day.length()), "clock bold"));
        }
        for shift in &day.shifts {
            let moved = shift.after.duration_since(shift.before);
            let way = if moved.is_positive() { "forward" } else { "back" };
            lines.push((format!("clocks {way} {}", length(moved.abs())), "clock small"));
        }
        for name in &day.exceptions {
            let shown: String = name.chars().take(14).collect();
            let rest = if shown.len() < name.len() { "…" } else { "" };
            lines.push((format!("! {shown}{rest}"), "alarm small"));
        }
        lines.truncate(MOST_ASIDE);
        let x = (LEFT + PLOT + 14).to_string();
        let mut y = base - 3 - 14 * i32::try_from(lines.len().saturating_sub(1)).unwrap_or_default();
        for (text, class) in lines {
            self.text(&x, y, class, &text);
            y += 14;
        }
    }

    /// What the clocks skip.
    fn skipped(&mut self, shift: &Shift, day: &Day, base: i32) {
        let midnight = day.date.to_datetime(Time::midnight());
        let second = |local: DateTime| {
            let seconds = i32::try_from(local.duration_since(midnight).as_secs());
            seconds.unwrap_or(DAY_SECONDS).clamp(0, DAY_SECONDS)
        };
        let (from, to) = (second(shift.before), second(shift.after));
        if from < to {
            let (x, width) = (tenths(tenths_at(from)), tenths(tenths_across(to) - tenths_across(from)));
            let title = escaped(&self.preview.told(shift));
            self.put(&format!(
                "<rect class=\"skipped\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BAR}\"><title>{title}</title></rect>",
                base - BAR
            ));
        }
    }

    fn bar(&mut self, day: &Day, piece: &Piece, (base, most): (i32, i32)) {
        let source = &self.preview.timeline.spans[piece.span].what.source;
        let height = self.bar_height(piece, most);
        // No replica is no bar: what decides is underlined.
        let (top, thick) = if height == 0 { (base * 10, 30) } else { (base * 10 - height, height) };
        let again = if piece.again { " again" } else { "" };
        let title = escaped(&format!(
            "{} {}{again} to {}: {}",
            day.date.strftime("%a %Y-%m-%d"),
            clock(piece.from),
            clock(piece.to),
            self.preview.what(piece)
        ));
        let shape = format!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            tenths(tenths_at(piece.from)),
            tenths(top),
            tenths(tenths_across(piece.to) - tenths_across(piece.from)),
            tenths(thick)
        );
        let class = self.class(source);
        self.put(&format!("<rect class=\"{class}\" {shape}><title>{title}</title></rect>"));
        if matches!(source, Source::Exception(_)) {
            self.put(&format!("<rect class=\"mark\" {shape} pointer-events=\"none\"/>"));
        }
    }

    /// Count and name above a bar, as far as there is room beside `line`, which is in tenths of a pixel.
    fn label(&mut self, piece: &Piece, (base, most): (i32, i32), line: Option<i32>, change: bool) {
        let what = &self.preview.timeline.spans[piece.span].what;
        let (start, end) = (tenths_at(piece.from), tenths_at(piece.to));
        let count = count_of(what);
        let whole = said(what);
        let texts = if what.source == Source::Default { vec![count] } else { vec![whole, count] };
        let height = self.bar_height(piece, most);
        for text in texts {
            let needed = wide(&text) * 10 + 20;
            let found = room(start, end, needed, line);
            if let Some(middle) = found {
                let class = if change { "label onchange small middle" } else { "label small middle" };
                self.text(&tenths(middle), base - height / 10 - 4, class, &text);
                return;
            }
        }
    }

    /// The height of a bar in tenths of a pixel; what is there is seen.
    fn bar_height(&self, piece: &Piece, most: i32) -> i32 {
        let replicas = self.preview.timeline.spans[piece.span].what.replicas.unwrap_or_default();
        self.tall(replicas, most).max(if replicas > 0 { 20 } else { 0 })
    }

    /// A count's height in tenths of a pixel.
    fn tall(&self, replicas: i32, most: i32) -> i32 {
        i32::try_from(i64::from(replicas) * i64::from(most) * 10 / i64::from(self.most)).unwrap_or_default()
    }

    /// How a source is drawn.
    pub fn class(&self, source: &Source) -> String {
        match source {
            Source::Default => "d".to_owned(),
            Source::Window(_) => format!("w{}", (self.preview.position(source) - 1) % FILLS.len()),
            Source::Exception(_) => "x".to_owned(),
        }
    }

    /// The count on its way, where it takes long enough to be seen.
    fn ramp(&mut self, day: &Day, base: i32) {
        for piece in day.pieces.iter().filter(|piece| !piece.again) {
            let span = &self.preview.timeline.spans[piece.span];
            let Some(glide) = span.glide.filter(|_| is_seen_moving(span)) else { continue };
            let mut points: Vec<(i32, i32)> = Vec::new();
            for (time, count) in Timeline::counts(span, self.preview.ramp, glide.from) {
                if time >= piece.end {
                    break;
                }
                let x = tenths_at(shown(piece, time.max(piece.start)));
                // Steps at the same place are one.
                points.pop_if(|(last, _)| *last == x);
                points.push((x, base * 10 - self.tall(count, BAR)));
            }
            let steps = points.iter().enumerate().map(|(at, (x, y))| match at {
                0 => format!("M{} {}", tenths(*x), tenths(*y)),
                _ => format!("H{}V{}", tenths(*x), tenths(*y)),
            });
            let path: String = steps.collect();
            if !path.is_empty() {
                self.put(&format!("<path class=\"ramp\" d=\"{path}H{}\"/>", tenths(tenths_at(piece.to))));
            }
        }
    }

    /// The line of the instant of which to tell, if it is on this day; where it is, in tenths of a pixel.
    fn moment(&mut self, day: &Day, base: i32) -> Option<i32> {
        let moment = self.preview.moment.as_ref()?;
        let piece = day.pieces.iter().find(|piece| piece.start <= moment.time && moment.time < piece.end)?;
        let second = shown(piece, moment.time);
        let at = tenths_at(second);
        let (x, base, bar) =
            if piece.again { (tenths(at), base + AGAIN, BAR_AGAIN) } else { (tenths(at), base, BAR) };
        self.put(&format!("<path class=\"now\" d=\"M{x} {}V{}\"/>", base - bar - 4, base + 3));
        self.text(&x, base - bar - 6, "alarm small middle", &clock(second / 60 * 60));
        Some(at).filter(|_| !piece.again)
    }
}

/// The middle of a place of `needed` between `start` and `end`, clear of `line`.
fn room(start: i32, end: i32, needed: i32, line: Option<i32>) -> Option<i32> {
    let middle = start.midpoint(end);
    let is_free = |middle: i32| line.is_none_or(|line| (middle - line).abs() >= needed / 2 + BESIDE);
    if needed > end - start {
        return None;
    }
    if is_free(middle) {
        return Some(middle);
    }
    let line = line?;
    let sides = [(start, line - BESIDE), (line + BESIDE, end)];
    let widest = sides.into_iter().max_by_key(|(start, end)| end - start);
    widest.filter(|(start, end)| end - start >= needed).map(|(start, end)| start.midpoint(end))
}

/// What the clock shows at an instant of a piece.
fn shown(piece: &Piece, time: Timestamp) -> i32 {
    let since: SignedDuration = time.duration_since(piece.start);
    piece.from + i32::try_from(since.as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_clear_of_the_line_of_the_instant() {
        assert_eq!(room(0, 1000, 300, None), Some(500));
        assert_eq!(room(0, 200, 300, None), None);
        assert_eq!(room(0, 2000, 300, Some(2000)), Some(1000), "far from the line");
        assert_eq!(room(0, 2000, 300, Some(900)), Some(1550), "right of it");
        assert_eq!(room(0, 2000, 300, Some(1100)), Some(450), "left of it");
        assert_eq!(room(0, 600, 300, Some(300)), None, "no room on either side");
    }
}
