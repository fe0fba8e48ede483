//! The tracer: reports live objects to the heap (post-crash collection, audit).
//!
//! The nodes of a level are a list, from the one that begins it along the siblings, and the separators lead to nodes
//! that are in it. So a node's cell is reported by what leads to it from the left (a base, or a split's mark), or,
//! for the first of a level, by the first of the level above; and each object is reported once. A partial base has no
//! right sibling of its own: a split's mark has the new one; and a merge's mark has the merged node, which leads to
//! its own right sibling. Until it is replaced, a chain keeps all records that it has ever named.

use super::base::BaseRef;
use super::content::cell_extent;
use super::link::{Apart, Kind, apart, is_emptied, kind, part_tag};
use super::object::{Pair, PairRef, RangeRef, slot_at};
use super::{KIND, Root, root_at};
use art::damaged;
use heap::{Access, Error, Trace};
use index::codec::RecordRef;
use pmem::{Link, Media};

/// Traces the objects of a P-BwTree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracer;

// SAFETY: it reports every link of the object that readers follow, except separators, whose nodes their siblings
// report, and entries of a base that a split has given to a sibling, whose base reports them.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        let media = heap.media();
        let len = match (kind(link), apart(link)) {
            (Kind::Apart, Some(Apart::Root)) => {
                children.push(root_at(heap, link)?.top.load(media));
                size_of::<Root>()
            }
            (Kind::Apart, Some(Apart::Record)) => RecordRef::at(heap, link)?.extent(),
            (Kind::Apart, Some(Apart::Cell(_))) => {
                children.push(slot_at(heap, link)?.load(media));
                cell_extent()
            }
            (Kind::Put | Kind::PutRecord, _) => {
                let pair = PairRef::at(heap, link)?;
                children.extend([pair.next, pair.words.link]);
                size_of::<Pair>()
            }
            (form @ (Kind::Route | Kind::Split | Kind::Merge | Kind::Frozen), _) => {
                let range = RangeRef::at(heap, link)?;
                match form {
                    Kind::Route => children.push(range.next),
                    // Entries that no longer count were retired.
                    Kind::Split if is_emptied(link) => {
                        children.extend([range.next.with_tag(part_tag(0)), range.cell]);
                    }
                    // The new cell of the future root leads to the base.
                    Kind::Frozen if !range.cell.is_null() => children.push(range.cell),
                    _ => children.extend([range.next, range.cell]),
                }
                range.extent
            }
            (Kind::Base, _) | (Kind::Apart, Some(Apart::Part(_))) => {
                let base = BaseRef::at(heap, link)?;
                if base.level == 0 {
                    let pairs = (0..base.counted()).map(|i| base.pair(media, i));
                    children.extend(pairs.map(|pair| pair.link));
                } else if base.bounds(heap)?.0.is_empty() {
                    children.extend(base.entries.first().map(|first| first.word.load_link(media)));
                }
                if kind(link) == Kind::Base {
                    children.push(base.head.right.load(media));
                }
                base.extent(heap)
            }
            (Kind::Apart, None) => return Err(damaged("link of a P-BwTree", link).into()),
        };
        children.retain(|child| !child.is_null());
        Ok(len as u64)
    }
}
