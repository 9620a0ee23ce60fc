//! The trace that a caller is in (W3C Trace Context, `traceparent`).
//!
//! Guarantees: what is not of that form is no parent, and neither are ids that are all zeros.

use axum::http::HeaderMap;

/// The caller's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    /// The caller records its part of the trace.
    pub(super) is_sampled: bool,
}

impl Parent {
    /// The span that the head of a request names.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::read(headers.get("traceparent")?.to_str().ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [version] = bytes(parts.next()?)?;
        let (trace_id, span_id) = (bytes(parts.next()?)?, bytes(parts.next()?)?);
        let [flags] = bytes(parts.next()?)?;
        // A later version may have more behind it; this one has not, and 255 is none.
        let is_whole = version != 0 || parts.next().is_none();
        let is_sound = version != 0xff && is_whole && trace_id != [0; 16] && span_id != [0; 8];
        is_sound.then_some(Self { trace_id, span_id, is_sampled: flags & 1 == 1 })
    }
}

/// As many bytes, as lower-case hexadecimal digits.
fn bytes<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * LENGTH || !text.bytes().all(is_hex) {
        return None;
    }
    let mut all = [0; LENGTH];
    for (byte, at) in all.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_sound_parent_is_read_with_its_flag() {
        for (flags, is_sampled) in [("00", false), ("01", true), ("03", true), ("02", false)] {
            let parent = Parent::read(&format!("00-{TRACE}-{SPAN}-{flags}")).unwrap();
            assert_eq!(parent.is_sampled, is_sampled);
            assert_eq!((parent.trace_id[0], parent.trace_id[15]), (0x4b, 0x36));
            assert_eq!(parent.span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        }
        assert!(Parent::read(&format!("01-{TRACE}-{SPAN}-01-more")).is_some(), "a later version");
    }

    #[test]
    fn what_is_not_of_its_form_is_no_parent() {
        let (zeros, upper) = ("0".repeat(32), TRACE.to_uppercase());
        for text in [
            "",
            "00",
            &format!("00-{TRACE}-{SPAN}"),
            &format!("00-{TRACE}-{SPAN}-1"),
            &format!("00-{TRACE}-{SPAN}-01-more"),
            &format!("ff-{TRACE}-{SPAN}-01"),
            &format!("00-{zeros}-{SPAN}-01"),
            &format!("00-{TRACE}-0000000000000000-01"),
            &format!("00-{upper}-{SPAN}-01"),
            &format!("00-{TRACE}-{SPAN}-+1"),
            &format!("00-{TRACE}\u{fc}-{SPAN}-01"),
        ] {
            assert_eq!(Parent::read(text), None, "{text}");
        }
    }
}
