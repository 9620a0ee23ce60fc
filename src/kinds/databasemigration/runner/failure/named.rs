//! The names in what a server says. A name that does not look like one may be a value: `VALUES ("a@b.c")` asks
//! PostgreSQL for a column.

use super::REDACTED;

/// Whether a text looks like a name, or like names with dots between.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '_' | '$'))
    };
    text.split('.').all(is_part)
}

/// The text, or what stands in its place where it does not look like a name.
pub(super) fn name(text: &str) -> &str {
    if is_name(text) { text } else { REDACTED }
}

/// What a server says, without what does not look like a name, in these quotes or outside of them.
pub(super) fn without_values(said: &str, quote: char) -> String {
    if let Some(shown) = unquoted(said) {
        return shown;
    }
    let mut parts = quoted(said, quote);
    let inner = parts.len().saturating_sub(1);
    if parts.len().is_multiple_of(2) || !parts[..inner].iter().skip(2).step_by(2).all(|part| is_between(part))
    {
        // A quote is in a name: all between the first and the last one may be of it.
        let ends = said.find(quote).zip(said.rfind(quote)).filter(|(first, last)| first < last);
        parts = ends.map_or_else(
            || vec![said],
            |(first, last)| vec![&said[..first], &said[first + 1..last], &said[last + 1..]],
        );
    }
    // In another language, with other quotes, names cannot be recognized.
    if !parts.iter().step_by(2).all(|part| part.is_ascii()) {
        return "the server refused the statement".to_owned();
    }
    let mut shown = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index.is_multiple_of(2) {
            shown.push_str(&words(part));
            continue;
        }
        // Users of MySQL have their host behind them.
        let is_host = parts[index - 1] == "@";
        let part = if is_host || PLACES.contains(part) { part } else { name(part) };
        shown.extend([quote.encode_utf8(&mut [0; 4]), part, quote.encode_utf8(&mut [0; 4])]);
    }
    shown
}

/// What MySQL puts into quotes and is no name.
const PLACES: [&str; 6] =
    ["field list", "where clause", "on clause", "order clause", "group statement", "having clause"];

/// What PostgreSQL says of a name without quotes: `column a.b does not exist`.
fn unquoted(said: &str) -> Option<String> {
    let kinds = ["column ", "function ", "procedure ", "aggregate "];
    let (kind, rest) = kinds.iter().find_map(|kind| Some((*kind, said.strip_prefix(kind)?)))?;
    let ends = [" does not exist", " is not unique"];
    let (text, end) = ends.iter().find_map(|end| Some((rest.strip_suffix(end)?, *end)))?;
    // The types of its parameters are names of PostgreSQL's.
    let called = text.split_once('(').map_or(text, |(called, _)| called);
    let is_shown = is_name(called) || text.starts_with('"');
    (!is_shown).then(|| format!("{kind}{REDACTED}{end}"))
}

/// The parts of a text between quotes. That of `doesn't` is none.
fn quoted(said: &str, quote: char) -> Vec<&str> {
    let is_letter = |one: Option<char>| one.is_some_and(char::is_alphabetic);
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, _) in said.match_indices(quote) {
        let behind = at + quote.len_utf8();
        let is_apostrophe =
            is_letter(said[..at].chars().next_back()) && is_letter(said[behind..].chars().next());
        if quote != '\'' || !is_apostrophe {
            parts.push(&said[begin..at]);
            begin = behind;
        }
    }
    parts.push(&said[begin..]);
    parts
}

/// Whether a server may have put that between two names.
fn is_between(text: &str) -> bool {
    let is_inner = |one: char| one.is_ascii_alphabetic() || " ,;:()-/".contains(one);
    text == "@" || text == "." || text.starts_with([' ', ',', ':', ')']) && text.chars().all(is_inner)
}

/// The words outside of quotes.
fn words(said: &str) -> String {
    let is_plain = |word: &&str| {
        let is_inner = |one: char| one.is_ascii_alphanumeric() || "_$.-'`/()[],:;".contains(one);
        word.chars().all(is_inner) || !word.contains(char::is_alphanumeric)
    };
    let shown: Vec<_> = said.split(' ').map(|word| if is_plain(&word) { word } else { REDACTED }).collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_look_like_a_name_is_not_shown() {
        for (said, shown) in [
            ("column \"a@b.c\" does not exist", "column \"[redacted]\" does not exist"),
            ("column \"4111 1111\" does not exist", "column \"[redacted]\" does not exist"),
            ("column \"a \"b\" c\" does not exist", "column \"[redacted]\" does not exist"),
            ("column \"a\"b\" does not exist", "column \"[redacted]\" does not exist"),
            ("column \"a\" 4111 \"b\" does not exist", "column \"[redacted]\" does not exist"),
            ("column t.a@b.c does not exist", "column [redacted] does not exist"),
            ("column t.John Smith does not exist", "column [redacted] does not exist"),
            ("function John Smith(integer) does not exist", "function [redacted] does not exist"),
            ("type a@b.c is unknown", "type [redacted] is unknown"),
            ("Spalte \u{bb}John of Smith\u{ab} existiert nicht", "the server refused the statement"),
        ] {
            assert_eq!(without_values(said, '"'), shown);
        }
    }

    #[test]
    fn names_are_shown() {
        for said in [
            "column \"email\" does not exist",
            "column t.email does not exist",
            "relation \"shop.orders$1\" does not exist",
            "column \"b\" of relation \"orders\" does not exist",
            "function f(integer, text[]) does not exist",
            "operator does not exist: integer = text",
            "CREATE INDEX CONCURRENTLY cannot run inside a transaction block",
            "canceling statement due to lock timeout",
        ] {
            assert_eq!(without_values(said, '"'), said);
        }
    }

    #[test]
    fn an_apostrophe_is_no_quote() {
        for (said, shown) in [
            ("Table 'a.b' doesn't exist", "Table 'a.b' doesn't exist"),
            ("Unknown column 'a@b.c' in 'field list'", "Unknown column '[redacted]' in 'field list'"),
            ("Unknown column 'email' in 'where clause'", "Unknown column 'email' in 'where clause'"),
            ("Unknown column 'x' y' in 'field list'", "Unknown column '[redacted]'"),
            ("Can't DROP INDEX `i`; check that it exists", "Can't DROP INDEX `i`; check that it exists"),
            (
                "INSERT command denied to user 'app'@'10.0.0.1' for table 'a'",
                "INSERT command denied to user 'app'@'10.0.0.1' for table 'a'",
            ),
        ] {
            assert_eq!(without_values(said, '\''), shown);
        }
    }
}
