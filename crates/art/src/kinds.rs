//! The four kinds of inner node (ART): which kind a link leads to, and how the right one is built.
//!
//! Each design defines the layout of their bytes, and the order in which these change.

use crate::{Children, Kind, Tagged, damaged};
use heap::{Access, Error, Heap};
use pmem::{Erased, Fault, Flushed, Link, Media, Offset, PSlot, PersistBatch, Persistent, zeroed};

/// The common beginning of nodes of all kinds.
pub trait Head {
    /// The slot, in a draft, of the key that ends at the node's level.
    fn ends_mut(&mut self) -> &mut PSlot;
}

/// An inner node of one kind. If its bytes are zero, except for its head, it has no children.
pub trait Inner: Persistent {
    /// The kind.
    const KIND: Kind;

    /// Its head.
    type Head: Head;

    /// The head of a draft.
    fn head_mut(&mut self) -> &mut Self::Head;

    /// The slot for the `i`-th child of a draft, which from now on counts as the slot for `byte`.
    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot;
}

/// The four kinds of a design, which share a head.
pub trait Kinds: 'static {
    /// The common head.
    type Head: Head;
    /// Up to 4 children.
    type N4: Inner<Head = Self::Head>;
    /// Up to 16 children.
    type N16: Inner<Head = Self::Head>;
    /// Up to 48 children.
    type N48: Inner<Head = Self::Head>;
    /// Up to 256 children.
    type N256: Inner<Head = Self::Head>;

    /// Bytes of a node of this kind.
    fn size(kind: Kind) -> usize {
        match kind {
            Kind::N4 => size_of::<Self::N4>(),
            Kind::N16 => size_of::<Self::N16>(),
            Kind::N48 => size_of::<Self::N48>(),
            _ => size_of::<Self::N256>(),
        }
    }
}

/// A reference to an inner node.
#[derive(Debug)]
pub enum InnerRef<'g, K: Kinds> {
    /// Of up to 4 children.
    N4(&'g K::N4),
    /// Of up to 16.
    N16(&'g K::N16),
    /// Of up to 48.
    N48(&'g K::N48),
    /// Of up to 256.
    N256(&'g K::N256),
}

impl<K: Kinds> Clone for InnerRef<'_, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Kinds> Copy for InnerRef<'_, K> {}

/// Runs the same code for an [`InnerRef`] of any kind.
#[macro_export]
macro_rules! each_kind {
    ($node:expr, $inner:ident => $result:expr) => {
        match $node {
            $crate::InnerRef::N4($inner) => $result,
            $crate::InnerRef::N16($inner) => $result,
            $crate::InnerRef::N48($inner) => $result,
            $crate::InnerRef::N256($inner) => $result,
        }
    };
}

impl<'g, K: Kinds> InnerRef<'g, K> {
    /// The node that a link leads to.
    ///
    /// # Errors
    ///
    /// If no such node can be there.
    #[inline(always)]
    pub fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Self, Fault> {
        let offset = link
            .offset()
            .ok_or_else(|| damaged("null link to a node", link))?;
        Ok(match link.kind() {
            Kind::N4 => InnerRef::N4(heap.at(offset)?),
            Kind::N16 => InnerRef::N16(heap.at(offset)?),
            Kind::N48 => InnerRef::N48(heap.at(offset)?),
            Kind::N256 => InnerRef::N256(heap.at(offset)?),
            _ => return Err(damaged("link to a node", link)),
        })
    }

    /// Its kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            InnerRef::N4(_) => Kind::N4,
            InnerRef::N16(_) => Kind::N16,
            InnerRef::N48(_) => Kind::N48,
            InnerRef::N256(_) => Kind::N256,
        }
    }
}

/// Builds the smallest node that holds `children`, with the given head for its kind; its lines join the batch. On
/// failure the children are left. Returns the node, its kind and its offset: dropped, the node gives its chunk back,
/// but a caller that links it to another draft and then fails must do that itself.
///
/// # Errors
///
/// If the heap has no room.
#[track_caller]
pub fn draft_smallest<'e, 'h, K: Kinds, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    head: impl FnOnce(Kind) -> K::Head,
    children: &mut Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind, Offset), Error> {
    match children.list.len() {
        0..=4 => draft_kind::<K::N4, M>(heap, batch, head, children),
        5..=16 => draft_kind::<K::N16, M>(heap, batch, head, children),
        17..=48 => draft_kind::<K::N48, M>(heap, batch, head, children),
        _ => draft_kind::<K::N256, M>(heap, batch, head, children),
    }
}

/// Builds a node of this kind, as [`draft_smallest`] does.
///
/// # Errors
///
/// If the heap has no room.
#[track_caller]
pub fn draft_kind<'e, 'h, N: Inner, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    head: impl FnOnce(Kind) -> N::Head,
    children: &mut Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind, Offset), Error> {
    let mut node: N = zeroed();
    *node.head_mut() = head(N::KIND);
    let mut draft = heap.draft(node, 0, batch)?;
    if let Some(child) = children.ends.take() {
        child.attach(&mut draft, |node| node.head_mut().ends_mut(), 0);
    }
    for (i, (byte, child)) in children.list.drain(..).enumerate() {
        child.attach(&mut draft, |node| node.fill(i, byte), byte);
    }
    let offset = draft.offset();
    Ok((draft.flush(batch).erased(), N::KIND, offset))
}
