//! Checksums of texts, as objects have them: `sha256:` and 64 hexadecimal digits. Pure.

use std::fmt::Write as _;

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
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}
