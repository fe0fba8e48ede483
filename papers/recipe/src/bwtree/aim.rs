//! The targets of walks.

use std::cmp::Ordering;

/// What a walk looks for: the node of a key, that of what is just before one, or the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim<'k> {
    /// `None`: behind all keys.
    key: Option<&'k [u8]>,
    /// Whether it goes to what is before the key.
    before: bool,
    /// The key's first eight bytes.
    pub(super) prefix: u64,
}

impl<'k> Aim<'k> {
    pub(super) fn to(key: &'k [u8]) -> Aim<'k> {
        Aim {
            key: Some(key),
            before: false,
            prefix: index::codec::prefix(key),
        }
    }

    pub(super) fn before(key: &'k [u8]) -> Aim<'k> {
        Aim {
            before: true,
            ..Aim::to(key)
        }
    }

    pub(super) const END: Aim<'static> = Aim {
        key: None,
        before: false,
        prefix: u64::MAX,
    };

    /// Whether it lies in what begins with the bound.
    #[inline(always)]
    pub(super) fn reaches(&self, bound: &[u8]) -> bool {
        match self.key.map(|key| key.cmp(bound)) {
            Some(Ordering::Less) => false,
            Some(Ordering::Equal) => !self.before,
            Some(Ordering::Greater) | None => true,
        }
    }
}
