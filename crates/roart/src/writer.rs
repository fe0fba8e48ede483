//! The context of a write. Its steps are in `locate`, `write` and `edit_inline`, and building in `subtree`.

use crate::{Roart, Variant};
use art::{LONG_SKIP, damaged};
use heap::{Access, Error, Guard};
use index::Action;
use pmem::{Link, Media};
use std::cell::Cell;

/// One write.
pub(crate) struct Writer<'g, M: Media, V: Variant> {
    pub(crate) index: &'g Roart<M, V>,
    pub(crate) heap: &'g Access<M>,
    pub(crate) guard: &'g Guard,
    pub(crate) key: &'g [u8],
    /// The start of the first walk.
    pub(crate) above: Cell<Option<Above>>,
    /// Whether the walk started there, and bytes before that start were not compared.
    pub(crate) begun_below: Cell<bool>,
    /// The level of the lowest node right above which the walk has skipped bytes without comparing them.
    pub(crate) passed: Cell<Option<usize>>,
    /// Whether walks compare all bytes, with those of a leaf where a node does not store them.
    pub(crate) looks: Cell<bool>,
    /// Whether a node kept its child because there was no memory for a copy.
    pub(crate) is_full: Cell<bool>,
}

/// A node that a read for the key has reached under the writer's guard.
#[derive(Clone, Copy)]
pub(crate) struct Above {
    pub(crate) link: Link,
    /// Number of bytes that lead to the node, before those that its link skips.
    pub(crate) depth: usize,
    /// Whether the read has skipped none of these bytes.
    pub(crate) is_whole: bool,
}

/// The result of removing an absent key: it keeps the key unchanged.
pub(crate) fn none_removed(action: Action) -> Action {
    if action == Action::Remove {
        Action::Keep
    } else {
        action
    }
}

/// The aux of a link from a node at level `from` to one at level `to`; `link` is for the error.
pub(crate) fn skip_between(from: usize, to: usize, link: Link) -> Result<u8, Error> {
    match to.checked_sub(from + 1) {
        Some(skip) => Ok(u8::try_from(skip).unwrap_or(LONG_SKIP)),
        None => Err(damaged("node's level", link).into()),
    }
}
