//! Names, as the API server validates them.
//!
//! The rules are those of apimachinery, `pkg/util/validation`; the messages say what is allowed and show an example.

/// Longest DNS subdomain.
const LONGEST_SUBDOMAIN: usize = 253;
/// Longest DNS label.
const LONGEST_LABEL: usize = 63;

/// A DNS label as RFC 1035 has it, which Services need: first a letter.
///
/// # Errors
/// Says what is allowed.
pub fn dns_1035_label(text: &str) -> Result<(), &'static str> {
    if text.len() <= LONGEST_LABEL && text.starts_with(|one: char| one.is_ascii_lowercase()) && is_label(text)
    {
        return Ok(());
    }
    Err(
        "must be a DNS-1035 label: lower-case letters, digits and '-', first a letter, last a letter or digit, at most 63 characters, such as my-cluster",
    )
}

/// A DNS label as RFC 1123 has it, which namespaces are named by.
///
/// # Errors
/// Says what is allowed.
pub fn dns_1123_label(text: &str) -> Result<(), &'static str> {
    if text.len() <= LONGEST_LABEL && is_label(text) {
        return Ok(());
    }
    Err(
        "must be a DNS-1123 label: lower-case letters, digits and '-', first and last a letter or digit, at most 63 characters, such as my-namespace",
    )
}

/// A DNS subdomain as RFC 1123 has it, which most objects are named by.
///
/// # Errors
/// Says what is allowed.
pub fn dns_1123_subdomain(text: &str) -> Result<(), &'static str> {
    if text.len() <= LONGEST_SUBDOMAIN && text.split('.').all(is_label) {
        return Ok(());
    }
    Err(
        "must be a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', first and last a letter or digit, at most 253 characters, such as example.com",
    )
}

/// A key of a label or annotation: a name, with a DNS subdomain and a slash before it where it is not the user's own.
///
/// # Errors
/// Says what is allowed.
pub fn qualified_name(text: &str) -> Result<(), &'static str> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    if prefix.is_none_or(|prefix| dns_1123_subdomain(prefix).is_ok()) && is_value(name) && !name.is_empty() {
        return Ok(());
    }
    Err(
        "must be a name of at most 63 letters, digits, '-', '_' and '.', with an optional DNS prefix and a slash before it, such as example.com/my-name",
    )
}

/// The value of a label; may be empty.
///
/// # Errors
/// Says what is allowed.
pub fn label_value(text: &str) -> Result<(), &'static str> {
    if is_value(text) {
        return Ok(());
    }
    Err("must be empty or at most 63 letters, digits, '-', '_' and '.', first and last a letter or digit")
}

/// How many typos are between two texts: their Levenshtein distance.
#[must_use]
pub fn typos(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, one) in left.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (column, other) in right.bytes().enumerate() {
            let replaced = corner + usize::from(one != other);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-')
}

fn is_value(text: &str) -> bool {
    let edge = |one: char| !one.is_ascii_alphanumeric();
    text.is_empty()
        || text.len() <= LONGEST_LABEL
            && !text.starts_with(edge)
            && !text.ends_with(edge)
            && text.bytes().all(|one| one.is_ascii_alphanumeric() || matches!(one, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_takes_one_name_and_refuses_another() {
        type Rule = fn(&str) -> Result<(), &'static str>;
        let table: &[(Rule, &[&str], &[&str])] = &[
            (dns_1035_label, &["a", "my-cluster", "a1"], &["", "1a", "-a", "a-", "A", "a.b", "a_b", "é"]),
            (dns_1123_label, &["a", "1-a"], &["", "-a", "a-", "A", "a.b", "a_b"]),
            (dns_1123_subdomain, &["1a", "a.b-c.d"], &["", ".", "a..b", "a.", "A", "a_b", "a/b"]),
            (
                qualified_name,
                &["a", "A_b.c", "example.com/a"],
                &["", "/a", "a/", "a/b/c", "-a", "Ex/a", "a b"],
            ),
            (label_value, &["", "A_b.c"], &["-a", "a-", "a b", "a/b"]),
        ];
        for (rule, accepted, refused) in table {
            for name in *accepted {
                assert_eq!(rule(name), Ok(()), "{name}");
            }
            for name in *refused {
                assert!(rule(name).is_err(), "{name:?}");
            }
        }
    }

    #[test]
    fn names_have_their_longest() {
        assert!(dns_1035_label(&"a".repeat(63)).is_ok());
        assert!(dns_1035_label(&"a".repeat(64)).is_err());
        assert!(dns_1123_label(&"a".repeat(63)).is_ok());
        assert!(dns_1123_label(&"a".repeat(64)).is_err());
        assert!(dns_1123_subdomain(&"a".repeat(253)).is_ok());
        assert!(dns_1123_subdomain(&"a".repeat(254)).is_err());
        assert!(label_value(&"a".repeat(64)).is_err());
    }
}
