//! The children of nodes under construction, for designs that make all new objects durable by one fence.

use crate::{Kind, Tagged, child_tag};
use pmem::{Draft, Erased, Flushed, Link, PSlot, Persisted, Persistent};

/// A child of a node under construction.
#[derive(Debug)]
pub enum Child<'e, 'h> {
    /// An object that is reachable already, or durable and known to the builder alone, under its tag in the new node.
    Reachable(Link),
    /// A new object, its kind and aux.
    New(Flushed<'e, 'h, Erased>, Kind, u8),
    /// A new object that is durable already.
    Durable(Persisted<'h, Erased>, Kind, u8),
}

impl<'e, 'h> Child<'e, 'h> {
    /// Links a slot of a draft to the child, under `byte`.
    pub fn attach<N: Persistent>(
        self,
        draft: &mut Draft<'e, 'h, N>,
        slot: impl FnOnce(&mut N) -> &mut PSlot,
        byte: u8,
    ) {
        match self {
            Child::Reachable(link) => draft.link(slot, link),
            Child::New(object, kind, aux) => draft.adopt(slot, object, child_tag(kind, byte, aux)),
            Child::Durable(object, kind, aux) => {
                draft.adopt_persisted(slot, object, child_tag(kind, byte, aux));
            }
        }
    }
}

/// The children of a node under construction: at most one for each byte.
#[derive(Debug, Default)]
pub struct Children<'e, 'h> {
    /// The key that ends at the node.
    pub ends: Option<Child<'e, 'h>>,
    /// The others.
    pub list: Vec<(u8, Child<'e, 'h>)>,
}

impl<'e, 'h> Children<'e, 'h> {
    /// The links of a reachable node: the key that ends there, if not null, and those that `list` returns.
    pub fn of(ends: Link, list: Vec<(u8, Link)>) -> Self {
        let reachable = |(byte, link)| (byte, Child::Reachable(link));
        Children {
            ends: (!ends.is_null()).then_some(Child::Reachable(ends)),
            list: list.into_iter().map(reachable).collect(),
        }
    }

    /// Adds the child of the keys whose byte at the node's level is `byte` (`None`: the key that ends there).
    pub fn add(&mut self, byte: Option<u8>, child: Child<'e, 'h>) {
        match byte {
            None => self.ends = Some(child),
            Some(byte) => self.list.push((byte, child)),
        }
    }

    /// Adds a reachable object, with its present kind and this aux.
    pub fn add_reachable(&mut self, byte: Option<u8>, link: Link, aux: u8) {
        let tag = child_tag(link.kind(), byte.unwrap_or_default(), aux);
        self.add(byte, Child::Reachable(link.with_tag(tag)));
    }
}
