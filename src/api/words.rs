//! Enumerations whose words go over the wire.
//!
//! Guarantees: each word stands once: the word in the object is the word in the code.

/// Declares an enumeration of words.
macro_rules! words {
    ($(#[$about:meta])* $type:ident: $($(#[$doc:meta])* $name:ident,)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize)]
        pub enum $type {
            $($(#[$doc])* $name,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word as it is written.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The variant of that word; none if this release does not know it.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

pub(crate) use words;
