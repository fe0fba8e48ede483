//! A write's context. Its steps are in `locate`, `write` and `edit_inline`, and building in `subtree`.

use crate::node::Node;
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
    /// The first walk begins here.
    pub(crate) above: Cell<Option<Above>>,
    /// Whether the walk has begun there, and so has not compared the bytes above.
    pub(crate) begun_below: Cell<bool>,
    /// The lowest node that the walk has come to without comparing all bytes, and its level.
    pub(crate) passed: Cell<Option<(Node<'g>, usize)>>,
    /// Whether a walk compares all bytes.
    pub(crate) looks: Cell<bool>,
    /// Whether a node kept its child since a copy had no memory.
    pub(crate) is_full: Cell<bool>,
}

/// A node that a walk of a read for the key has come to under the writer's guard.
#[derive(Clone, Copy)]
pub(crate) struct Above {
    pub(crate) link: Link,
    /// How deep that walk was.
    pub(crate) depth: usize,
    /// Whether it has compared all bytes in front of that.
    pub(crate) is_whole: bool,
}

/// An edit that removes an absent key keeps things as they are.
pub(crate) fn none_removed(action: Action) -> Action {
    if action == Action::Remove {
        Action::Keep
    } else {
        action
    }
}

/// The aux of a link from a node at level `from` to one at level `to`, which is where `link` leads or will.
pub(crate) fn skip_between(from: usize, to: usize, link: Link) -> Result<u8, Error> {
    match to.checked_sub(from + 1) {
        Some(skip) => Ok(u8::try_from(skip).unwrap_or(LONG_SKIP)),
        None => Err(damaged("node's level", link).into()),
    }
}
