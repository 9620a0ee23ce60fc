//! Timetables as a picture for pages.
//!
//! Guarantees: one file that needs nothing else, readable on light and on dark pages; its title and description say
//! in words what is drawn; nothing that comes from a manifest is markup.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::preview::{Preview, length, name_of};
use super::text::clock;
use crate::api::tdset::schedule::Source;
use crate::api::tdset::schedule::timeline::{DAY_SECONDS, Day, Piece, Span, Timeline};
use crate::api::time_zone::Shift;

/// All lengths are in pixels.
const WIDTH: i32 = 960;
const LEFT: i32 = 132;
const PLOT: i32 = 696;
const HEAD: i32 = 92;
/// From one day to the next, and the height of the greatest count.
const ROW: i32 = 52;
const BAR: i32 = 32;
/// What the second pass of an hour needs below its day.
const AGAIN: i32 = 26;
const LEGEND: i32 = 24;
const GAP: i32 = 28;
/// What a character of a label needs at most.
const CHARACTER: i32 = 7;

/// Fills of windows, by position: on light pages, and on dark ones.
const FILLS: [(&str, &str); 8] = [
    ("#4c86d9", "#5b9bf0"),
    ("#2f9e77", "#3fbf92"),
    ("#d99a26", "#e3ae4a"),
    ("#8d6cc9", "#a98be3"),
    ("#3b9db3", "#4fbcd3"),
    ("#b07845", "#c9945f"),
    ("#7c9a32", "#9bbc4b"),
    ("#c2649a", "#db82b3"),
];

const STYLE: &str = "\
text{font-family:ui-sans-serif,system-ui,'Segoe UI','Liberation Sans','DejaVu Sans',sans-serif;font-size:12px;fill:#24292f}
.page{fill:#ffffff}.title{font-size:17px;font-weight:600}.quiet{fill:#656d76}.bold{font-weight:600}.small{font-size:11px}
.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:#d8dee4}.base{stroke:#8c959f}.now{stroke:#cf222e;stroke-width:1.5}.alarm{fill:#cf222e}.ramp{fill:none;stroke:#24292f}
.d{fill:#c8cfd8}.x{fill:#dd5a45}.skipped{fill:url(#skipped)}.mark{fill:url(#mark)}.s{stroke:#8c959f}.m{stroke:#ffffff;stroke-width:2}
";

/// One picture of timetables, below one another.
pub(super) fn render(previews: &[Preview]) -> String {
    let heights: Vec<i32> = previews.iter().map(height).collect();
    let total: i32 = heights.iter().sum();
    let titles: Vec<String> =
        previews.iter().map(|preview| format!("{}: {}", preview.title, preview.subtitle())).collect();
    let mut svg = String::new();
    let _written = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {total}\" width=\"{WIDTH}\" \
         height=\"{total}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n<style>\n{}</style>\n{DEFINITIONS}\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{total}\"/>\n",
        escaped(&titles.join("; ")),
        escaped(&previews.iter().map(description).collect::<Vec<_>>().join("\n")),
        style(),
    );
    let mut top = 0;
    for (preview, height) in previews.iter().zip(heights) {
        let _written = writeln!(svg, "<g transform=\"translate(0 {top})\">");
        Panel { preview, most: preview.most(), svg: &mut svg }.draw();
        svg.push_str("</g>\n");
        top += height;
    }
    svg.push_str("</svg>\n");
    svg
}

const DEFINITIONS: &str = "<defs>\
<pattern id=\"skipped\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<path class=\"s\" d=\"M0 0V6\"/></pattern>\
<pattern id=\"mark\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<path class=\"m\" d=\"M0 0V7\" stroke-opacity=\"0.55\"/></pattern>\
</defs>\n";

fn style() -> String {
    let mut light = STYLE.to_owned();
    let mut dark = String::from(
        "text{fill:#e6edf3}.page{fill:#0d1117}.quiet{fill:#9198a1}.grid{stroke:#262c36}.base{stroke:#6e7681}\
         .now{stroke:#ff7b72}.alarm{fill:#ff7b72}.ramp{stroke:#e6edf3}.d{fill:#3d444d}.x{fill:#f0705c}\
         .s{stroke:#6e7681}.m{stroke:#0d1117}",
    );
    for (at, (on_light, on_dark)) in FILLS.iter().enumerate() {
        let _written = write!(light, ".w{at}{{fill:{on_light}}}");
        let _written = write!(dark, ".w{at}{{fill:{on_dark}}}");
    }
    format!("{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n")
}

/// The days in words.
fn description(preview: &Preview) -> String {
    let mut lines = vec![format!("{}: {}.", preview.title, preview.subtitle())];
    for day in &preview.timeline.days {
        let pieces = day.pieces.iter().map(|piece| {
            let again = if piece.again { " again" } else { "" };
            format!("{}{again} {}", clock(piece.from), what(preview, piece))
        });
        let pieces: Vec<_> = pieces.collect();
        let pieces = if pieces.is_empty() { "does not occur".to_owned() } else { pieces.join(", ") };
        let changes: String = day.shifts.iter().map(|shift| format!("; {}", preview.told(shift))).collect();
        lines.push(format!("{}: {pieces}{changes}.", day.date.strftime("%a %Y-%m-%d")));
    }
    lines.extend(preview.notes.iter().map(|note| format!("{note}.")));
    lines.join("\n")
}

fn what(preview: &Preview, piece: &Piece) -> String {
    let what = &preview.timeline.spans[piece.span].what;
    format!("{} {}", what.replicas, name_of(&what.source))
}

fn escaped(text: &str) -> String {
    let replaced = |one: char| match one {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(replaced).collect()
}

/// The height of a timetable.
fn height(preview: &Preview) -> i32 {
    let rows: i32 = preview.timeline.days.iter().map(row_height).sum();
    HEAD + rows
        + 18
        + LEGEND * i32::try_from(legend(preview).len()).unwrap_or(1)
        + notes_height(preview)
        + GAP
}

fn row_height(day: &Day) -> i32 {
    if day.pieces.iter().any(|piece| piece.again) { ROW + AGAIN } else { ROW }
}

fn notes_height(preview: &Preview) -> i32 {
    18 * i32::try_from(notes(preview).len()).unwrap_or_default()
}

/// Entries of the legend, as lines of positions.
fn legend(preview: &Preview) -> Vec<Vec<usize>> {
    let mut lines: Vec<Vec<usize>> = vec![Vec::new()];
    let mut left = 0;
    for at in preview.seen() {
        let width = entry_width(preview, at);
        if left + width > WIDTH - LEFT - 20 && left > 0 {
            lines.push(Vec::new());
            left = 0;
        }
        left += width;
        if let Some(line) = lines.last_mut() {
            line.push(at);
        }
    }
    lines
}

fn entry_width(preview: &Preview, at: usize) -> i32 {
    44 + CHARACTER * characters(&entry(preview, at))
}

fn entry(preview: &Preview, at: usize) -> String {
    let entry = &preview.legend[at];
    format!("{} {}", entry.replicas, name_of(&entry.source))
}

fn characters(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(i32::MAX / CHARACTER)
}

fn notes(preview: &Preview) -> Vec<String> {
    let mut notes = Vec::new();
    for day in &preview.timeline.days {
        let date = day.date.strftime("%a %Y-%m-%d");
        let long = length(day.length());
        notes.extend(day.shifts.iter().map(|shift| format!("{date} has {long}: {}", preview.told(shift))));
    }
    if let Some(moment) = &preview.moment {
        let now = &moment.now;
        let mut text = format!("{}: {} {}", preview.shown(moment.time), now.replicas, name_of(&now.source));
        if let Some(next) = &moment.next {
            let (time, to) = (preview.shown(next.time), &next.to);
            let _written = write!(text, "; next {time}: {} {}", to.replicas, name_of(&to.source));
        }
        notes.push(text);
    }
    notes.extend(preview.notes.iter().cloned());
    if preview.timeline.spans.iter().any(is_seen_moving) {
        notes.push("the line is the count on its way, as far as nobody else has a hand in it".to_owned());
    }
    notes
}

/// Where a second of the day is, in tenths of a pixel from the left, as text.
fn across(second: i32) -> String {
    tenths(LEFT * 10 + tenths_across(second))
}

fn tenths_across(seconds: i32) -> i32 {
    i32::try_from(i64::from(seconds) * i64::from(PLOT) * 10 / i64::from(DAY_SECONDS)).unwrap_or_default()
}

fn tenths(value: i32) -> String {
    if value % 10 == 0 { (value / 10).to_string() } else { format!("{}.{}", value / 10, value % 10) }
}

/// A timetable that is being drawn.
struct Panel<'a> {
    preview: &'a Preview,
    most: i32,
    svg: &'a mut String,
}

impl Panel<'_> {
    fn put(&mut self, element: &str) {
        self.svg.push_str(element);
        self.svg.push('\n');
    }

    fn text(&mut self, x: &str, y: i32, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let text = escaped(text);
        self.put(&format!("<text x=\"{x}\" y=\"{y}\"{class}>{text}</text>"));
    }

    fn draw(&mut self) {
        let preview = self.preview;
        self.text("24", 34, "title", &preview.title);
        self.text("24", 55, "quiet", &preview.subtitle());
        let rows: i32 = preview.timeline.days.iter().map(row_height).sum();
        for hours in (0..=24).step_by(3) {
            let x = across(hours * 3600);
            self.put(&format!("<path class=\"grid\" d=\"M{x} {}V{}\"/>", HEAD - 6, HEAD + rows));
            self.text(&x, HEAD - 12, "quiet small middle", &format!("{hours:02}"));
        }
        let mut top = HEAD;
        for day in &preview.timeline.days {
            self.day(day, top);
            top += row_height(day);
        }
        self.below(top + 18);
    }

    fn day(&mut self, day: &Day, top: i32) {
        let base = top + ROW - 6;
        self.text("24", base - 3, "bold", &day.date.strftime("%a").to_string());
        self.text("56", base - 3, "", &day.date.to_string());
        self.put(&format!("<path class=\"base\" d=\"M{LEFT} {base}H{}\"/>", LEFT + PLOT));
        self.aside(day, base);
        for shift in &day.shifts {
            self.skipped(shift, day, base);
        }
        for piece in &day.pieces {
            let (base, most) = if piece.again { (base + AGAIN, 12) } else { (base, BAR) };
            self.piece(day, piece, base, most);
        }
        if let Some(first) = day.pieces.iter().find(|piece| piece.again) {
            let text = format!("{} again", clock(first.from));
            self.text("56", base + AGAIN - 2, "quiet small", &text);
        }
        self.ramp(day, base);
        self.moment(day, base);
    }

    /// Length and exceptions, right of the day.
    fn aside(&mut self, day: &Day, base: i32) {
        let x = (LEFT + PLOT + 14).to_string();
        let mut y = base - 3;
        let mut put = |text: String, class: &str| {
            self.text(&x, y, class, &text);
            y -= 15;
        };
        if day.pieces.is_empty() {
            put("no such day".to_owned(), "alarm small");
        } else if day.length().as_secs() != i64::from(DAY_SECONDS) {
            put(length(day.length()), "alarm bold");
        }
        const MOST: usize = 2;
        for name in day.exceptions.iter().take(MOST) {
            let shown: String = name.chars().take(15).collect();
            put(format!("! {shown}{}", if shown.len() < name.len() { "…" } else { "" }), "alarm small");
        }
    }

    /// What the clocks skip.
    fn skipped(&mut self, shift: &Shift, day: &Day, base: i32) {
        let midnight = day.date.to_datetime(jiff::civil::Time::midnight());
        let second = |local: jiff::civil::DateTime| {
            i32::try_from(local.duration_since(midnight).as_secs())
                .unwrap_or(DAY_SECONDS)
                .clamp(0, DAY_SECONDS)
        };
        let (from, to) = (second(shift.before), second(shift.after));
        if from < to {
            let (x, width) = (across(from), tenths(tenths_across(to) - tenths_across(from)));
            self.put(&format!(
                "<rect class=\"skipped\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BAR}\"><title>{}</title></rect>",
                base - BAR,
                escaped(&self.preview.told(shift))
            ));
        }
    }

    fn piece(&mut self, day: &Day, piece: &Piece, base: i32, most: i32) {
        let what = &self.preview.timeline.spans[piece.span].what;
        let (x, width) = (across(piece.from), tenths_across(piece.to) - tenths_across(piece.from));
        let height = self.tall(what.replicas, most).max(if what.replicas > 0 { 20 } else { 0 });
        // No replica is no bar: what decides is underlined.
        let (top, thick) = if height == 0 { (base * 10, 30) } else { (base * 10 - height, height) };
        let again = if piece.again { " again" } else { "" };
        let times = format!("{}{again} to {}", clock(piece.from), clock(piece.to));
        let title = escaped(&format!(
            "{} {times}: {}",
            day.date.strftime("%a %Y-%m-%d"),
            self::what(self.preview, piece)
        ));
        let shape = format!(
            "x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            tenths(top),
            tenths(width),
            tenths(thick)
        );
        let class = self.class(&what.source);
        self.put(&format!("<rect class=\"{class}\" {shape}><title>{title}</title></rect>"));
        if matches!(what.source, Source::Exception(_)) {
            self.put(&format!("<rect class=\"mark\" {shape} pointer-events=\"none\"/>"));
        }
        let (count, name) = (what.replicas.to_string(), name_of(&what.source));
        let whole = format!("{count} {name}");
        let fits = |text: &str| characters(text) * CHARACTER + 4 <= width / 10;
        let label = match what.source {
            Source::Default => Some(count).filter(|text| fits(text)),
            _ if fits(&whole) => Some(whole),
            _ => Some(count).filter(|text| fits(text)),
        };
        if let Some(label) = label {
            let middle = tenths(LEFT * 10 + tenths_across(piece.from) + width / 2);
            self.text(&middle, base - height / 10 - 4, "small middle", &label);
        }
    }

    /// A count's height in tenths of a pixel.
    fn tall(&self, replicas: i32, most: i32) -> i32 {
        i32::try_from(i64::from(replicas) * i64::from(most) * 10 / i64::from(self.most)).unwrap_or_default()
    }

    fn class(&self, source: &Source) -> String {
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
            let Some(glide) = span.glide else { continue };
            let mut points: Vec<(i32, i32)> = Vec::new();
            for (time, count) in Timeline::counts(span, self.preview.ramp, glide.from) {
                if time >= piece.end {
                    break;
                }
                let x = LEFT * 10 + tenths_across(shown(piece, time.max(piece.start)));
                // Steps at the same place are one.
                points.pop_if(|(last, _)| *last == x);
                points.push((x, base * 10 - self.tall(count, BAR)));
            }
            let steps = points.iter().enumerate().map(|(at, (x, y))| match at {
                0 => format!("M{} {}", tenths(*x), tenths(*y)),
                _ => format!("H{}V{}", tenths(*x), tenths(*y)),
            });
            let path: String = steps.collect();
            if is_seen_moving(span) && !path.is_empty() {
                let end = across(piece.to);
                self.put(&format!("<path class=\"ramp\" d=\"{path}H{end}\"/>"));
            }
        }
    }

    fn moment(&mut self, day: &Day, base: i32) {
        let Some(moment) = &self.preview.moment else { return };
        let found = day.pieces.iter().find(|piece| piece.start <= moment.time && moment.time < piece.end);
        let Some(piece) = found else { return };
        let second = shown(piece, moment.time);
        let (x, base) = (across(second), if piece.again { base + AGAIN } else { base });
        self.put(&format!("<path class=\"now\" d=\"M{x} {}V{}\"/>", base - BAR - 8, base + 3));
        self.text(&x, base - BAR - 10, "alarm small middle", &clock(second / 60 * 60));
    }

    fn below(&mut self, top: i32) {
        let preview = self.preview;
        let mut y = top + 12;
        for line in legend(preview) {
            let mut x = LEFT;
            for at in line {
                let class = self.class(&preview.legend[at].source);
                let shape = format!("x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\"", y - 10);
                self.put(&format!("<rect class=\"{class}\" {shape}/>"));
                if matches!(preview.legend[at].source, Source::Exception(_)) {
                    self.put(&format!("<rect class=\"mark\" {shape}/>"));
                }
                self.text(&(x + 18).to_string(), y, "", &entry(preview, at));
                x += entry_width(preview, at);
            }
            y += LEGEND;
        }
        for note in notes(preview) {
            self.text(&LEFT.to_string(), y, "quiet small", &note);
            y += 18;
        }
    }
}

/// Whether the count is on its way for more than a pixel or two.
fn is_seen_moving(span: &Span) -> bool {
    const SEEN: SignedDuration = SignedDuration::from_mins(3);
    let arrives = span.glide.map(|glide| glide.arrives.unwrap_or(Timestamp::MAX));
    arrives.is_some_and(|arrives| arrives.duration_since(span.start) >= SEEN)
}

/// What the clock shows at an instant of a piece.
fn shown(piece: &Piece, time: Timestamp) -> i32 {
    piece.from + i32::try_from(time.duration_since(piece.start).as_secs()).unwrap_or_default()
}
