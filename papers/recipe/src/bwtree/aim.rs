//! The targets of walks.

use std::cmp::Ordering;

/// The target of a walk: the node of a key, the node just before a key, or the last node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim<'k> {
    /// `None`: behind all keys.
    key: Option<&'k [u8]>,
    /// Whether the target is just before the key.
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

    /// Whether the target lies at or behind the bound.
    #[inline(always)]
    pub(super) fn reaches(&self, bound: &[u8]) -> bool {
        match self.key.map(|key| key.cmp(bound)) {
            Some(Ordering::Less) => false,
            Some(Ordering::Equal) => !self.before,
            Some(Ordering::Greater) | None => true,
        }
    }
}
