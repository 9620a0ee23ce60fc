//! What the picture looks like: lengths, colours, and how wide a text is.

use std::fmt::Write as _;

use crate::kinds::tdset::api::schedule::timeline::DAY_SECONDS;

/// All lengths are in pixels.
pub const WIDTH: i32 = 960;
/// Where midnight is, and how long a day of 24 hours is.
pub const LEFT: i32 = 132;
pub const PLOT: i32 = 696;
pub const HEAD: i32 = 92;
/// From one day to the next, and the height of the greatest count.
pub const ROW: i32 = 52;
pub const BAR: i32 = 32;
/// What the second pass of an hour needs below its day, and the height of the greatest count there.
pub const AGAIN: i32 = 28;
pub const BAR_AGAIN: i32 = 12;
/// From one line of the legend, or of the notes, to the next.
pub const LEGEND: i32 = 24;
pub const NOTE: i32 = 18;
/// Below all of it.
pub const GAP: i32 = 28;

/// Fills of windows, by position: on light pages, and on dark ones.
pub const FILLS: [(&str, &str); 8] = [
    ("#4c86d9", "#5b9bf0"),
    ("#2f9e77", "#3fbf92"),
    ("#d99a26", "#e3ae4a"),
    ("#8d6cc9", "#a98be3"),
    ("#3b9db3", "#4fbcd3"),
    ("#b07845", "#c9945f"),
    ("#7c9a32", "#9bbc4b"),
    ("#c2649a", "#db82b3"),
];

const LIGHT: &str = "\
text{font-family:ui-sans-serif,system-ui,'Segoe UI','Liberation Sans','DejaVu Sans',sans-serif;font-size:12px;fill:#24292f}
.page{fill:#ffffff}.title{font-size:17px;font-weight:600}.quiet{fill:#656d76}.bold{font-weight:600}.small{font-size:11px}
.end{text-anchor:end}.middle{text-anchor:middle}.label{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}
.grid{stroke:#d8dee4}.base{stroke:#8c959f}.now{stroke:#cf222e;stroke-width:1.5}.alarm{fill:#cf222e}.ramp{fill:none;stroke:#24292f}
.d{fill:#c8cfd8}.x{fill:#dd5a45}.skipped{fill:url(#skipped)}.mark{fill:url(#mark)}.s{stroke:#8c959f}.m{stroke:#ffffff;stroke-width:2}
.clock{fill:#8a5a00}.change{fill:#fff4c2}.onchange{stroke:#fff4c2}.edge{stroke:#8c959f;stroke-width:0.5}
";

const DARK: &str = "\
text{fill:#e6edf3}.page{fill:#0d1117}.quiet{fill:#9198a1}.label{stroke:#0d1117}.grid{stroke:#262c36}.base{stroke:#6e7681}\
.now{stroke:#ff7b72}.alarm{fill:#ff7b72}.ramp{stroke:#e6edf3}.d{fill:#3d444d}.x{fill:#f0705c}.s{stroke:#6e7681}.m{stroke:#0d1117}\
.clock{fill:#e3b341}.change{fill:#2e2610}.onchange{stroke:#2e2610}.edge{stroke:#6e7681}";

/// What stands for times that do not come, and for exceptions.
pub const DEFINITIONS: &str = "<defs>\
<pattern id=\"skipped\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<path class=\"s\" d=\"M0 0V6\"/></pattern>\
<pattern id=\"mark\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<path class=\"m\" d=\"M0 0V7\" stroke-opacity=\"0.55\"/></pattern>\
</defs>\n";

/// Colours of light pages, and of dark ones where those are preferred.
pub fn style() -> String {
    let (mut light, mut dark) = (LIGHT.to_owned(), DARK.to_owned());
    for (at, (on_light, on_dark)) in FILLS.iter().enumerate() {
        let _written = write!(light, ".w{at}{{fill:{on_light}}}");
        let _written = write!(dark, ".w{at}{{fill:{on_dark}}}");
    }
    format!("{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n")
}

/// What a text of 12 pixels needs at most, in any of the fonts.
pub fn wide(text: &str) -> i32 {
    let one = |letter: char| match letter {
        ' ' | '.' | ',' | ':' | ';' | '!' | '\'' | '|' | 'i' | 'j' | 'l' | 't' | 'f' | 'r' | '-' | '('
        | ')' => 5,
        'm' | 'w' | 'M' | 'W' => 12,
        letter if letter.is_ascii_lowercase() || letter.is_ascii_digit() => 7,
        letter if letter.is_ascii() => 9,
        _ => 14,
    };
    text.chars().map(one).fold(0, i32::saturating_add)
}

/// Where a second of the day is, in tenths of a pixel.
pub fn tenths_at(second: i32) -> i32 {
    LEFT * 10 + tenths_across(second)
}

/// How long a time is, in tenths of a pixel.
pub fn tenths_across(seconds: i32) -> i32 {
    i32::try_from(i64::from(seconds) * i64::from(PLOT) * 10 / i64::from(DAY_SECONDS)).unwrap_or_default()
}

/// Tenths of a pixel as an attribute has them.
pub fn tenths(value: i32) -> String {
    if value % 10 == 0 { (value / 10).to_string() } else { format!("{}.{}", value / 10, value % 10) }
}
