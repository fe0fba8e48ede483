//! The queue between the walk and the visitor: links whose objects have been prefetched.

use super::bounds::{edges_of, words_between};
use super::{Frame, Walk};
use crate::array::array_size;
use crate::inline::LINES_AHEAD;
use crate::inline::shape::Shape;
use crate::node::slot_in_n256;
use crate::{Roart, Variant};
use art::bounds::{Edge, Edges, key_of};
use art::{Kind, Tagged, prefetch, prefetch_range};
use index::Direction;
use pmem::{LINE, Link, Media, Offset};

/// Maximum number of links in the queue: more than the misses that a core overlaps, since leaf arrays take two steps.
const AHEAD: usize = 32;
/// Number of links to put at a time.
const REFILL: usize = 8;
/// Number of pairs in the queue at which no more are put: one large inline leaf array is read while the next is being
/// fetched.
const PAIRS_AHEAD: usize = 256;
/// A leaf array counts as this many pairs, so that the queue holds about as many arrays as a core overlaps misses.
const OF_ARRAY: usize = 16;
/// Distance in slots of an N256 between reading and prefetching.
const SLOTS_AHEAD: usize = 16;

/// A link to visit.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) link: Link,
    /// Number of bytes that lead to it.
    pub(super) depth: u32,
    /// Number of its leaves, once these have been prefetched.
    pub(super) leaves: u32,
    pub(super) edges: Edges,
    /// The first of the bytes that lead to the link.
    pub(super) first: u8,
}

/// Items in order, numbered by a count of all items ever put.
pub(super) struct Queue {
    items: [Item; AHEAD],
    /// Number of items ever taken and put.
    pub(super) taken: usize,
    put: usize,
    /// Number of items whose leaves have been prefetched, including taken ones.
    pub(super) staged: usize,
    /// Capacity in pairs of the inline leaf arrays in the queue, plus the share of the leaf arrays.
    pub(super) pairs: usize,
    /// Whether the last item put is an inner node that the walk must enter before more are put.
    pub(super) waits: bool,
}

impl Queue {
    /// The queue of a walk that starts at an inner node.
    pub(super) fn of(root: Item) -> Queue {
        Queue {
            items: [root; AHEAD],
            taken: 0,
            put: 1,
            staged: 0,
            pairs: 0,
            waits: true,
        }
    }

    #[inline(always)]
    pub(super) fn item(&self, number: usize) -> &Item {
        &self.items[number % AHEAD]
    }

    #[inline(always)]
    pub(super) fn item_mut(&mut self, number: usize) -> &mut Item {
        &mut self.items[number % AHEAD]
    }

    /// Takes an item whose leaves have been prefetched.
    #[inline(always)]
    pub(super) fn take(&mut self) {
        if self.item(self.taken).link.kind() == Kind::Array {
            self.pairs -= OF_ARRAY;
        }
        self.taken += 1;
    }

    /// Takes an item that leads to no leaves.
    #[inline(always)]
    pub(super) fn pass(&mut self) {
        self.taken += 1;
        self.staged = self.staged.max(self.taken);
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.put
    }

    /// Whether there is room for another [`REFILL`] items.
    #[inline(always)]
    pub(super) fn wants_more(&self) -> bool {
        self.put - self.taken <= AHEAD - REFILL && self.pairs < PAIRS_AHEAD
    }

    /// Whether there is room for another item, and one may be put.
    #[inline(always)]
    fn has_room(&self) -> bool {
        !self.waits && self.put - self.taken < AHEAD && self.pairs < PAIRS_AHEAD
    }

    /// The end of the items whose objects have arrived: all but the newest, which are still being fetched. The next
    /// item to be taken counts as arrived in any case.
    #[inline(always)]
    pub(super) fn arrived(&self) -> usize {
        let old = self.put.saturating_sub(REFILL);
        old.max((self.taken + 1).min(self.put))
    }
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// Puts links into the queue until it is full, an inner node must be entered first, or nothing is left;
    /// prefetches their objects.
    #[inline(always)]
    pub(super) fn fill(&self, walk: &mut Walk<'_, '_>) {
        let media = self.heap.media();
        let base = self.heap.pool().base().as_ptr().cast_const();
        while walk.queue.has_room() {
            let queue = &mut walk.queue;
            let Some(frame) = walk.path.last_mut() else { break };
            let Frame {
                slots,
                ends,
                level,
                end,
                edges,
                first,
                ..
            } = *frame;
            let (limit, mut put, mut next) = (queue.taken + AHEAD, queue.put, frame.next);
            // The slot at a position of an N256; none at the position of the key that ends there.
            let slot_at = |position: usize| match walk.direction {
                Direction::Forward => position.wrapping_sub(1),
                Direction::Reverse => 255usize.wrapping_sub(position),
            };
            if let Some(slots) = slots {
                let ahead = slot_at(next + SLOTS_AHEAD);
                prefetch(slots.as_ptr().wrapping_add(ahead));
            }
            while next < end && put < limit {
                let position = next;
                next += 1;
                let link = match slots {
                    Some(slots) => slots.get(slot_at(position)).map_or(ends, |slot| slot.load(media)),
                    None => walk.gathered[position],
                };
                if link.is_null() {
                    continue;
                }
                let mut item = Item {
                    link,
                    depth: level + 1,
                    leaves: 0,
                    edges,
                    first: if level == 0 { link.byte() } else { first },
                };
                if link == ends {
                    (item.depth, item.first) = (level, first);
                } else {
                    item.edges = edges_of(&walk.bounds, edges, level as usize, link.byte());
                }
                queue.items[put % AHEAD] = item;
                put += 1;
                let start = base.wrapping_add((link.bits() & Offset::MASK) as usize);
                match link.kind() {
                    Kind::Leaf => prefetch(start),
                    Kind::Array => {
                        queue.pairs += OF_ARRAY;
                        // Whether there is a second line is unpredictable; more are rare.
                        let size = array_size(link);
                        prefetch(start);
                        prefetch(start.wrapping_add(size.saturating_sub(1).min(LINE)));
                        if size > 2 * LINE {
                            prefetch_range(start.wrapping_add(2 * LINE), size - 2 * LINE);
                        }
                        if queue.pairs >= PAIRS_AHEAD {
                            break;
                        }
                    }
                    Kind::Inline => {
                        queue.pairs += pairs_of(link);
                        if let Ok(shape) = Shape::of(link) {
                            let first = shape.first_line(words_between(&walk.bounds, item.edges).least);
                            let lines = (shape.lines() - first).min(LINES_AHEAD);
                            prefetch_range(start.wrapping_add(first * LINE), lines * LINE);
                        }
                        if queue.pairs >= PAIRS_AHEAD {
                            break;
                        }
                    }
                    kind => {
                        prefetch(start);
                        let (edge, bound) = match walk.direction {
                            Direction::Forward => (item.edges.low, walk.bounds.lower),
                            Direction::Reverse => (item.edges.high, walk.bounds.upper),
                        };
                        if kind == Kind::N256 && edge == Edge::Along {
                            let level = item.depth as usize + usize::from(link.aux());
                            let byte = key_of(bound).get(level).copied().unwrap_or_default();
                            prefetch(start.wrapping_add(slot_in_n256(byte)));
                        }
                        queue.waits = true;
                        break;
                    }
                }
            }
            (queue.put, frame.next) = (put, next);
            if next >= end && !queue.waits {
                walk.leave();
            }
        }
    }
}

/// The capacity in pairs of the inline leaf array that a link leads to.
#[inline(always)]
fn pairs_of(link: Link) -> usize {
    Shape::of(link).map_or(0, Shape::capacity)
}
