//! The whole content of a node, its chain replayed: for scans, consolidations and modifications.

use super::base::BaseRef;
use super::link::{BASE, FIRST_DELTA, Kind, depth, emptied, gone, kind, same_place};
use super::object::{Cell, Pair, PairRef, RangeRef};
use super::page::{Page, follow};
use art::damaged;
use heap::{Access, footprint};
use index::codec::{PairWords, RecordRef, prefix};
use pmem::{Fault, Link, Media};
use std::cmp::Ordering;

/// The content of a node, in order.
#[derive(Debug)]
pub(super) struct Content<'g, T> {
    pub(super) items: Vec<T>,
    pub(super) low: &'g [u8],
    pub(super) high: Option<&'g [u8]>,
    pub(super) right: Link,
}

/// The objects that a replaced chain leaves.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// The objects of the chain, and their lengths.
    pub(super) objects: Vec<(Link, usize)>,
    /// Records of pairs that were removed or replaced.
    pub(super) records: Vec<Link>,
}

/// A separator, and the child for the keys from it on.
pub(super) type Child<'g> = (&'g [u8], Link);

/// A pair with its key.
#[derive(Clone, Copy, Debug)]
struct Named<'g> {
    pair: PairWords,
    /// The key, if it is a record's.
    key: Option<&'g [u8]>,
}

impl<'g> Named<'g> {
    fn of<M: Media>(heap: &'g Access<M>, pair: PairWords) -> Result<Named<'g>, Fault> {
        let key = match pair.link.is_null() {
            true => None,
            false => Some(RecordRef::at(heap, pair.link)?.key),
        };
        if key.is_some_and(|key| prefix(key) != pair.prefix) {
            return Err(damaged("prefix of a key", pair.link));
        }
        Ok(Named { pair, key })
    }

    fn compare(&self, other: &Named<'_>) -> Ordering {
        let prefixes = self.pair.prefix.cmp(&other.pair.prefix);
        let [a, b] = [self, other].map(|named| named.pair.prefix.to_be_bytes());
        prefixes.then_with(|| self.key.unwrap_or(&a).cmp(other.key.unwrap_or(&b)))
    }
}

/// The replayed content of a leaf: pairs in order, and the records of those that no longer count.
type Replayed = (Vec<PairWords>, Vec<Link>);

impl<'g> Page<'g> {
    fn bounded<M: Media, T>(&self, heap: &'g Access<M>, items: Vec<T>) -> Result<Content<'g, T>, Fault> {
        let low = self.low(heap)?;
        let (high, right) = self
            .high(heap)?
            .map_or((None, Link::NULL), |(high, right)| (Some(high), right));
        if high.is_some_and(|high| high <= low) {
            return Err(damaged("bounds of a node", self.cell));
        }
        Ok(Content {
            items,
            low,
            high,
            right,
        })
    }

    /// The pairs of a leaf.
    pub(super) fn pairs<M: Media>(&self, heap: &'g Access<M>) -> Result<Content<'g, PairWords>, Fault> {
        let (items, _) = self.replay(heap)?;
        self.bounded(heap, items)
    }

    /// The pairs of a leaf, and the objects that go when the chain is replaced.
    pub(super) fn pairs_and_remains<M: Media>(
        &self,
        heap: &'g Access<M>,
    ) -> Result<(Content<'g, PairWords>, Remains), Fault> {
        let (items, records) = self.replay(heap)?;
        let mut remains = Remains {
            records,
            ..Remains::default()
        };
        self.add_objects(heap, &mut remains)?;
        Ok((self.bounded(heap, items)?, remains))
    }

    /// The deltas of a leaf, with whether they count, ordered by keys, and for one key newest first.
    fn deltas<M: Media>(&self, heap: &'g Access<M>) -> Result<Vec<(Named<'g>, bool)>, Fault> {
        let media = heap.media();
        let mut deltas = Vec::new();
        let mut at = self.head;
        while matches!(kind(at), Kind::Put | Kind::PutRecord) {
            let pair = PairRef::at(heap, at)?;
            let is_gone = pair.pair.gone.peek(media) != 0 || gone(self.head) == FIRST_DELTA + depth(at);
            deltas.push((Named::of(heap, pair.words)?, !is_gone));
            at = follow(at, pair.next)?;
        }
        deltas.sort_by(|(a, _), (b, _)| a.compare(b));
        for i in (1..deltas.len()).rev() {
            deltas[i].1 &= deltas[i - 1].0.compare(&deltas[i].0).is_ne();
        }
        Ok(deltas)
    }

    fn replay<M: Media>(&self, heap: &'g Access<M>) -> Result<Replayed, Fault> {
        let media = heap.media();
        let deltas = self.deltas(heap)?;
        let (base, _) = self.ground(heap)?;
        if base.level > 0 {
            return Err(damaged("level of a leaf", self.cell));
        }
        let mut pairs = Vec::with_capacity(base.counted() + deltas.len());
        let mut dead = Vec::new();
        let mut take = |pair: PairWords, counts: bool| match counts {
            true => pairs.push(pair),
            false if pair.link.is_null() => {}
            false => dead.push(pair.link),
        };
        let mut deltas = deltas.into_iter().peekable();
        for entry in 0..base.counted() {
            let pair = base.pair(media, entry);
            let mut counts = gone(self.head) != entry as u16 + 1 && !base.is_gone(media, entry);
            if deltas.peek().is_some() {
                let named = Named::of(heap, pair)?;
                while let Some((delta, is_live)) = deltas.next_if(|(delta, _)| delta.compare(&named).is_le())
                {
                    counts &= delta.compare(&named).is_ne();
                    take(delta.pair, is_live);
                }
            }
            take(pair, counts);
        }
        deltas.for_each(|(delta, is_live)| take(delta.pair, is_live));
        Ok((pairs, dead))
    }

    /// The children of an inner node.
    pub(super) fn children<M: Media>(&self, heap: &'g Access<M>) -> Result<Content<'g, Child<'g>>, Fault> {
        let mut routes = Vec::new();
        let mut at = self.head;
        while kind(at) == Kind::Route {
            let route = RangeRef::at(heap, at)?;
            routes.push(route);
            at = follow(at, route.next)?;
        }
        let (base, _) = self.ground(heap)?;
        if base.level == 0 {
            return Err(damaged("level of an inner node", self.cell));
        }
        let mut children = base.children(heap)?;
        children.truncate(base.counted());
        for route in routes.into_iter().rev() {
            let from = children.partition_point(|(separator, _)| *separator < route.from);
            let to = match route.to {
                Some(to) => children.partition_point(|(separator, _)| *separator < to),
                None => children.len(),
            };
            children.splice(from..to.max(from), [(route.from, route.cell)]);
        }
        if children.is_empty() {
            return Err(damaged("inner node without a child", self.cell));
        }
        self.bounded(heap, children)
    }

    /// The objects that go when the chain is replaced, including a merged sibling.
    pub(super) fn remains<M: Media>(&self, heap: &'g Access<M>) -> Result<Remains, Fault> {
        let mut remains = Remains::default();
        if self.level == 0 {
            remains.records = self.replay(heap)?.1;
        }
        self.add_objects(heap, &mut remains)?;
        Ok(remains)
    }

    /// The head without the pairs of a leaf, all of which are removed, and the objects that go with them: all but the
    /// base, and the mark of a split on it. A base below the mark of a merge stays without the mark.
    pub(super) fn without_pairs<M: Media>(&self, heap: &'g Access<M>) -> Result<(Link, Remains), Fault> {
        let (_, mut remains) = self.pairs_and_remains(heap)?;
        let mut at = self.head;
        while !matches!(kind(at), Kind::Split | Kind::Base) {
            at = match kind(at) {
                Kind::Put | Kind::PutRecord => follow(at, PairRef::at(heap, at)?.next)?,
                Kind::Apart => at.with_tag(BASE),
                _ => follow(at, RangeRef::at(heap, at)?.next)?,
            };
        }
        let (base, mark) = self.ground(heap)?;
        let stays = |link: Link| {
            same_place(link, base.link) || (same_place(link, at) && matches!(mark, Some((Kind::Split, _))))
        };
        remains.objects.retain(|&(link, _)| !stays(link));
        Ok((emptied(at), remains))
    }

    fn add_objects<M: Media>(&self, heap: &'g Access<M>, remains: &mut Remains) -> Result<(), Fault> {
        let mut at = self.head;
        loop {
            at = match kind(at) {
                Kind::Put | Kind::PutRecord => {
                    remains.objects.push((at, size_of::<Pair>()));
                    follow(at, PairRef::at(heap, at)?.next)?
                }
                Kind::Route | Kind::Split | Kind::Merge | Kind::Frozen => {
                    let range = RangeRef::at(heap, at)?;
                    remains.objects.push((at, range.extent));
                    if kind(at) == Kind::Merge {
                        let merged = Page::load(heap, range.cell)?;
                        if kind(merged.head) != Kind::Frozen {
                            return Err(damaged("merged node", range.cell));
                        }
                        if merged.level == 0 {
                            remains.records.extend(merged.replay(heap)?.1);
                        }
                        merged.add_objects(heap, remains)?;
                        remains.objects.push((range.cell, size_of::<Cell>()));
                    }
                    follow(at, range.next)?
                }
                Kind::Base | Kind::Apart => {
                    let base = BaseRef::at(heap, at)?;
                    remains.objects.push((at, base.extent(heap)));
                    return Ok(());
                }
            };
        }
    }
}

// The length that the heap counts for these two (`footprint`) is their size, which needs no rounding.
const _: () = assert!(size_of::<Pair>() == 32 && size_of::<Cell>() == 8);

/// The length of a cell, as the heap counts it: its size.
pub(super) fn cell_extent() -> usize {
    footprint::<Cell>(0).unwrap_or(usize::MAX)
}
