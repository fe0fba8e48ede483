//! A ROART built from sorted pairs ([`index::Bulk`]): the objects of ordinary inserts, but packed as densely as
//! possible.
//!
//! The objects for the pairs of a slot come from `subtree`: leaf arrays and inline ones as full as possible, and
//! nodes over these only where needed. A pair whose value is longer than a kilobyte gets a leaf in a node, and is in no
//! array: the builder writes such a value at once instead of keeping it.

use crate::array::MAX_LEAVES;
use crate::inline::word::KeyWord;
use crate::inline::{Fill, Image, LARGEST_CAPACITY, draft_inline};
use crate::node::{draft_node, draft_root};
use crate::subtree::{Built, Member, Subtrees, pair_of, shared_by};
use crate::writer::skip_between;
use crate::{Roart, Variant, access, root_tag, tracer};
use art::{Byte, Child, Children, Group, Kind, Layout, Spot};
use heap::{Access, Error, Heap};
use index::{Bulk, Parts};
use pmem::{Erased, Flushed, Link, Media, PersistBatch, Tag};
use std::marker::PhantomData;

/// The pairs for an inline leaf array, if all of these are short; `None` also for a single pair.
fn short_pairs<V: Variant>(pairs: &Group<'_>) -> Option<Vec<(KeyWord, u64)>> {
    let pairs = pairs.pairs();
    if !V::LC || !V::INLINE || pairs.len() == 1 {
        return None;
    }
    let mut short = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        short.push(pair_of(key, value)?);
    }
    Some(short)
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
        let short = short_pairs::<V>(&pairs);
        // Most groups: without a list of members.
        if let Some(image) = short
            .as_deref()
            .and_then(|short| Image::of(short, 0, Fill::Tight))
        {
            let (array, _) = draft_inline(heap, batch, &image)?;
            return Ok(Child::New(array, Kind::Inline, image.shape.aux()));
        }
        let members: Vec<_> = pairs
            .pairs()
            .map(|(key, value)| Member::New(key, value))
            .collect();
        let mut built = Built::default();
        let subtrees = Subtrees::<M, V>::new(heap, MAX_LEAVES);
        let top = match short {
            Some(_) => subtrees.draft_over(batch, depth, shared_by(&members, depth), &members, &mut built),
            None => subtrees.draft_subtree(batch, depth, None, &members, &mut built),
        };
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
