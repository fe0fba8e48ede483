//! Nodes under construction: private drafts, flushed with their batch.

use super::n48::N48;
use super::n256::N256;
use super::node::{Common, Inner, NodeRef};
use super::{Prefix, Scheme};
use art::{Kind, Tagged, child_tag};
use heap::{Error, Heap};
use pmem::{Batch, Draft, Erased, Flushed, Link, Media, PSlot};

/// What a node under construction links to.
pub(crate) enum Child<'e, 'h> {
    /// Something reachable already, under its tag in the new node.
    Reachable(Link),
    /// Something new, its kind and aux.
    New(Flushed<'e, 'h, Erased>, Kind, u8),
}

/// The children of a node under construction: at most one for each byte.
#[derive(Default)]
pub(crate) struct Children<'e, 'h> {
    ends: Option<Child<'e, 'h>>,
    list: Vec<(u8, Child<'e, 'h>)>,
}

impl<'e, 'h> Children<'e, 'h> {
    /// All that hangs in `node`, but for the child for `without`.
    pub(crate) fn of<S: Scheme, M: Media>(node: NodeRef<'_, S>, media: &M, without: Option<u8>) -> Self {
        let ends = node.common().ends.load(media);
        let mut list = Vec::with_capacity(17);
        node.all(media, |byte, link| {
            if Some(byte) != without {
                list.push((byte, Child::Reachable(link)));
            }
        });
        Children {
            ends: (!ends.is_null()).then_some(Child::Reachable(ends)),
            list,
        }
    }

    /// Adds the child of the keys whose byte at the node's level is `byte` (`None`: the key that ends there).
    pub(crate) fn add(&mut self, byte: Option<u8>, child: Child<'e, 'h>) {
        match byte {
            None => self.ends = Some(child),
            Some(byte) => self.list.push((byte, child)),
        }
    }

    /// Adds something reachable, with the kind it has and this aux.
    pub(crate) fn add_reachable(&mut self, byte: Option<u8>, link: Link, aux: u8) {
        let tag = child_tag(link.kind(), byte.unwrap_or_default(), aux);
        self.add(byte, Child::Reachable(link.with_tag(tag)));
    }
}

/// Builds the smallest node that holds `children`.
pub(crate) fn draft_node<'e, 'h, S: Scheme, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
    header: Prefix,
    mut children: Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind), Error> {
    children.list.sort_unstable_by_key(|(byte, _)| *byte);
    match children.list.len() {
        0..=4 => build::<S::N4, M>(heap, batch, header, children),
        5..=16 => build::<S::N16, M>(heap, batch, header, children),
        17..=48 => build::<N48, M>(heap, batch, header, children),
        _ => build::<N256, M>(heap, batch, header, children),
    }
}

fn build<'e, 'h, N: Inner, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
    header: Prefix,
    children: Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind), Error> {
    let mut draft = heap.draft(N::new(Common::new(header)), 0, batch)?;
    if let Some(child) = children.ends {
        attach(&mut draft, N::ends_mut, 0, child);
    }
    for (i, (byte, child)) in children.list.into_iter().enumerate() {
        attach(&mut draft, |node| node.fill(i, byte), byte, child);
    }
    Ok((draft.flush(batch).erased(), N::KIND))
}

fn attach<'e, 'h, N: Inner>(
    draft: &mut Draft<'e, 'h, N>,
    slot: impl FnOnce(&mut N) -> &mut PSlot,
    byte: u8,
    child: Child<'e, 'h>,
) {
    match child {
        Child::Reachable(link) => draft.link(slot, link),
        Child::New(object, kind, aux) => draft.adopt(slot, object, child_tag(kind, byte, aux)),
    }
}
