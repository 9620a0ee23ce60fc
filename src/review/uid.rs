//! The uid of a request in a body that cannot be read: broken, cut off, or of no kind that is known.
//!
//! Guarantees: what is found is `request.uid`, the first one, and never a uid of an object in the request: an answer
//! with another one would be thrown away. Reads no more than the beginning, where the API server writes it before
//! anything that a user has a say in.

/// Where the uid has to stand, in bytes from the beginning.
const BEGINNING: usize = 2 * 1024 * 1024;

/// A uid is a UUID of 36 characters; longer ones are not from an API server.
const LONGEST: usize = 128;

/// The uid, empty where there is none.
pub(super) fn find(body: &[u8]) -> String {
    let beginning = &body[..body.len().min(BEGINNING)];
    find_in(beginning)
        .filter(|uid| is_sound(uid))
        .map(|uid| String::from_utf8_lossy(uid).into_owned())
        .unwrap_or_default()
}

fn is_sound(uid: &[u8]) -> bool {
    uid.len() <= LONGEST && uid.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\')
}

/// Walks the text as far as it is JSON. What is deeper than a field of the request is only counted.
fn find_in(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    let mut in_request = false;
    let mut at = text.iter().position(|byte| *byte == b'{')?;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                in_request &= depth >= 2;
            }
            b'"' => {
                let string = string(&text[at..])?;
                at += string.len() + 1;
                let Some(value) = after_colon(&text[at..]) else { continue };
                match (depth, string) {
                    (1, b"request") => in_request = value.starts_with(b"{"),
                    (1, _) => in_request = false,
                    (2, b"uid") if in_request => return self::string(value.strip_prefix(b"\"")?),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    None
}

/// The text up to the quote that ends it.
fn string(text: &[u8]) -> Option<&[u8]> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some(&text[..end])
}

/// The value, where a colon follows: then what was before it is a key.
fn after_colon(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_of_the_request_is_found_wherever_it_stands() {
        for text in [
            r#"{"kind":"A","request":{"uid":"u-1","object":{"metadata":{"uid":"x"}}}}"#,
            r#"{"request":{"object":{"uid":"x","request":{"uid":"y"}},"name":"}{","uid" : "u-1"}}"#,
            r#"{"uid":"x","other":{"uid":"y"},"request":{"a":[{"uid":"z"}],"uid":"u-1","uid":"u-2"}}"#,
            r#"{"request":{"a\"":"uid","uid":"u-1","obj"#,
            r#"[{"request":{"uid":"u-1"}}]"#,
        ] {
            assert_eq!(find(text.as_bytes()), "u-1", "{text}");
        }
    }

    #[test]
    fn no_other_uid_is_taken_for_it() {
        for text in [
            "",
            r#"{"uid":"x"}"#,
            r#"{"request":{"object":{"metadata":{"uid":"x"}}}}"#,
            r#"{"request":[{"uid":"x"}]}"#,
            r#"{"request":null,"response":{"uid":"x"}}"#,
            r#"{"request":{},"response":{"uid":"x"}}"#,
            r#"{"object":{"request":{"uid":"x"}}}"#,
            r#"{"request":{"name":"\"uid\":\"x\""}}"#,
            r#"{"request":{"uid":"a b"}}"#,
            r#"{"request":{"uid":5}}"#,
            r#"{"request":{"uid":"x"#,
            "}}}",
        ] {
            assert_eq!(find(text.as_bytes()), "", "{text}");
        }
        let late = format!(r#"{{"request":{{"name":"{}","uid":"x"}}}}"#, "a".repeat(BEGINNING));
        assert_eq!(find(late.as_bytes()), "");
    }
}
