//! Checks the structure of a database file of etcd. Reads, and never writes.
//!
//! Guarantees: every page of the last transaction was read, is what it says that it is, is part of one bucket, and has its
//! keys in order; the buckets are there that etcd keeps its keys in, up to the revision that is asked for.
//! Assumes: it is what `Snapshot` of etcd sends, without the hash at its end: both meta pages are of one transaction.
//! Never: checks whether a value is the one that a client wrote: bbolt keeps no sums of its pages, and etcd none of its
//! values. To keep it in memory as a whole.
//!
//! Sources: `internal/common/{page,meta,bucket}.go` of go.etcd.io/bbolt; `server/storage/schema` of etcd.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// What a meta page begins with, and the only version of the format.
const MAGIC: (u32, u32) = (0xED0C_DAED, 2);
/// Bytes of the head of a page, and of what stands in its list for each of its elements.
const HEAD: usize = 16;
/// Bytes of a meta page that its sum is made of.
const SUMMED: usize = 56;
/// Flag of a page of other pages.
const BRANCH: u16 = 1;
/// Flag of a page of keys and values.
const LEAF: u16 = 2;
/// Flag of a meta page.
const META: u16 = 4;
/// Flag of an element that is a bucket.
const BUCKET: u32 = 1;
/// Bytes before a page that lies in the value of its bucket.
const BUCKET_HEAD: usize = 16;
/// The longest run of pages that is read at once, in bytes. A value of etcd is one request at most.
const LONGEST: u64 = 256 << 20;
/// Pages above each other. A tree of so many has more leaves than a disk.
const DEEPEST: u32 = 32;

/// Why a file is no sound database.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It could not be read.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
    /// What it should begin with is not there.
    #[error("it does not begin as a database does")]
    NoDatabase,
    /// It has other than as many pages as it says.
    #[error("it has {found} bytes and should have {expected}")]
    Size {
        /// Bytes that are there.
        found: u64,
        /// Bytes of the pages that it describes.
        expected: u64,
    },
    /// A page is not what it should be.
    #[error("page {number} {why}")]
    Page {
        /// Which.
        number: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// Etcd makes this bucket when it first starts.
    #[error("it has no bucket {0}")]
    NoBucket(&'static str),
    /// It ends before the revision that the member had.
    #[error("it ends at revision {found}, and the member had {expected}")]
    Behind {
        /// The last revision in it.
        found: u64,
        /// The revision that it has to have.
        expected: u64,
    },
}

/// Reads a database of `size` bytes, which has to reach `revision`.
///
/// # Errors
/// It is no sound one.
pub fn check(file: &File, size: u64, revision: u64) -> Result<(), Fault> {
    let mut database = Database::open(file, size)?;
    let root = database.root;
    database.node(root, &mut Walk::default(), 0)?;
    let Content { has_keys, has_meta, last, compacted } = database.content;
    for (is_there, name) in [(has_keys, "key"), (has_meta, "meta")] {
        if !is_there {
            return Err(Fault::NoBucket(name));
        }
    }
    // A key space in which nothing was ever written is at 1.
    let found = last.max(compacted).max(1);
    if found < revision { Err(Fault::Behind { found, expected: revision }) } else { Ok(()) }
}

/// What was found of etcd.
#[derive(Debug, Default)]
struct Content {
    has_keys: bool,
    has_meta: bool,
    /// The last revision of a key.
    last: u64,
    /// The revision up to which older ones were dropped.
    compacted: u64,
}

/// Where in the buckets a page lies.
#[derive(Debug, Default)]
struct Walk {
    /// The bucket; none at the top.
    bucket: Option<Vec<u8>>,
    /// The key before.
    last: Option<Vec<u8>>,
}

struct Database<'a> {
    file: &'a File,
    page_size: u64,
    pages: u64,
    root: u64,
    /// One bit for each page that was read.
    read: Vec<u64>,
    content: Content,
}

/// A meta page.
struct Meta {
    page_size: u64,
    root: u64,
    pages: u64,
}

impl Meta {
    /// The meta page that a page is; none where it is none, or damaged.
    fn read(page: &[u8]) -> Option<Self> {
        let body = page.get(HEAD..)?;
        let sum = body.get(..SUMMED)?.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3) // FNV-1a
        });
        let is_meta = u16_at(page, 8)? & META != 0
            && (u32_at(body, 0)?, u32_at(body, 4)?) == MAGIC
            && u64_at(body, SUMMED)? == sum;
        let page_size = u64::from(u32_at(body, 8)?);
        let is_usual = page_size.is_power_of_two() && (512..=1 << 16).contains(&page_size);
        (is_meta && is_usual).then_some(Self { page_size, root: u64_at(body, 16)?, pages: u64_at(body, 40)? })
    }
}

impl<'a> Database<'a> {
    fn open(file: &'a File, size: u64) -> Result<Self, Fault> {
        let meta_at = |at| -> Result<Meta, Fault> {
            let mut page = [0; HEAD + SUMMED + 8];
            match file.read_exact_at(&mut page, at) {
                Ok(()) => Meta::read(&page).ok_or(Fault::NoDatabase),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Fault::NoDatabase),
                Err(error) => Err(error.into()),
            }
        };
        let Meta { page_size, root, pages } = meta_at(0)?;
        let other = meta_at(page_size)?;
        if (other.page_size, other.root, other.pages) != (page_size, root, pages) {
            return Err(Fault::NoDatabase);
        }
        match pages.checked_mul(page_size) {
            Some(expected) if expected == size => {}
            expected => return Err(Fault::Size { found: size, expected: expected.unwrap_or(u64::MAX) }),
        }
        let read = vec![0; usize::try_from(pages / 64 + 1).unwrap_or(0)];
        Ok(Self { file, page_size, pages, root, read, content: Content::default() })
    }

    /// Reads a page of the tree, and all below it.
    fn node(&mut self, number: u64, walk: &mut Walk, depth: u32) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(Fault::Page { number, why: "lies too deep" });
        }
        let page = self.page(number)?;
        self.elements(number, &page, walk, depth)
    }

    /// A page, with those that it runs over.
    fn page(&mut self, number: u64) -> Result<Vec<u8>, Fault> {
        let fault = |why| Fault::Page { number, why };
        if !(2..self.pages).contains(&number) {
            return Err(fault("is referred to, and lies outside"));
        }
        let at = number * self.page_size;
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, at)?;
        if u64_at(&head, 0) != Some(number) {
            return Err(fault("is another one"));
        }
        let more = u64::from(u32_at(&head, 12).unwrap_or(u32::MAX));
        if number + more >= self.pages || (more + 1) * self.page_size > LONGEST {
            return Err(fault("runs over the end"));
        }
        for one in number..=number + more {
            let place = usize::try_from(one / 64).unwrap_or(usize::MAX);
            let bit = 1 << (one % 64);
            match self.read.get_mut(place) {
                Some(bits) if *bits & bit == 0 => *bits |= bit,
                _ => return Err(fault("is referred to twice")),
            }
        }
        let mut page = vec![0; usize::try_from((more + 1) * self.page_size).unwrap_or(0)];
        self.file.read_exact_at(&mut page, at)?;
        Ok(page)
    }

    /// What a page has; `number`: the page that it lies in.
    fn elements(&mut self, number: u64, page: &[u8], walk: &mut Walk, depth: u32) -> Result<(), Fault> {
        let fault = |why| Fault::Page { number, why };
        let flags = u16_at(page, 8).unwrap_or(0);
        let count = usize::from(u16_at(page, 10).unwrap_or(0));
        if flags != BRANCH && flags != LEAF {
            return Err(fault("is of no kind that holds keys"));
        }
        if flags == BRANCH && count == 0 {
            return Err(fault("has nothing below it"));
        }
        let mut before: Option<&[u8]> = None;
        for at in (0..count).map(|place| HEAD + place * HEAD) {
            let element = page.get(at..).filter(|element| element.len() >= HEAD);
            let element = element.ok_or_else(|| fault("has elements beyond its end"))?;
            let number_at = |place| u32_at(element, place).and_then(|number| usize::try_from(number).ok());
            let (begin, length, value) = if flags == BRANCH {
                (number_at(0), number_at(4), Some(0))
            } else {
                (number_at(4), number_at(8), number_at(12))
            };
            let parts = begin.zip(length).zip(value).and_then(|((begin, length), value)| {
                let (middle, end) =
                    (begin.checked_add(length)?, begin.checked_add(length)?.checked_add(value)?);
                Some((element.get(begin..middle)?, element.get(middle..end)?))
            });
            let (key, value) = parts.ok_or_else(|| fault("has a key beyond its end"))?;
            if before.is_some_and(|before| before >= key) {
                return Err(fault("has keys out of order"));
            }
            before = Some(key);
            if flags == BRANCH {
                let below = u64_at(element, 8).ok_or_else(|| fault("has elements beyond its end"))?;
                self.node(below, walk, depth + 1)?;
                continue;
            }
            if walk.last.as_deref().is_some_and(|last| last >= key) {
                return Err(fault("has keys out of order"));
            }
            walk.last = Some(key.to_owned());
            if u32_at(element, 0) == Some(BUCKET) {
                self.bucket(number, key, value, walk, depth)?;
            } else {
                self.found(walk.bucket.as_deref(), key, value);
            }
        }
        Ok(())
    }

    /// What a bucket has, whose page lies by itself or in its value.
    fn bucket(
        &mut self,
        number: u64,
        name: &[u8],
        value: &[u8],
        walk: &Walk,
        depth: u32,
    ) -> Result<(), Fault> {
        let cut = || Fault::Page { number, why: "has a bucket that is cut off" };
        let root = u64_at(value, 0).ok_or_else(cut)?;
        if walk.bucket.is_none() {
            self.content.has_keys |= name == b"key";
            self.content.has_meta |= name == b"meta";
        }
        let mut inside = Walk { bucket: Some(name.to_owned()), last: None };
        if root != 0 {
            return self.node(root, &mut inside, depth + 1);
        }
        let page = value.get(BUCKET_HEAD..).ok_or_else(cut)?;
        self.elements(number, page, &mut inside, depth + 1)
    }

    /// A key and its value.
    fn found(&mut self, bucket: Option<&[u8]>, key: &[u8], value: &[u8]) {
        // A revision begins with its first part, the highest byte first.
        let revision = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        match bucket {
            Some(b"key") => self.content.last = self.content.last.max(revision(key)),
            Some(b"meta") if key == b"scheduledCompactRev" => self.content.compacted = revision(value),
            _ => {}
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
