//! Checksums of texts, as objects have them: `sha256:` and 64 hexadecimal digits. Pure.

use aws_lc_rs::digest::{SHA256, digest};

/// Whether a text is a checksum as [`checksum`] writes it.
#[must_use]
pub fn is_checksum(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|one| matches!(one, b'0'..=b'9' | b'a'..=b'f'))
}

/// The checksum of these bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(digest(&SHA256, bytes).as_ref()))
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(four.into(), 16).unwrap_or_default();
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}
