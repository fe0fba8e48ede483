//! The way of a key: the nodes on its path down from a node, compared with the key once.
//!
//! A writer compares its key, and a scan its bounds, with the strings of the nodes on the way. A node keeps only a
//! few bytes of its string; the rest is found only in a leaf below it. Searching for such a leaf at every node would
//! cost the square of the tree's height, and comparing from the first digit the height times the key's length. So one
//! descent along the key records the nodes, and one leaf below the last of them shows how many digits all of them
//! share with the key. Each node stands for one string (`design`, R1), so the walk compares nothing again as long as
//! it reaches recorded nodes.

use crate::{Design, Digit, Kind, LeafRef, Node, Tagged, any_leaf, damaged};
use heap::Access;
use pmem::{Fault, Link, Media, Offset};
use std::cmp::Ordering;

/// The nodes on a key's way, from some node on, and the number of digits that the key shares with the keys below
/// them.
#[derive(Debug)]
pub struct Way {
    /// Their places and levels, ascending.
    nodes: Vec<(u64, usize)>,
    /// How many of them the walk has passed.
    passed: usize,
    shared: usize,
    /// After the shared digits: the digit of the keys below, if they go on, and whether these keys come before or
    /// after.
    digit: Option<u8>,
    order: Ordering,
}

impl Way {
    /// The way of a key through nodes that were passed in this order. The key `below` lies below the last of them.
    ///
    /// # Errors
    ///
    /// If `below` is shorter than that node's level.
    pub fn through<G: Digit>(nodes: Vec<(Link, usize)>, below: &[u8], key: &[u8]) -> Result<Way, Fault> {
        let shared = G::shared(below, key);
        if let Some(&(link, level)) = nodes.last()
            && G::count(below) < level
        {
            return Err(damaged("key of a leaf", link));
        }
        let digit = G::at(below, shared);
        Ok(Way {
            nodes: nodes
                .into_iter()
                .map(|(link, level)| (place(link), level))
                .collect(),
            passed: 0,
            shared,
            digit,
            order: digit.cmp(&G::at(key, shared)),
        })
    }

    /// The way of `key` from the inner node at `link` on, to which `depth` digits lead, down to the last node along
    /// the key; `None` if a concurrent change emptied the nodes on it.
    ///
    /// # Errors
    ///
    /// If the pool is damaged.
    pub fn along<D: Design, M: Media>(
        heap: &Access<M>,
        (mut link, mut depth): (Link, usize),
        key: &[u8],
    ) -> Result<Option<Way>, Fault> {
        let mut nodes = Vec::new();
        let leaf = loop {
            let node = D::Node::at(heap, link)?;
            let level = node.own_level(heap, link, depth)?;
            nodes.push((link, level));
            let child = match D::Digit::at(key, level) {
                Some(digit) => node.child(heap, digit),
                None => Link::NULL,
            };
            match child.kind() {
                Kind::Leaf => break Some(LeafRef::at(heap, child)?),
                _ if child.is_inner() => (link, depth) = (child, level + 1),
                _ => break any_leaf::<D, M>(heap, link, depth)?,
            }
        };
        let way = leaf.map(|leaf| Way::through::<D::Digit>(nodes, leaf.key(), key));
        way.transpose()
    }

    /// Whether the walk, which reaches the node at `link`, of this level, is still on this way.
    pub fn leads_to(&mut self, link: Link, level: usize) -> bool {
        let ahead = &self.nodes[self.passed..];
        self.passed += ahead.iter().take_while(|(_, other)| *other < level).count();
        self.nodes.get(self.passed) == Some(&(place(link), level))
    }

    /// Where the key parts from the keys below a node of this level, and their digit there; `None` if the key has all
    /// the digits that lead to the node. The node is on this way.
    pub fn parting(&self, level: usize) -> Option<(usize, u8)> {
        let digit = self.digit.filter(|_| self.shared < level)?;
        Some((self.shared, digit))
    }

    /// `Equal` if the key has all the digits that lead to a node of this level on the way; otherwise whether the keys
    /// below the node come before or after the key.
    pub fn order(&self, level: usize) -> Ordering {
        if self.shared >= level {
            Ordering::Equal
        } else {
            self.order
        }
    }
}

/// The common part of all links to one object.
fn place(link: Link) -> u64 {
    link.bits() & Offset::MASK
}
