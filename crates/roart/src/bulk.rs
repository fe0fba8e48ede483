//! A ROART built from sorted pairs ([`index::Bulk`]): the same structure as after ordinary inserts, but packed as
//! densely as possible.
//!
//! The objects for the pairs of a slot come from `subtree`: leaf arrays and inline ones as full as possible, and
//! nodes over these only where needed.

use crate::array::MAX_LEAVES;
use crate::inline::{Fill, Image, LARGEST_CAPACITY, draft_inline};
use crate::node::{draft_node, draft_root};
use crate::subtree::{Built, Member, Subtrees, pair_of};
use crate::writer::skip_between;
use crate::{Roart, Variant, access, root_tag, tracer};
use art::{Byte, Child, Children, Group, Kind, Layout, Spot};
use heap::{Access, Error, Heap};
use index::{Bulk, Parts};
use pmem::{Erased, Flushed, Link, Media, PersistBatch, Tag};
use std::marker::PhantomData;

/// Drafts an inline leaf array for pairs, if they are short and fit one; `None` otherwise, and for a single pair.
fn draft_pairs<'e, 'h, M: Media, V: Variant>(
    heap: &'h Access<M>,
    batch: &PersistBatch<'e, 'h, M>,
    pairs: &Group<'_>,
) -> Result<Option<Child<'e, 'h>>, Error> {
    let pairs = pairs.pairs();
    if !V::LC || !V::INLINE || pairs.len() == 1 {
        return Ok(None);
    }
    let mut short = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let Some(pair) = pair_of(key, value) else {
            return Ok(None);
        };
        short.push(pair);
    }
    let Some(image) = Image::of(&short, 0, Fill::Tight) else {
        return Ok(None);
    };
    let (array, _) = draft_inline(heap, batch, &image)?;
    Ok(Some(Child::New(array, Kind::Inline, image.shape.aux())))
}

/// The layout of a ROART of a variant.
struct Leaves<V>(PhantomData<V>);

impl<V: Variant> Layout for Leaves<V> {
    type Digit = Byte;

    const ROOT_IS_NODE: bool = true;

    #[inline]
    fn max(key: &[u8], value: &[u8]) -> usize {
        match V::LC {
            true if V::INLINE && pair_of(key, value).is_some() => LARGEST_CAPACITY,
            true => MAX_LEAVES,
            false => 1,
        }
    }

    fn group<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        depth: usize,
        pairs: Group<'_>,
    ) -> Result<Child<'e, 'h>, Error> {
        if let Some(array) = draft_pairs::<M, V>(heap, batch, &pairs)? {
            return Ok(array);
        }
        let members: Vec<_> = pairs
            .pairs()
            .map(|(key, value)| Member::New(key, value))
            .collect();
        let mut built = Built::default();
        let top =
            Subtrees::<M, V>::new(heap, MAX_LEAVES).draft_subtree(batch, depth, None, &members, &mut built);
        match top {
            Ok(top) => Ok(top.child),
            Err(error) => {
                built.settle(heap, &heap::pin(), false);
                Err(error)
            }
        }
    }

    fn node<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        spot: Spot<'_>,
        children: &mut Children<'e, 'h>,
    ) -> Result<Child<'e, 'h>, Error> {
        let skip = skip_between(spot.depth.saturating_sub(1), spot.level, Link::NULL)?;
        let (node, kind, _) = draft_node(heap, batch, &spot.key[..spot.level], children)?;
        Ok(Child::New(node, kind, skip))
    }

    fn root<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        children: &mut Children<'e, 'h>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
        Ok((draft_root(heap, batch, children)?, root_tag::<V>()))
    }
}

impl<M: Media, V: Variant> Bulk for Roart<M, V> {
    fn build(heap: &Heap<M>, name: &[u8], parts: Parts<'_>) -> Result<Self, index::Error> {
        let heap = access(heap);
        // SAFETY: nodes, leaves and arrays are a ROART's.
        let root = unsafe { art::build::<Leaves<V>, M>(heap, name, &*tracer(), parts) }?;
        Ok(Self::at(heap, root))
    }
}
