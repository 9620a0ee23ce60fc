use std::io::{Seek as _, Write as _};

use super::*;

/// Bytes of a page.
const PAGE: usize = 512;

/// A page of keys and values, or of pages: (flags, key, value), or (page, key, nothing).
fn page(number: u64, flags: u16, elements: &[(u64, &[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(flags.to_le_bytes());
    bytes.extend(u16::try_from(elements.len()).unwrap().to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    let mut content = Vec::new();
    for (place, (first, key, value)) in elements.iter().enumerate() {
        let begin = (elements.len() - place) * HEAD + content.len();
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let begin = u32::try_from(begin).unwrap().to_le_bytes();
        if flags == BRANCH {
            bytes.extend([&begin[..], &size(key), &first.to_le_bytes()].concat());
        } else {
            let first = u32::try_from(*first).unwrap().to_le_bytes();
            bytes.extend([&first[..], &begin, &size(key), &size(value)].concat());
        }
        content.extend([*key, *value].concat());
    }
    bytes.extend(content);
    bytes
}

fn meta(number: u64, pages: u64) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend([MAGIC.0, MAGIC.1, u32::try_from(PAGE).unwrap(), 0].map(u32::to_le_bytes).concat());
    body.extend([2, 0, u64::MAX, pages, 12 - number].map(u64::to_le_bytes).concat());
    let sum = body
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    body.extend(sum.to_le_bytes());
    [page(number, META, &[]), body].concat()
}

fn key(revision: u64) -> Vec<u8> {
    [&revision.to_be_bytes()[..], b"_", &0_u64.to_be_bytes()].concat()
}

/// A bucket with a page of its own.
fn at(page: u64) -> Vec<u8> {
    [page, 0].map(u64::to_le_bytes).concat()
}

/// A bucket in its value.
fn inline(elements: &[(u64, &[u8], &[u8])]) -> Vec<u8> {
    [at(0), page(0, LEAF, elements)].concat()
}

/// The pages of a database with the revisions from 2 to 9, on two leaves.
fn sound() -> Vec<Vec<u8>> {
    let of = |revisions: std::ops::RangeInclusive<u64>| revisions.map(key).collect::<Vec<_>>();
    let (low, high) = (of(2..=5), of(6..=9));
    let leaf = |number, keys: &[Vec<u8>]| {
        let elements: Vec<_> = keys.iter().map(|key| (0, key.as_slice(), &b"value"[..])).collect();
        page(number, LEAF, &elements)
    };
    let meta_bucket = inline(&[(0, b"consistent_index", &7_u64.to_be_bytes())]);
    vec![
        meta(0, 6),
        meta(1, 6),
        page(2, LEAF, &[(1, b"key", &at(3)), (1, b"meta", &meta_bucket)]),
        page(3, BRANCH, &[(4, &low[0], b""), (5, &high[0], b"")]),
        leaf(4, &low),
        leaf(5, &high),
    ]
}

fn checked(pages: &[Vec<u8>], revision: u64) -> Result<(), Fault> {
    let mut file = tempfile::tempfile().unwrap();
    for page in pages {
        assert!(page.len() <= PAGE);
        let filled: Vec<_> = page.iter().copied().chain(std::iter::repeat(0)).take(PAGE).collect();
        file.write_all(&filled).unwrap();
    }
    let size = file.stream_position().unwrap();
    check(&file, size, revision)
}

fn refusal(pages: &[Vec<u8>]) -> String {
    checked(pages, 9).expect_err("it is damaged").to_string()
}

#[test]
fn a_sound_database_up_to_its_revision_is_one() {
    checked(&sound(), 9).unwrap();
    let behind = checked(&sound(), 10).unwrap_err();
    assert_eq!(behind.to_string(), "it ends at revision 9, and the member had 10");
}

#[test]
fn what_was_compacted_counts_although_no_key_is_left_of_it() {
    let mut pages = sound();
    let meta_bucket = inline(&[(0, b"scheduledCompactRev", &key(40))]);
    pages[2] = page(2, LEAF, &[(1, b"key", &inline(&[])), (1, b"meta", &meta_bucket)]);
    checked(&pages, 40).unwrap();
    assert!(checked(&pages, 41).is_err());
    let fresh = inline(&[]);
    pages[2] = page(2, LEAF, &[(1, b"key", &fresh), (1, b"meta", &fresh)]);
    checked(&pages, 1).unwrap();
}

#[test]
fn what_is_no_database_is_refused() {
    assert_eq!(refusal(&[]), "it does not begin as a database does");
    assert_eq!(refusal(&vec![vec![0]; 6]), "it does not begin as a database does");
    assert_eq!(refusal(&sound()[..5]), "it has 2560 bytes and should have 3072");
    let mut pages = sound();
    pages[1][HEAD + 40] ^= 1;
    assert_eq!(refusal(&pages), "it does not begin as a database does");
}

#[test]
fn a_database_without_the_buckets_of_etcd_is_refused() {
    for name in ["key", "meta"] {
        let mut pages = sound();
        let other = if name == "key" { &b"meta"[..] } else { b"key" };
        pages[2] = page(2, LEAF, &[(1, other, &inline(&[]))]);
        assert_eq!(refusal(&pages), format!("it has no bucket {name}"));
    }
}

/// Pages that a disk lost, or gave back as others.
#[test]
fn a_damaged_page_is_noticed() {
    for number in 2..6 {
        let mut pages = sound();
        pages[number] = Vec::new();
        assert_eq!(refusal(&pages), format!("page {number} is another one"));
        let mut pages = sound();
        pages[number][8] = 0x10;
        assert_eq!(refusal(&pages), format!("page {number} is of no kind that holds keys"));
        let mut pages = sound();
        pages[number][12] = 200;
        assert_eq!(refusal(&pages), format!("page {number} runs over the end"));
        let mut pages = sound();
        pages[number][HEAD + 10] = 0xff;
        assert!(refusal(&pages).starts_with("page "), "{number}");
    }
    let mut pages = sound();
    pages[4][HEAD + 6] = 0xff;
    assert_eq!(refusal(&pages), "page 4 has a key beyond its end");
}

#[test]
fn pages_that_lead_to_each_other_and_keys_out_of_order_are_noticed() {
    let branch = |first: u64, second: u64| page(3, BRANCH, &[(first, &key(2), b""), (second, &key(6), b"")]);
    for (first, second, why) in [
        (5, 4, "page 4 has keys out of order"),
        (4, 4, "page 4 is referred to twice"),
        (4, 3, "page 3 is referred to twice"),
        (4, 9, "page 9 is referred to, and lies outside"),
    ] {
        let mut pages = sound();
        pages[3] = branch(first, second);
        assert_eq!(refusal(&pages), why);
    }
    let mut pages = sound();
    pages[4] = page(4, LEAF, &[(0, &key(3), b"a"), (0, &key(2), b"b")]);
    assert_eq!(refusal(&pages), "page 4 has keys out of order");
}
