//! The number that the name of a script begins with. Pure.

use std::cmp::Ordering;

/// Groups of digits, and letters behind the last one: `1`, `007`, `1.1`, `2024_01_15_093000`, `12b`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    groups: Vec<Digits>,
    letters: String,
}

/// A number of any length, without zeros before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digits(String);

impl Digits {
    fn of(text: &str) -> Self {
        Self(text.trim_start_matches('0').to_owned())
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl Number {
    /// The number of a script, if its name begins with one; a `V` may stand before it, as Flyway has it.
    pub(super) fn of(id: &str) -> Option<Self> {
        let flyway = id.strip_prefix(['V', 'v']).and_then(|rest| Some(rest.split_once("__")?.0));
        let is_version = |text: &&str| text.split(['.', '_']).all(is_digits);
        if let Some(version) = flyway.filter(is_version) {
            return Some(Self::new(version.split(['.', '_']), ""));
        }
        let mut rest = id;
        let mut groups = Vec::new();
        loop {
            let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, behind) = rest.split_at(end);
            if digits.is_empty() {
                break;
            }
            let letters = behind.find(|one: char| !one.is_alphanumeric()).unwrap_or(behind.len());
            groups.push(digits);
            if letters > 0 {
                return Some(Self::new(groups.into_iter(), &behind[..letters]));
            }
            let Some(next) = behind.strip_prefix(['.', '_', '-']) else { break };
            rest = next;
        }
        (!groups.is_empty()).then(|| Self::new(groups.into_iter(), ""))
    }

    /// `1` and `1.0` are one number.
    fn new<'a>(groups: impl Iterator<Item = &'a str>, letters: &str) -> Self {
        let mut groups: Vec<_> = groups.map(Digits::of).collect();
        while groups.len() > 1 && groups.last().is_some_and(|last| last.0.is_empty()) {
            groups.pop();
        }
        Self { groups, letters: letters.to_owned() }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit())
}

/// The order of names in which numbers count as numbers: `a2` before `a10`.
pub(super) fn natural(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    loop {
        let (text, number, behind) = part(left);
        let (other_text, other_number, other_behind) = part(right);
        let order = text.cmp(other_text).then_with(|| Digits::of(number).cmp(&Digits::of(other_number)));
        if order != Ordering::Equal {
            return order;
        }
        if left.is_empty() || right.is_empty() {
            return left.len().cmp(&right.len()).then_with(|| one.cmp(other));
        }
        (left, right) = (behind, other_behind);
    }
}

/// Text without digits, the digits behind it, and the rest.
fn part(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_at(text.find(|one: char| one.is_ascii_digit()).unwrap_or(text.len()));
    let (digits, behind) = rest.split_at(rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len()));
    (before, digits, behind)
}
