//! Text that counts how often it is compared or read, for tests of what something costs.
//!
//! Guarantees: who walks over such texts and tells one from the other is counted for each of them; the hash of one is not.

use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

thread_local! {
    static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// How often this thread looks at such texts meanwhile.
pub fn looks(task: impl FnOnce()) -> usize {
    LOOKS.set(0);
    task();
    LOOKS.get()
}

/// Such a text.
#[derive(Clone, Copy, Debug)]
pub struct Counted<Text>(Text);

impl<'a, Text: From<&'a str>> From<&'a str> for Counted<Text> {
    fn from(text: &'a str) -> Self {
        Self(Text::from(text))
    }
}

impl<Text: Deref<Target = str>> Deref for Counted<Text> {
    type Target = str;

    fn deref(&self) -> &str {
        LOOKS.set(LOOKS.get() + 1);
        &self.0
    }
}

impl<Text: Deref<Target = str>> Borrow<str> for Counted<Text> {
    fn borrow(&self) -> &str {
        self
    }
}

impl<Text: Deref<Target = str>> PartialEq for Counted<Text> {
    fn eq(&self, other: &Self) -> bool {
        **self == *other.0
    }
}

impl<Text: Deref<Target = str>> Eq for Counted<Text> {}

impl<Text: Deref<Target = str>> PartialOrd for Counted<Text> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Text: Deref<Target = str>> Ord for Counted<Text> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&*other.0)
    }
}

impl<Text: Deref<Target = str>> Hash for Counted<Text> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
