//! Timetables as SVG.
//!
//! Guarantees: one file that needs nothing else, readable on light and on dark pages; its title and description say
//! in words what is drawn; nothing that comes from a manifest is markup.

mod row;
mod style;
mod words;

use std::fmt::Write as _;

use super::preview::Preview;
use crate::kinds::tdset::api::schedule::Source;
use style::{DEFINITIONS, GAP, HEAD, LEFT, LEGEND, NOTE, WIDTH, tenths, tenths_at};
use words::{Entry, description, entry_width, escaped, legend, named, notes};

/// One picture of timetables, below one another.
pub(super) fn render(previews: &[Preview]) -> String {
    let heights: Vec<i32> = previews.iter().map(height).collect();
    let total: i32 = heights.iter().sum();
    let titles: Vec<String> =
        previews.iter().map(|preview| format!("{}: {}", preview.origin.title, preview.subtitle())).collect();
    let mut svg = String::new();
    let _written = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {total}\" width=\"{WIDTH}\" \
         height=\"{total}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n<style>\n{}</style>\n{DEFINITIONS}\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{total}\"/>\n",
        escaped(&titles.join("; ")),
        escaped(&previews.iter().map(description).collect::<Vec<_>>().join("\n")),
        style::style(),
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

/// The height of a timetable.
fn height(preview: &Preview) -> i32 {
    let lines = |count: usize, height: i32| height * i32::try_from(count).unwrap_or(1);
    let rows: i32 = preview.timeline.days.iter().map(row::height).sum();
    let below = lines(legend(preview).len(), LEGEND) + lines(notes(preview).len(), NOTE);
    HEAD + rows + 18 + below + GAP
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
        self.text("24", 34, "title", &preview.origin.title);
        self.text("24", 55, "quiet", &preview.subtitle());
        let days = || {
            preview.timeline.days.iter().scan(HEAD, |next, day| {
                let top = *next;
                *next += row::height(day);
                Some((day, top))
            })
        };
        days().for_each(|(day, top)| self.lit(day, top));
        let bottom = HEAD + preview.timeline.days.iter().map(row::height).sum::<i32>();
        for hours in (0..=24).step_by(3) {
            let x = tenths(tenths_at(hours * 3600));
            self.put(&format!("<path class=\"grid\" d=\"M{x} {}V{bottom}\"/>", HEAD - 6));
            self.text(&x, HEAD - 12, "quiet small middle", &format!("{hours:02}"));
        }
        days().for_each(|(day, top)| self.day(day, top));
        self.below(bottom + 18);
    }

    fn below(&mut self, top: i32) {
        let preview = self.preview;
        let mut y = top + 12;
        for line in legend(preview) {
            let mut x = LEFT;
            for entry in line {
                let shape = format!("x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\"", y - 10);
                for class in self.classes(&entry) {
                    self.put(&format!("<rect class=\"{class}\" {shape}/>"));
                }
                self.text(&(x + 18).to_string(), y, "", &named(preview, &entry));
                x += entry_width(preview, &entry);
            }
            y += LEGEND;
        }
        for note in notes(preview) {
            self.text(&LEFT.to_string(), y, "quiet small", &note);
            y += NOTE;
        }
    }

    /// How an entry of the legend is drawn, one upon the other.
    fn classes(&self, entry: &Entry) -> Vec<String> {
        match entry {
            Entry::Count(at) => {
                let source = &self.preview.legend[*at].source;
                let mark = matches!(source, Source::Exception(_)).then(|| "mark".to_owned());
                std::iter::once(self.class(source)).chain(mark).collect()
            }
            Entry::Change => vec!["change edge".to_owned()],
            Entry::Skipped => vec!["skipped edge".to_owned()],
        }
    }
}
