//! What the rotation of an authority and its leaves does next. Pure.
//!
//! The gate's certificate and those of an etcd cluster rotate by these rules. What differs is who has to trust an
//! authority before it signs, and how long it stays trusted after: that is in the facts.
//!
//! Guarantees: an authority that can be read keeps its key; a leaf that holds is never replaced by one of an authority
//! that its peers do not trust yet, unless it is about to expire.

use serde::{Deserialize, Serialize};

/// What to do about an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorityStep<Bundle> {
    /// Make one with a new key: there is none, or none that can be used.
    Create,
    /// Issue it again, same key and name.
    Reissue,
    /// Write this bundle: the stored one lacks what is still in use or holds what is past.
    WriteBundle(Bundle),
    /// Nothing.
    Keep,
}

/// What to do about a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafStep {
    /// Sign a new one.
    Sign(Why),
    /// Nothing.
    Keep,
}

/// Why a leaf is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Why {
    /// There is none that can be read.
    Missing,
    /// Two thirds of its life are over.
    Aged,
    /// It is not what it should be: an authority that no client trusts, another name or use.
    Unfit,
    /// The authority has another key, and its peers have had time to trust it.
    OtherAuthority,
}

impl Why {
    /// For logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "there was none",
            Self::Aged => "two thirds of its life are over",
            Self::Unfit => "its authority is not trusted, or its name or use is another one",
            Self::OtherAuthority => "the authority has another key",
        }
    }
}

/// What is known of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "facts, none of which rules out another")]
pub struct LeafFacts {
    /// Whether two thirds of its life are over.
    pub is_due: bool,
    /// Whether it is so near its end that a leaf which some refuse is better than one which has expired.
    pub is_last_call: bool,
    /// Whether its peers take it for what they need it for.
    pub is_fit: bool,
    /// Whether it has the names that are asked for beside that, and no others.
    pub has_wanted_names: bool,
    /// Whether the authority that signs now has signed it.
    pub is_of_authority: bool,
}

/// What an authority needs. `is_due`: whether it has to be issued again; none where no authority can be used.
/// `other_bundle`: what is to be trusted, where the stored bundle is another one.
#[must_use]
pub fn authority<Bundle>(is_due: Option<bool>, other_bundle: Option<Bundle>) -> AuthorityStep<Bundle> {
    match (is_due, other_bundle) {
        (None, _) => AuthorityStep::Create,
        (Some(true), _) => AuthorityStep::Reissue,
        (Some(false), Some(bundle)) => AuthorityStep::WriteBundle(bundle),
        (Some(false), None) => AuthorityStep::Keep,
    }
}

/// What a leaf needs; none where there is no leaf that can be read. `is_known`: whether its peers trust the authority
/// that signs.
#[must_use]
pub fn leaf(leaf: Option<LeafFacts>, is_known: bool) -> LeafStep {
    let Some(leaf) = leaf else { return LeafStep::Sign(Why::Missing) };
    if !leaf.is_fit {
        LeafStep::Sign(Why::Unfit)
    } else if !is_known && !leaf.is_last_call {
        LeafStep::Keep
    } else if !leaf.is_of_authority {
        LeafStep::Sign(Why::OtherAuthority)
    } else if !leaf.has_wanted_names {
        LeafStep::Sign(Why::Unfit)
    } else if leaf.is_due {
        LeafStep::Sign(Why::Aged)
    } else {
        LeafStep::Keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: LeafFacts = LeafFacts {
        is_due: false,
        is_last_call: false,
        is_fit: true,
        has_wanted_names: true,
        is_of_authority: true,
    };

    #[test]
    fn an_authority_that_can_be_read_keeps_its_key() {
        assert_eq!(authority::<u8>(None, None), AuthorityStep::Create);
        assert_eq!(authority(Some(true), Some(1)), AuthorityStep::Reissue);
        assert_eq!(authority(Some(false), Some(1)), AuthorityStep::WriteBundle(1));
        assert_eq!(authority::<u8>(Some(false), None), AuthorityStep::Keep);
    }

    #[test]
    fn a_leaf_waits_until_its_peers_trust_the_authority() {
        let other = LeafFacts { is_of_authority: false, ..SOUND };
        let due = LeafFacts { is_due: true, ..other };
        let last = LeafFacts { is_last_call: true, ..due };
        assert_eq!(leaf(None, false), LeafStep::Sign(Why::Missing));
        assert_eq!(leaf(Some(LeafFacts { is_fit: false, ..SOUND }), false), LeafStep::Sign(Why::Unfit));
        let renamed = LeafFacts { has_wanted_names: false, ..SOUND };
        assert_eq!(leaf(Some(renamed), true), LeafStep::Sign(Why::Unfit));
        assert_eq!(leaf(Some(renamed), false), LeafStep::Keep, "those who take it would not take another");
        assert_eq!(leaf(Some(SOUND), true), LeafStep::Keep);
        assert_eq!(leaf(Some(LeafFacts { is_due: true, ..SOUND }), true), LeafStep::Sign(Why::Aged));
        for (facts, known, unknown) in [
            (other, LeafStep::Sign(Why::OtherAuthority), LeafStep::Keep),
            (due, LeafStep::Sign(Why::OtherAuthority), LeafStep::Keep),
            (last, LeafStep::Sign(Why::OtherAuthority), LeafStep::Sign(Why::OtherAuthority)),
        ] {
            assert_eq!((leaf(Some(facts), true), leaf(Some(facts), false)), (known, unknown), "{facts:?}");
        }
    }
}
