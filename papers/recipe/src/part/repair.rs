//! RECIPE's Condition #3 (§4.5): reads tolerate half-done writes, writes detect them, and nothing in the original index
//! completes them. So a crash between the two steps of an SMO would leave a prefix that never fits again, and no writer
//! would get past it. The steps of §4.5, of which the third departs from the paper (`docs/deviations.md`):
//!
//! 1. *The condition*: the walk of a write meets a node whose prefix does not lead from the depth at which it
//!    was reached to its level (`locate`).
//! 2. *Transient or permanent*: a writer that changes a prefix holds the node's lock from before the first step until
//!    after the second. So if the lock is taken, a write is in progress and will complete; the writer waits for it,
//!    however long it takes.
//! 3. If the lock is free, that does *not* mean that a crash has happened: prefix and depth were read before. Under
//!    the lock both are checked again, the depth by a walk from the root. Only if they still do not fit has a crash
//!    interrupted an SMO after its first step, so that no other thread will complete it.
//! 4. *The helper* performs the second step, as the interrupted write would have: it stores the prefix that fits.
//!
//! That works for either SMO (the prefix is too long after a split's first step, too short after a merge's), after
//! any number of crashes, and for a node with any number of leaves below: the level is known, so any key below
//! supplies the bytes.

use super::node::Node;
use super::prefix::Prefix;
use super::{AppendOnly, Writer};
use art::{LeafRef, Missed, any_leaf, damaged};
use heap::Error;
use pmem::{Durable, Link, LinkAndPersist, Media};

impl<'a, M: Media> Writer<'a, M> {
    /// Completes a change of the node at `link` that a crash has interrupted, or lets the writer at work complete it.
    /// The walk then starts over.
    #[cold]
    pub(super) fn finish_interrupted(&self, node: Node<'a>, link: Link) -> Result<Missed, Error> {
        let Some(_locked) = node.try_lock(self.heap) else {
            let lock = &node.header().lock;
            return Ok(Missed::beside(lock, self.media(), self.heap.generation()));
        };
        // Check again: under the lock, no other thread changes the prefix, or the depth at which the node is reached.
        let Some((_, above)) = self.find_parent(link)? else {
            return Ok(Missed::Lost);
        };
        let (depth, level) = (above + 1, node.level(self.media()));
        if node.prefix(self.media()).fits(depth, level) {
            return Ok(Missed::Lost);
        }
        let Some(leaf) = any_leaf::<AppendOnly, M>(self.heap, link, depth)? else {
            return Ok(Missed::Lost);
        };
        let _durable = self.store_prefix(node, prefix_from(leaf, depth, level, link)?);
        Ok(Missed::Lost)
    }

    /// The second step of an SMO: stores the node's prefix. The caller holds the node's lock. Costs 1 write-back and
    /// 1 fence.
    pub(super) fn store_prefix(&self, node: Node<'_>, prefix: Prefix) -> Durable {
        let word = &node.header().prefix;
        word.publish::<LinkAndPersist, M>(self.media(), prefix.to_word())
            .commit()
    }
}

/// The prefix of the node at `link`, of this level, to which `depth` bytes lead, given a leaf below it.
pub(super) fn prefix_from(
    leaf: LeafRef<'_>,
    depth: usize,
    level: usize,
    link: Link,
) -> Result<Prefix, Error> {
    match leaf.key().get(depth..level) {
        Some(string) => Ok(Prefix::of(string)),
        None => Err(damaged("key of a leaf", link).into()),
    }
}
