//! RECIPE's Condition #3 (§4.5): reads tolerate what a write leaves half done, writes detect it, and nothing
//! in the original index finishes it. So a crash between the two steps of an SMO would leave a prefix that
//! never fits again, and no writer would get past it. What §4.5 asks for:
//!
//! 1. *The condition*: the walk of a write meets a node whose prefix does not lead from the depth at which it
//!    was reached to its level (`locate`).
//! 2. *Transient or permanent*: a writer that changes a prefix holds the node's lock from before the first step until
//!    after the second. So if the lock cannot be had, a write is under way and will finish; it is waited for, however
//!    long it takes.
//! 3. If it can be had, that does *not* say that a crash has happened: prefix and depth were read before. Under the
//!    lock both are looked at again, the depth by a walk from the root. Only if they still do not fit has a crash
//!    interrupted an SMO after its first step, so that no other thread will finish it.
//! 4. *The helper* carries out the second step, as the interrupted write would have: it stores the prefix
//!    that fits.
//!
//! That works for either SMO (the prefix is too long after a split's first step, too short after a merge's),
//! after any number of crashes, and for a node with any number of leaves below: the level is known, so one
//! key tells the bytes.

use super::node::Node;
use super::prefix::Prefix;
use super::{AppendOnly, Writer};
use art::{LeafRef, Missed, any_leaf, damaged};
use heap::Error;
use pmem::{Durable, Link, LinkAndPersist, Media};

impl<'a, M: Media> Writer<'a, M> {
    /// Finishes what a crash has left half done at the node at `link`, or lets the writer at work finish. The walk then
    /// starts over.
    #[cold]
    pub(super) fn finish_interrupted(&self, node: Node<'a>, link: Link) -> Result<Missed, Error> {
        let Some(_locked) = node.try_lock(self.heap) else {
            let lock = &node.header().lock;
            return Ok(Missed::beside(lock, self.media(), self.heap.generation()));
        };
        // Look again: no other thread changes the prefix, or the links above the node, from now on.
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

    /// The second step of an SMO: the node's prefix. The caller holds the node's lock. 1 write-back, 1 fence.
    pub(super) fn store_prefix(&self, node: Node<'_>, prefix: Prefix) -> Durable {
        let word = &node.header().prefix;
        word.publish::<LinkAndPersist, M>(self.media(), prefix.to_word())
            .commit()
    }
}

/// The prefix of the node at `link`, of this level, that `depth` bytes lead to, given a leaf below it.
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
