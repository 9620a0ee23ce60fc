//! The annotation that requests a recovery from a lost quorum.
//!
//! An annotation and no field: it is asked for once, by a person who has looked, and is not what the cluster should be.

/// The annotation.
pub const ANNOTATION: &str = "gatehouse.dev/recover-quorum";

/// The request that leaves the choice of the member.
const ANY: &str = "auto";

/// The separator between the member and the token of a request.
const SEPARATOR: char = '/';

/// The longest token of a request.
const LONGEST: usize = 63;

/// Whose data are to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivor {
    /// The member's whose log is committed furthest, of those that answer.
    Furthest,
    /// The member's of that ordinal.
    Member(u32),
}

/// Reads a request to recover the cluster of that name: `auto`, or the name of a member, and then, after a slash, a
/// token that distinguishes it from an earlier request.
///
/// # Errors
/// Says what is allowed.
pub fn read(text: &str, cluster: &str) -> Result<Survivor, String> {
    let (member, rest) =
        text.split_once(SEPARATOR).map_or((text, None), |(member, rest)| (member, Some(rest)));
    let survivor = if member == ANY { Some(Survivor::Furthest) } else { ordinal(member, cluster) };
    survivor.filter(|_| rest.is_none_or(is_mark)).ok_or_else(|| {
        format!(
            "must be {ANY} or the name of a member such as {cluster}-0, and may go on with {SEPARATOR} and at most \
             {LONGEST} letters, digits, '-', '_', '.' and ':' that make it another request, such as {ANY}/2026-11-21"
        )
    })
}

fn ordinal(member: &str, cluster: &str) -> Option<Survivor> {
    let digits = member.strip_prefix(cluster)?.strip_prefix('-')?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(Survivor::Member(number))
}

fn is_mark(text: &str) -> bool {
    let is_plain = |one: u8| one.is_ascii_alphanumeric() || b"-_.:".contains(&one);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_whose_data_are_kept() {
        for (text, survivor) in [
            ("auto", Survivor::Furthest),
            ("auto/2026-11-21", Survivor::Furthest),
            ("auto/2026-11-21T12:00:00.5Z_again", Survivor::Furthest),
            ("shop-0", Survivor::Member(0)),
            ("shop-12/second", Survivor::Member(12)),
        ] {
            assert_eq!(read(text, "shop"), Ok(survivor), "{text}");
        }
        let long = format!("auto/{}", "x".repeat(LONGEST));
        assert_eq!(read(&long, "shop"), Ok(Survivor::Furthest));
    }

    #[test]
    fn an_invalid_request_gets_the_valid_forms() {
        let long = format!("auto/{}", "x".repeat(LONGEST + 1));
        for text in [
            "",
            "Auto",
            "auto ",
            "auto/",
            "auto/a b",
            "auto/a/b",
            "auto/ä",
            "shop",
            "shop-",
            "shop-01",
            "shop--1",
            "shop-+1",
            "shop-4294967296",
            "stop-1",
            "1",
            "true",
            &long,
        ] {
            let detail = read(text, "shop").expect_err(text);
            assert!(detail.contains("auto") && detail.contains("shop-0"), "{detail}");
        }
    }
}
