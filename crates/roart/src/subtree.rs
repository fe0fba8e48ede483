//! Subtrees rebuilt from keys: the common part of splits, merges and conversions of leaf arrays.
//!
//! A single key becomes a leaf. If all are short pairs, they go into an inline leaf array, otherwise into a leaf array.
//! If they do not fit, they are grouped by the first byte that not all share, below a node at that byte.
//!
//! A build that fails for lack of memory leaves nothing behind: drafts are dropped with their tokens, and objects
//! that had become part of something larger are retired.

use crate::Variant;
use crate::array::{DraftEntry, Extent, ROOM, draft_array};
use crate::fingerprint::{fingerprint, leaf_tag};
use crate::inline::word::KeyWord;
use crate::inline::{Fill, Image, draft_inline};
use crate::locate::Parent;
use crate::node::{Layouts, draft_node};
use crate::writer::{Writer, skip_between};
use art::{Child, Children, Kind, Kinds, Leaf, LeafRef, Tagged, child_tag, common_prefix, draft_leaf};
use heap::{Access, Error, Guard};
use pmem::{Fault, Flushed, Link, Media, PersistBatch};
use std::marker::PhantomData;

/// A key and its value, on the way into a subtree.
#[derive(Clone, Copy)]
pub(crate) enum Member<'a> {
    /// A pair of an inline leaf array, and its key's first byte.
    Pair(u8, KeyWord, u64),
    /// A reachable leaf, by a link tagged as in a leaf array; and its pair, if it is a short one.
    Leaf(LeafRef<'a>, Link, Option<(KeyWord, u64)>),
    /// A new key and its value.
    New(&'a [u8], &'a [u8]),
}

/// The pair of a short key and value.
#[inline]
pub(crate) fn pair_of(key: &[u8], value: &[u8]) -> Option<(KeyWord, u64)> {
    Some((KeyWord::of(key)?, short_value(value)?))
}

/// The value of a short pair as a word.
#[inline]
pub(crate) fn short_value(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_le_bytes)
}

impl Member<'_> {
    fn pair(&self) -> Option<(KeyWord, u64)> {
        match self {
            Member::Pair(_, key, value) => Some((*key, *value)),
            Member::Leaf(_, _, pair) => *pair,
            Member::New(key, value) => pair_of(key, value),
        }
    }

    /// Calls `f` with the key.
    pub(crate) fn with_key<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Member::Pair(first, key, _) => {
                let (bytes, len) = key.key(*first);
                f(&bytes[..len])
            }
            Member::Leaf(leaf, ..) => f(leaf.key()),
            Member::New(key, _) => f(key),
        }
    }

    fn byte(&self, level: usize) -> Option<u8> {
        self.with_key(|key| key.get(level).copied())
    }

    /// Length of the members' common prefix, which is at least `known`.
    pub(crate) fn shared(&self, other: &Member<'_>, known: usize) -> usize {
        self.with_key(|a| {
            other.with_key(|b| match (a.get(known..), b.get(known..)) {
                (Some(a), Some(b)) => known + common_prefix(a, b),
                _ => common_prefix(a, b),
            })
        })
    }
}

/// Length of the common prefix of all members, which is at least `known`.
pub(crate) fn shared_by(members: &[Member<'_>], known: usize) -> usize {
    let Some((first, others)) = members.split_first() else {
        return 0;
    };
    let least = others.iter().map(|other| first.shared(other, known)).min();
    least.unwrap_or_else(|| first.with_key(<[u8]>::len))
}

/// The top of a subtree under construction, and its extent if it is new.
pub(crate) struct Top<'e, 'h> {
    pub(crate) child: Child<'e, 'h>,
    place: Option<Extent>,
}

/// Side effects of building subtrees.
#[derive(Default)]
pub(crate) struct Built {
    /// New objects that are part of others by now: place and length.
    adopted: Vec<Extent>,
    /// Leaves whose pairs are now in an inline leaf array.
    replaced: Vec<(Link, usize)>,
}

impl Built {
    /// Retires objects that are no longer needed: on success the replaced leaves, otherwise the built objects.
    pub(crate) fn settle<M: Media>(self, heap: &Access<M>, guard: &Guard, done: bool) {
        if done {
            for (link, len) in self.replaced {
                art::retire(heap, guard, link, len);
            }
        } else {
            for (offset, len) in self.adopted {
                // SAFETY: it was built for a subtree that was not published, so nothing has ever led to it.
                unsafe { heap.retire(guard, offset, len) };
            }
        }
    }
}

/// Builds subtrees.
pub(crate) struct Subtrees<'h, M: Media, V> {
    heap: &'h Access<M>,
    /// Maximum number of leaves of an array.
    max: usize,
    variant: PhantomData<V>,
}

impl<'h, M: Media, V: Variant> Subtrees<'h, M, V> {
    /// A builder whose arrays get at most `max` leaves.
    pub(crate) fn new(heap: &'h Access<M>, max: usize) -> Self {
        let variant = PhantomData;
        Subtrees { heap, max, variant }
    }

    /// The member for a leaf of a node, whose lock the caller holds.
    pub(crate) fn leaf_member(&self, link: Link) -> Result<Member<'h>, Fault> {
        let leaf = LeafRef::at(self.heap, link)?;
        let print = fingerprint(leaf.key());
        Ok(Self::member(self.heap, leaf, link.with_tag(leaf_tag(print))))
    }

    /// The member for a leaf of an array, whose lock the caller holds. The link has the leaf's fingerprint.
    pub(crate) fn entry_member(&self, link: Link) -> Result<Member<'h>, Fault> {
        Ok(Self::member(self.heap, LeafRef::at(self.heap, link)?, link))
    }

    fn member(heap: &'h Access<M>, leaf: LeafRef<'h>, link: Link) -> Member<'h> {
        let pair = if V::INLINE {
            pair_of(leaf.key(), &leaf.value(heap))
        } else {
            None
        };
        Member::Leaf(leaf, link, pair)
    }

    /// The pairs of the members, ascending, if all are pairs and inline leaf arrays are allowed.
    pub(crate) fn pairs_of(members: &[Member<'_>]) -> Option<Vec<(KeyWord, u64)>> {
        if !V::INLINE {
            return None;
        }
        let mut pairs = Vec::with_capacity(members.len());
        for member in members {
            pairs.push(member.pair()?);
        }
        pairs.sort_unstable();
        Some(pairs)
    }

    /// Builds the object for the members at `depth` bytes, which all members share; `level` is the number of bytes that
    /// they share, if known.
    pub(crate) fn draft_subtree<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        depth: usize,
        level: Option<usize>,
        members: &[Member<'_>],
        built: &mut Built,
    ) -> Result<Top<'e, 'h>, Error> {
        if let [only] = members {
            return self.draft_single(batch, depth, only);
        }
        if let Some(pairs) = Self::pairs_of(members) {
            if let Some(image) = Image::of(&pairs, 0, Fill::Tight) {
                return self.draft_image(batch, &image, members, built);
            }
        } else if members.len() <= self.max {
            return self.draft_leaves(batch, members, built);
        }
        let level = level.unwrap_or_else(|| shared_by(members, depth));
        self.draft_over(batch, depth, level, members, built)
    }

    /// One member: a leaf.
    fn draft_single<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        depth: usize,
        member: &Member<'_>,
    ) -> Result<Top<'e, 'h>, Error> {
        if let Member::Leaf(_, link, _) = member {
            let byte = depth.checked_sub(1).and_then(|at| member.byte(at));
            return Ok(Top {
                child: Child::Reachable(link.with_tag(child_tag(Kind::Leaf, byte.unwrap_or_default(), 0))),
                place: None,
            });
        }
        let (leaf, place) = self.draft_member(batch, member)?;
        Ok(Top {
            child: Child::New(leaf.erased(), Kind::Leaf, 0),
            place: Some(place),
        })
    }

    /// Drafts a leaf for a member that has none.
    fn draft_member<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        member: &Member<'_>,
    ) -> Result<(Flushed<'e, 'h, Leaf>, Extent), Error> {
        let mut leaf = match member {
            Member::Pair(first, key, value) => {
                let (bytes, len) = key.key(*first);
                draft_leaf(self.heap, &bytes[..len], &value.to_le_bytes(), batch)?
            }
            Member::Leaf(leaf, ..) => draft_leaf(self.heap, leaf.key(), &leaf.value(self.heap), batch)?,
            Member::New(key, value) => draft_leaf(self.heap, key, value, batch)?,
        };
        let len = heap::footprint::<Leaf>(leaf.tail_mut().len()).unwrap_or_default();
        let place = (leaf.offset(), len);
        Ok((leaf.flush(batch), place))
    }

    /// Drafts an inline leaf array with these pairs, and notes the leaves of `members` as replaced by it.
    pub(crate) fn draft_image<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        image: &Image,
        members: &[Member<'_>],
        built: &mut Built,
    ) -> Result<Top<'e, 'h>, Error> {
        let (array, offset) = draft_inline(self.heap, batch, image)?;
        built
            .replaced
            .extend(members.iter().filter_map(|member| match member {
                Member::Leaf(leaf, link, _) => Some((*link, leaf.extent())),
                _ => None,
            }));
        Ok(Top {
            child: Child::New(array, Kind::Inline, image.shape.aux()),
            place: Some((offset, image.shape.size())),
        })
    }

    /// Drafts a leaf array.
    pub(crate) fn draft_leaves<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        members: &[Member<'_>],
        built: &mut Built,
    ) -> Result<Top<'e, 'h>, Error> {
        let mut entries = Vec::with_capacity(members.len());
        let mut leaves = Vec::new();
        for member in members {
            entries.push(match member {
                Member::Leaf(_, link, _) => DraftEntry::Reachable(*link),
                _ => {
                    let print = member.with_key(fingerprint);
                    let (leaf, place) = self.draft_member(batch, member)?;
                    leaves.push(place);
                    DraftEntry::New(leaf, print)
                }
            });
        }
        let (array, class, place) = draft_array::<M, V>(self.heap, batch, entries)?;
        built.adopted.extend(leaves);
        Ok(Top {
            child: Child::New(array, Kind::Array, class),
            place: Some(place),
        })
    }

    /// Drafts a node at `level`, to whose link `depth` bytes lead, over the groups by the members' bytes there.
    pub(crate) fn draft_over<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        depth: usize,
        level: usize,
        members: &[Member<'_>],
        built: &mut Built,
    ) -> Result<Top<'e, 'h>, Error> {
        let path = match members.first() {
            Some(member) => member.with_key(|key| key.get(..level).map(<[u8]>::to_vec)),
            None => None,
        };
        let path = path.ok_or(Fault {
            what: "node's level",
            offset: 0,
        })?;
        // The members in order of their bytes: each byte is looked up once, and most groups are single members.
        let ranked = |(i, member): (usize, &Member<'_>)| {
            let rank = member.byte(level).map_or(0, |byte| u64::from(byte) + 1);
            rank << 32 | i as u64
        };
        let mut ranks: Vec<u64> = members.iter().enumerate().map(ranked).collect();
        ranks.sort_unstable();
        let mut children = Children::default();
        children.list.reserve_exact(ranks.len().min(256));
        let mut places = Vec::with_capacity(ranks.len().min(256));
        for group in ranks.chunk_by(|a, b| a >> 32 == b >> 32) {
            let member = |rank: &u64| members[*rank as u32 as usize];
            let only = member(&group[0]);
            let byte = only.byte(level);
            let top = match (byte, group) {
                (Some(_), [_]) => self.draft_single(batch, level + 1, &only)?,
                (Some(_), _) => {
                    let group: Vec<_> = group.iter().map(member).collect();
                    self.draft_subtree(batch, level + 1, None, &group, built)?
                }
                (None, [_]) => self.draft_single(batch, 0, &only)?,
                (None, _) => {
                    return Err(Fault {
                        what: "a duplicate key",
                        offset: 0,
                    }
                    .into());
                }
            };
            places.extend(top.place);
            children.add(byte, top.child);
        }
        let top = self.draft_top(batch, &path, depth, children)?;
        built.adopted.append(&mut places);
        Ok(top)
    }

    /// Drafts a node at the end of `path` over an array that stays as it is, and the last member, which parts from
    /// the array's keys.
    pub(crate) fn draft_beside<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        depth: usize,
        path: &[u8],
        array: Link,
        members: &[Member<'_>],
        built: &mut Built,
    ) -> Result<Top<'e, 'h>, Error> {
        let level = path.len();
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return Err(art::damaged("array without keys", array).into());
        };
        let leaf = self.draft_single(batch, level + 1, last)?;
        let mut children = Children::default();
        children.add_reachable(first.byte(level), array, array.aux());
        children.add(last.byte(level), leaf.child);
        let top = self.draft_top(batch, path, depth, children)?;
        built.adopted.extend(leaf.place);
        Ok(top)
    }

    /// Drafts a node at the end of `path`, which hangs below `depth` bytes.
    pub(crate) fn draft_top<'e>(
        &self,
        batch: &PersistBatch<'e, 'h, M>,
        path: &[u8],
        depth: usize,
        mut children: Children<'e, 'h>,
    ) -> Result<Top<'e, 'h>, Error> {
        let above = depth.saturating_sub(1);
        let skip = skip_between(above, path.len(), Link::NULL)?;
        let (node, kind, offset) = draft_node(self.heap, batch, path, &mut children)?;
        Ok(Top {
            child: Child::New(node, kind, skip),
            place: Some((offset, Layouts::size(kind))),
        })
    }
}

impl<'g, M: Media, V: Variant> Writer<'g, M, V> {
    /// The builder of subtrees.
    pub(crate) fn subtrees(&self) -> Subtrees<'g, M, V> {
        Subtrees::new(self.heap, ROOM)
    }

    /// Swings the parent's slot to a subtree, whose batch this completes: the commit point.
    pub(crate) fn publish_top<'e>(
        &self,
        parent: &Parent<'_, M>,
        top: Top<'e, '_>,
        batch: PersistBatch<'e, '_, M>,
    ) {
        let fenced = batch.fence();
        match top.child {
            Child::New(object, kind, aux) => self.replace(parent, object.persisted(&fenced), kind, aux),
            Child::Durable(object, kind, aux) => self.replace(parent, object, kind, aux),
            Child::Reachable(link) => self.hang(parent, link, link.aux()),
        }
    }
}
