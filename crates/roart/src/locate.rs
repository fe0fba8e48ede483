//! Finding the place of a write: the descent that compares the key with every node's string.
//!
//! A node stands for one string for good: all keys of its subtree begin with the same `level` bytes. A writer that
//! has compared them all may therefore lock the node later and still be right; only the contents of the node's slots
//! may have changed meanwhile, and whether the node is obsolete.
//!
//! Bytes that do not fit a node's prefix are found only in a leaf below it. A writer that finds its key at the end of
//! the walk has compared the whole key, these bytes included. So the walk skips them, and only a writer that does not
//! find its key compares them with a leaf below ([`Writer::has_passed_rightly`]).
//!
//! For the same reason a walk may start at any node that a read for the key has reached under the same guard, without
//! comparing: a writer that finds its key there is right. One that does not restarts at the root, unless the read has
//! skipped no byte.

use crate::array::ArrayRef;
use crate::node::Node;
use crate::prefix::Prefix;
use crate::writer::{Above, Writer};
use crate::{Roart, Variant};
use art::{
    Byte, CommonPrefix, Kind, LeafRef, Missed, Tagged, Tries, Way, damaged, prefetch, same_object, scattered,
};
use pmem::{Fault, Link, Media};

pub(crate) type Place<'g> = art::NodePlace<'g, Node<'g>>;
pub(crate) type Parent<'g, M> = art::Parent<'g, Node<'g>, M>;

impl<'g, M: Media, V: Variant> Writer<'g, M, V> {
    /// The place of the key; `None` if the walk met a concurrent change and must start over.
    pub(crate) fn locate(&self) -> Result<Option<Place<'g>>, Fault> {
        self.passed.set(None);
        let (mut at, mut node, mut level) = self.top()?;
        let mut way = None;
        loop {
            let (slot, link) = node.slot::<V, M>(self.heap, level, self.key)?;
            // In a large index nearly all steps are of this kind.
            if link.is_plain(Kind::N256) && level < self.key.len() {
                (at, node, level) = (link, Node::n256_at(self.heap, link)?, level + 1);
                prefetch(node.header()); // for the lock
                continue;
            }
            if level == self.key.len() && link.kind() != Kind::Leaf && !link.is_null() {
                return Err(damaged("leaf of the key that ends at a node", link));
            }
            if !link.is_inner() {
                self.check_node(&node, at, level)?;
                return Ok(Some(Place {
                    node,
                    at,
                    level,
                    slot,
                    link,
                    parting: None,
                }));
            }
            if level >= self.key.len() {
                return Err(damaged("end of a key", link));
            }
            let child = Node::at(self.heap, link)?;
            prefetch(child.header()); // for the lock
            let child_level = self.index.level_after(link, &child, level + 1);
            if child_level > level + 1 {
                check_level(&child, link, child_level, self.heap.media())?;
                let Some(shared) = self.shared((link, child), child_level, level + 1, &mut way)? else {
                    return Ok(None);
                };
                if let CommonPrefix::Until(until, byte) = shared {
                    self.check_node(&node, at, level)?;
                    return Ok(Some(Place {
                        node,
                        at,
                        level,
                        slot,
                        link,
                        parting: Some((until, byte)),
                    }));
                }
            }
            (at, node, level) = (link, child, child_level);
        }
    }

    /// Checks that a node to be locked is the one whose string the walk has compared, by its kind, level and prefix.
    fn check_node(&self, node: &Node<'_>, at: Link, level: usize) -> Result<(), Fault> {
        let media = self.heap.media();
        check_level(node, at, level, media)?;
        let stored = node.header().prefix_word(media);
        if self.has_compared() && Prefix::word_at(self.key, level).is_some_and(|word| word != stored) {
            return Err(damaged("node's prefix", at));
        }
        Ok(())
    }

    /// The key's first `len` bytes, if the walk has compared all bytes on its way; otherwise empty.
    pub(crate) fn compared(&self, len: usize) -> &'g [u8] {
        if !self.has_compared() {
            return &[];
        }
        self.key.get(..len).unwrap_or(self.key)
    }

    /// Whether the walk has compared all bytes on its way.
    fn has_compared(&self) -> bool {
        self.passed.get().is_none() && !self.begun_below.get()
    }

    /// The start of the walk.
    fn top(&self) -> Result<(Link, Node<'g>, usize), Fault> {
        if let Some(Above {
            link,
            depth,
            is_whole,
        }) = self.above.take()
        {
            let node = Node::at(self.heap, link)?;
            let level = self.index.level_after(link, &node, depth);
            if level <= self.key.len() {
                self.begun_below.set(!is_whole || level > depth);
                return Ok((link, node, level));
            }
        }
        self.begun_below.set(false);
        Ok((self.index.root, Node::at(self.heap, self.index.root)?, 0))
    }

    /// Compares `key` with the string of `node` from byte `from` to the node's level. Bytes that the node does not
    /// store count as equal at first, and are noted in `passed`; if the writer has to look at them, they are compared
    /// with those of a leaf below. Returns `None` if there is no such leaf.
    fn shared(
        &self,
        (link, node): (Link, Node<'g>),
        level: usize,
        from: usize,
        way: &mut Option<Way>,
    ) -> Result<Option<CommonPrefix>, Fault> {
        let prefix = node.header().prefix(self.heap.media());
        if level - from <= Prefix::MAX {
            let string = prefix.last(level - from).ok_or(UNFIT_PREFIX)?;
            return Ok(Some(CommonPrefix::of(string, self.key, from)));
        }
        if !self.looks.get() && level <= self.key.len() {
            self.passed.set(Some(level));
            return Ok(Some(CommonPrefix::All));
        }
        if !way.as_mut().is_some_and(|way| way.leads_to(link, level)) {
            *way = self.index.way_along((link, from), self.key)?;
        }
        Ok(way.as_ref().map(|way| match way.parting(level) {
            None => CommonPrefix::All,
            Some((at, byte)) => CommonPrefix::Until(at, byte),
        }))
    }

    /// Whether the key has the bytes that the walk has skipped, if it has skipped any. If it does not, or if that is
    /// unknown, returns `false`, and the caller starts over: the next walk compares all of them, or, after a walk that
    /// started below the root, starts at the root.
    pub(crate) fn has_passed_rightly(&self, place: &Place<'_>) -> Result<bool, Fault> {
        if self.begun_below.get() {
            return Ok(false);
        }
        let Some(level) = self.passed.take() else {
            return Ok(true);
        };
        // All keys below the place have these bytes too, even if its link was replaced since.
        let leaf = match place.link.is_null() {
            true => self.index.any_leaf((place.at, place.level))?,
            false => self.index.any_leaf((place.link, place.level + 1))?,
        };
        let string = leaf.map(|leaf| leaf.key().get(..level).ok_or(UNFIT_LEAF));
        let string = string.transpose()?;
        let rightly = string.is_some_and(|string| self.key.starts_with(string));
        self.looks.set(!rightly);
        Ok(rightly)
    }

    /// Locks the slot by which `child` hangs. The caller holds the child's lock and the child is not obsolete, so it
    /// hangs somewhere on the key's path and stays there until the caller changes that. Here and everywhere, a thread
    /// waits only for locks above those that it holds, so that waits cannot form a cycle.
    pub(crate) fn lock_parent(&self, child: Link) -> Result<Parent<'g, M>, Fault> {
        let mut tries = Tries::default();
        loop {
            match self.try_lock_parent(child)? {
                Ok(parent) => return Ok(parent),
                Err(missed) if tries.go_on(missed, self.heap.media()) => {}
                Err(_) => return Err(damaged("object without a parent", child)),
            }
        }
    }

    /// Why something was not found at this node: [`Missed::Held`] if its lock is held, since the thread that replaces a
    /// node holds the lock from before it condemns the node until it has published the successor.
    pub(crate) fn missed_beside(&self, node: Node<'_>) -> Missed {
        Missed::beside(&node.header().lock, self.heap.media(), self.heap.generation())
    }

    fn try_lock_parent(&self, child: Link) -> Result<Result<Parent<'g, M>, Missed>, Fault> {
        let mut at = self.index.root;
        let mut node = Node::at(self.heap, at)?;
        let mut level = 0;
        loop {
            let (_, link) = node.slot::<V, M>(self.heap, level, self.key)?;
            if same_object(link, child) {
                let Ok(locked) = node.lock(self.heap)? else {
                    return Ok(Err(self.missed_beside(node)));
                };
                let (slot, link) = node.slot::<V, M>(self.heap, level, self.key)?;
                return Ok(match slot {
                    Some(slot) if same_object(link, child) => Ok(Parent {
                        node,
                        at,
                        slot,
                        link,
                        level,
                        locked,
                    }),
                    _ => Err(Missed::Lost),
                });
            }
            if !link.is_inner() {
                return Ok(Err(Missed::Lost));
            }
            at = link;
            node = Node::at(self.heap, at)?;
            let below = self.index.level_after(link, &node, level + 1);
            check_level(&node, at, below, self.heap.media())?;
            if below > self.key.len() {
                return Ok(Err(Missed::Lost));
            }
            level = below;
        }
    }
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// The way of `key` downward from the node at `link`, to which `depth` bytes lead; `None` if there is no leaf, as
    /// in [`any_leaf`](Self::any_leaf).
    pub(crate) fn way_along(
        &self,
        (mut link, mut depth): (Link, usize),
        key: &[u8],
    ) -> Result<Option<Way>, Fault> {
        let mut nodes = Vec::new();
        let below = loop {
            let node = Node::at(&self.heap, link)?;
            let level = self.level_after(link, &node, depth);
            check_level(&node, link, level, self.heap.media())?;
            nodes.push((link, level));
            let child = match key.get(level) {
                Some(_) => node.slot::<V, M>(&self.heap, level, key)?.1,
                None => Link::NULL,
            };
            if child.is_null() {
                break (link, depth);
            }
            (link, depth) = (child, level + 1);
            if !child.is_inner() {
                break (link, depth);
            }
        };
        let leaf = self.any_leaf(below)?;
        let way = leaf.map(|leaf| Way::through::<Byte>(nodes, leaf.key(), key));
        way.transpose()
    }

    /// A leaf at or below `link`, to which `depth` bytes lead; `None` if a concurrent change emptied a node on the way
    /// down, or the way ends at an inline leaf array. Callers use only the leaf's bytes that all keys below the link
    /// share. None depends on the leaf's being reachable, so no link is persisted.
    ///
    /// The way down is scattered, so its length hardly depends on the keys ([`art::any_leaf`]).
    pub(crate) fn any_leaf(
        &self,
        (mut link, mut depth): (Link, usize),
    ) -> Result<Option<LeafRef<'_>>, Fault> {
        let media = self.heap.media();
        loop {
            match link.kind() {
                // An inline leaf array has no leaves, and no caller needs one there: all bytes before such an array are
                // in the prefix of the node above it.
                Kind::Null | Kind::Inline => return Ok(None),
                Kind::Leaf => return LeafRef::at(&self.heap, link).map(Some),
                Kind::Array => {
                    let slots = ArrayRef::at(&self.heap, link)?.slots().iter();
                    let first = slots.map(|slot| slot.peek(media)).find(|leaf| !leaf.is_null());
                    return first.map(|leaf| LeafRef::at(&self.heap, leaf)).transpose();
                }
                _ => {
                    let node = Node::at(&self.heap, link)?;
                    let level = node.header().level(media);
                    if level < depth {
                        return Err(damaged("node's level", link));
                    }
                    (link, depth) = (self.some_child(&node, link), level + 1);
                }
            }
        }
    }

    /// A child of the node at `link`, or null: the key that ends there, or else the first child from a scattered slot
    /// on.
    fn some_child(&self, node: &Node<'_>, link: Link) -> Link {
        let media = self.heap.media();
        let ends = node.header().ends.peek(media);
        if !ends.is_null() {
            return ends;
        }
        let slots = node.slots();
        let (before, from) = slots.split_at(scattered(link) % slots.len());
        let mut links = from.iter().chain(before).map(|slot| slot.peek(media));
        links.find(|link| !link.is_null()).unwrap_or(Link::NULL)
    }
}

/// A node whose own level is lower than the number of bytes that the link to it skips.
pub(crate) const UNFIT_PREFIX: Fault = Fault {
    what: "node's prefix",
    offset: 0,
};

/// A leaf whose key is shorter than the string of a node above it.
const UNFIT_LEAF: Fault = Fault {
    what: "leaf's key",
    offset: 0,
};

/// Checks that a node's kind and level match the links to it.
#[inline]
pub(crate) fn check_level<M: Media>(node: &Node<'_>, at: Link, level: usize, media: &M) -> Result<(), Fault> {
    match node.header().fault(node.kind(), level, media) {
        None => Ok(()),
        Some(what) => Err(damaged(what, at)),
    }
}
