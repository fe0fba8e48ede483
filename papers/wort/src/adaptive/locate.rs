//! The writer's walk: down a key's path, comparing every byte, to the place where the key is or would be.
//!
//! The caller is the only writer. It settles marks and headers that a crash has left on the way: lazy recovery, node
//! by node, where writes reach them.

use super::node::Node;
use super::{Adaptive, Prefix, Scheme};
use crate::recover::{right_header, way_through};
use crate::root::Root;
use art::{Kind, LeafRef, Node as _, Tagged, Way, damaged};
use heap::{Access, Guard};
use pmem::{Fault, Link, Media, PSlot};
use std::marker::PhantomData;

/// The tree's only writer, at work on one key.
pub struct Writer<'g, S: Scheme, M: Media> {
    pub(crate) heap: &'g Access<M>,
    pub(crate) guard: &'g Guard,
    pub(crate) key: &'g [u8],
    pub(crate) scheme: PhantomData<S>,
}

/// A slot on the way, and its object.
pub struct Place<'g> {
    pub(crate) slot: &'g PSlot,
    /// The slot's link.
    pub(crate) link: Link,
    /// The slot's byte; 0 for the root's slot and for that of the key that ends at a node.
    pub(crate) byte: u8,
    /// Number of bytes that lead to the object.
    pub(crate) depth: usize,
}

impl<'g> Place<'g> {
    pub(crate) fn settled<M: Media>(heap: &Access<M>, slot: &'g PSlot, byte: u8, depth: usize) -> Place<'g> {
        Place {
            slot,
            link: slot.settle(heap.media()),
            byte,
            depth,
        }
    }
}

/// A node on the way, and its place.
pub(crate) struct Passed<'g, S: Scheme> {
    pub(crate) node: Node<'g, S>,
    pub(crate) place: Place<'g>,
    pub(crate) level: usize,
    /// The key's byte at that level; `None` if the key ends there.
    pub(crate) byte: Option<u8>,
}

impl<S: Scheme> Passed<'_, S> {
    /// The header for a copy of the node: the right one for its place, even if a crash or a merge in a full pool has
    /// left another.
    pub(crate) fn header<M: Media>(&self, heap: &Access<M>) -> Result<Prefix, Fault> {
        let Place { link, depth, .. } = self.place;
        right_header::<Adaptive<S>, M>(heap, (link, depth), depth, self.node.header(heap.media()))
    }
}

/// The end of a key's way.
pub(crate) enum Found<'g, S: Scheme> {
    /// At an empty slot.
    Empty { place: Place<'g> },
    /// At a leaf, of the key or another, below this node, if the leaf is not the tree's only object.
    Leaf {
        place: Place<'g>,
        leaf: LeafRef<'g>,
        above: Option<Passed<'g, S>>,
    },
    /// At a node without a slot for the key.
    Vacant { node: Passed<'g, S>, byte: u8 },
    /// At an inner node from whose prefix the key parts, at this position, where the prefix has this byte.
    Parting {
        place: Place<'g>,
        node: Node<'g, S>,
        parting: (usize, u8),
    },
}

impl<'g, S: Scheme, M: Media> Writer<'g, S, M> {
    /// Walks from the root's slot to the place where the key is or would be.
    pub(super) fn locate(&self, root: &'g Root) -> Result<Found<'g, S>, Fault> {
        let heap = self.heap;
        let mut place = Place::settled(heap, &root.top, 0, 0);
        let mut above: Option<Passed<'g, S>> = None;
        let mut way = None;
        loop {
            match place.link.kind() {
                Kind::Null if place.link.is_null() => return Ok(Found::Empty { place }),
                Kind::Leaf => {
                    let leaf = LeafRef::at(heap, place.link)?;
                    if !leaf.has_sound_key() {
                        return Err(damaged("leaf's key", place.link));
                    }
                    return Ok(Found::Leaf { place, leaf, above });
                }
                _ => {}
            }
            if above.as_ref().is_some_and(|above| above.byte.is_none()) {
                return Err(damaged("leaf of the key that ends at a node", place.link));
            }
            let node = Node::<S>::at(heap, place.link)?;
            let level = node.own_level(heap, place.link, place.depth)?;
            if node.common().is_retired(heap) {
                return Err(damaged("node that was replaced", place.link));
            }
            if level > place.depth
                && let Some(parting) = self.compare(&place, node, level, &mut way)?
            {
                return Ok(Found::Parting { place, node, parting });
            }
            let byte = self.key.get(level).copied();
            let passed = Passed {
                node,
                place,
                level,
                byte,
            };
            place = match byte {
                None => Place::settled(heap, &node.common().ends, 0, level),
                Some(byte) => {
                    node.settle(heap.media(), byte);
                    match node.find(heap.media(), byte) {
                        None => return Ok(Found::Vacant { node: passed, byte }),
                        Some((slot, link)) => {
                            // If the slot holds a link for another byte, `link` is null: that link is not followed.
                            let place = Place::settled(heap, slot, byte, level + 1);
                            Place { link, ..place }
                        }
                    }
                }
            };
            above = Some(passed);
        }
    }

    /// Compares the key with a node's prefix, which must not be empty; recovers the header if need be. Returns where
    /// the key parts from the prefix, and the prefix's byte there.
    fn compare(
        &self,
        place: &Place<'_>,
        node: Node<'_, S>,
        level: usize,
        way: &mut Option<Way>,
    ) -> Result<Option<(usize, u8)>, Fault> {
        let mut header = node.header(self.heap.media());
        if header.depth() != place.depth {
            header = S::recover_header(self, place, node, header)?;
        }
        let rest = self.key.get(place.depth..).unwrap_or_default();
        if header.is_whole() {
            let mut rest = rest.iter();
            let parts = header
                .prefix()
                .enumerate()
                .find(|(_, byte)| rest.next() != Some(byte));
            return Ok(parts.map(|(i, byte)| (place.depth + i, byte)));
        }
        let at = (place.link, place.depth);
        let way = way_through::<Adaptive<S>, M>(self.heap, at, level, self.key, way)?;
        match way.parting(level) {
            Some((shared, _)) if shared < place.depth => Err(damaged("prefix of a node", place.link)),
            parting => Ok(parting),
        }
    }
}

/// The aux of a link to a node at `level`, to which `depth` bytes lead.
pub(crate) fn skip(depth: usize, level: usize) -> u8 {
    u8::try_from(level - depth).unwrap_or(art::LONG_SKIP)
}
