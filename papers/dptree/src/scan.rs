//! Scans: the three trees' entries merged in order, in either direction (the paper's range queries, §2).
//!
//! A scan goes forward in steps: a bounded number of pairs of one leaf of the base tree, and what the front and the
//! middle have between the step's ends. Each step loads the trees anew, so merges go on beside it; within a step they are
//! one value, in which a key that is present is in at least one of the three.

use crate::base::slots::has;
use crate::buffer::Cursor;
use crate::key::Entry;
use crate::tree::{Shared, Trees};
use heap::{Error, Guard, keep};
use index::{Direction, Visit, codec};
use pmem::{Fault, Media};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

/// Pairs of the first step; each further one has twice as many, up to a whole leaf.
const FIRST_STEP: usize = 32;
const LARGEST_STEP: usize = 256;

/// One step: its entries, and where the next one begins.
struct Step {
    entries: Vec<Entry>,
    next: Option<Bound<Vec<u8>>>,
}

impl<M: Media> Shared<M> {
    /// Visits the keys between the bounds in order.
    pub(crate) fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let (near, far) = match direction {
            Direction::Forward => (lower, upper),
            Direction::Reverse => (upper, lower),
        };
        let mut from = near.map(<[u8]>::to_vec);
        let mut size = FIRST_STEP;
        loop {
            let trees = self.current.load(guard);
            let step = self.step(trees, &from, far, direction, size);
            if !self.is_valid(&trees.base) {
                continue;
            }
            let Step { entries, next } = step?;
            if self.visit_step(&entries, guard, visit)?.is_break() {
                return Ok(());
            }
            match next {
                None => return Ok(()),
                Some(next) if is_ahead(&from, &next, direction) => from = next,
                // In a damaged pool a key may stand in any leaf.
                Some(_) => {
                    return Err(Fault {
                        what: "a key out of order",
                        offset: 0,
                    }
                    .into());
                }
            }
            size = (size * 2).min(LARGEST_STEP);
        }
    }

    /// The next entries after `from`, none beyond `far`.
    fn step(
        &self,
        trees: &Trees,
        from: &Bound<Vec<u8>>,
        far: Bound<&[u8]>,
        direction: Direction,
        size: usize,
    ) -> Result<Step, Error> {
        let heap = &self.heap;
        let (base, end) = self.base_step(trees, from, direction, size)?;
        let mut base = base.into_iter().peekable();
        let mut front = trees.front.tree.cursor(from.clone(), direction);
        let middle = trees.middle.as_ref();
        let mut middle = middle.map(|middle| middle.tree.cursor(from.clone(), direction));
        let mut entries = Vec::new();
        let mut reached = None;
        loop {
            let peeks = [
                self.peek(&mut front, &end, direction)?,
                match &mut middle {
                    Some(middle) => self.peek(middle, &end, direction)?,
                    None => None,
                },
                base.peek().copied(),
            ];
            // The first of all; of those with one key, the newest tree's.
            let mut first: Option<Entry> = None;
            let mut same = [false; 3];
            for (i, peek) in peeks.iter().enumerate() {
                let Some(entry) = peek else { continue };
                let order = match first {
                    None => Ordering::Less,
                    Some(first) => in_direction(entry.compare(heap, &first)?, direction),
                };
                match order {
                    Ordering::Less => {
                        first = Some(*entry);
                        same = [false; 3];
                        same[i] = true;
                    }
                    Ordering::Equal => same[i] = true,
                    Ordering::Greater => {}
                }
            }
            let Some(entry) = first else {
                // Where the base's step ends, so does this one.
                let next = match end {
                    Bound::Unbounded => None,
                    Bound::Included(key) => Some(Bound::Excluded(key)),
                    Bound::Excluded(key) => Some(Bound::Included(key)),
                };
                return Ok(Step { entries, next });
            };
            let mut buffer = [0; 8];
            let key = entry.key(heap, &mut buffer)?.bytes;
            if is_beyond(key, far, direction) {
                return Ok(Step { entries, next: None });
            }
            if entries.len() >= size {
                let next = reached.map(|entry: Entry| entry.key_bytes(heap)).transpose()?;
                return Ok(Step {
                    entries,
                    next: next.map(Bound::Excluded),
                });
            }
            if same[0] {
                front.advance();
            }
            if same[1]
                && let Some(middle) = &mut middle
            {
                middle.advance();
            }
            if same[2] {
                base.next();
            }
            reached = Some(entry);
            if !entry.removed {
                entries.push(entry);
            }
        }
    }

    fn peek(
        &self,
        cursor: &mut Cursor<'_>,
        end: &Bound<Vec<u8>>,
        direction: Direction,
    ) -> Result<Option<Entry>, Error> {
        let Some(entry) = cursor.peek(&self.heap)? else {
            return Ok(None);
        };
        let mut buffer = [0; 8];
        let key = entry.key(&self.heap, &mut buffer)?.bytes;
        let beyond = is_beyond(key, end.as_ref().map(Vec::as_slice), direction);
        Ok((!beyond).then_some(entry))
    }

    /// At most `size` pairs of the base tree after `from`, all of one leaf, and up to where there is no other one.
    fn base_step(
        &self,
        trees: &Trees,
        from: &Bound<Vec<u8>>,
        direction: Direction,
        size: usize,
    ) -> Result<(Vec<Entry>, Bound<Vec<u8>>), Error> {
        let heap = &self.heap;
        let (base, media) = (&trees.base, heap.media());
        let version = base.state.version;
        let from = from.as_ref().map(Vec::as_slice);
        let mut i = match (from, direction) {
            (Bound::Included(key) | Bound::Excluded(key), _) => base.router.rank(key),
            (Bound::Unbounded, Direction::Forward) => 0,
            (Bound::Unbounded, Direction::Reverse) => base.leaves.len().saturating_sub(1),
        };
        loop {
            let Some(leaf) = base.leaf(heap, i)? else {
                return Ok((Vec::new(), Bound::Unbounded));
            };
            let end = match direction {
                Direction::Forward => base.end(i),
                Direction::Reverse => base.start(i),
            };
            let order = leaf.order(version, media);
            let live = leaf.bitmap(version, media);
            let mut ahead: Vec<u8> = order
                .into_iter()
                .filter(|&slot| has(&live, slot.into()))
                .collect();
            if direction == Direction::Reverse {
                ahead.reverse();
            }
            let Some(passed) = self.count_before(&leaf, version, &ahead, from, direction)? else {
                continue;
            };
            let step = &ahead[passed..ahead.len().min(passed + size)];
            let entries = step
                .iter()
                .map(|&slot| leaf.live_entry(version, slot.into(), media));
            let Some(entries) = entries.collect::<Option<Vec<Entry>>>() else {
                continue;
            };
            let end = match entries.last() {
                Some(last) if passed + size < ahead.len() => Bound::Included(last.key_bytes(heap)?),
                _ => end.map(<[u8]>::to_vec),
            };
            leaf.settle(heap, version, step);
            let next = match direction {
                Direction::Forward => Some(i + 1),
                Direction::Reverse => i.checked_sub(1),
            };
            match next {
                Some(next) if entries.is_empty() && passed == ahead.len() && end != Bound::Unbounded => {
                    i = next
                }
                _ => return Ok((entries, end)),
            }
        }
    }

    /// How many of the slots, in the scan's order, come before `from`; `None` if one of them does not count any more.
    fn count_before(
        &self,
        leaf: &crate::base::leaf::LeafRef<'_>,
        version: usize,
        slots: &[u8],
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<usize>, Error> {
        let (key, included) = match from {
            Bound::Unbounded => return Ok(Some(0)),
            Bound::Included(key) => (crate::key::Key::new(key), true),
            Bound::Excluded(key) => (crate::key::Key::new(key), false),
        };
        let (mut low, mut high) = (0, slots.len());
        while low < high {
            let middle = (low + high) / 2;
            let Some(entry) = leaf.live_entry(version, slots[middle].into(), self.heap.media()) else {
                return Ok(None);
            };
            // The order of the bound and the entry, as the scan goes.
            let order = in_direction(key.compare(&self.heap, entry.prefix, entry.link)?, direction);
            if order == Ordering::Greater || (order == Ordering::Equal && !included) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Some(low))
    }

    /// Visits entries. Keys that stand in place are copied, since a later merge may use their slots.
    fn visit_step<'g>(
        &'g self,
        entries: &[Entry],
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Error> {
        let in_place = entries.iter().filter(|entry| entry.link.is_null());
        let bytes: Vec<u8> = in_place.flat_map(|entry| entry.prefix.to_be_bytes()).collect();
        let mut copies: &[u8] = if bytes.is_empty() {
            &[]
        } else {
            keep(guard, bytes.into())
        };
        for entry in entries {
            let key = if entry.link.is_null() {
                let (key, rest) = copies.split_at(8);
                copies = rest;
                key
            } else {
                codec::RecordRef::at(&self.heap, entry.link)?.key
            };
            if visit(key, entry.value(&self.heap)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn in_direction(order: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => order,
        Direction::Reverse => order.reverse(),
    }
}

/// Whether a scan that goes on at `next` leaves something behind since `from`.
fn is_ahead(from: &Bound<Vec<u8>>, next: &Bound<Vec<u8>>, direction: Direction) -> bool {
    let (from_key, next_key) = match (from, next) {
        (Bound::Unbounded, _) => return true,
        (_, Bound::Unbounded) => return false,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(next) | Bound::Excluded(next)) => {
            (from, next)
        }
    };
    match in_direction(next_key.cmp(from_key), direction) {
        Ordering::Greater => true,
        Ordering::Equal => matches!((from, next), (Bound::Included(_), Bound::Excluded(_))),
        Ordering::Less => false,
    }
}

/// Whether a key lies behind the bound at which a scan ends.
fn is_beyond(key: &[u8], far: Bound<&[u8]>, direction: Direction) -> bool {
    match far {
        Bound::Unbounded => false,
        Bound::Included(bound) => in_direction(key.cmp(bound), direction) == Ordering::Greater,
        Bound::Excluded(bound) => in_direction(key.cmp(bound), direction) != Ordering::Less,
    }
}
