//! New leaves, with pairs in ascending order.

use super::leaf::{self, Head, LeafRef};
use super::slots::{Bits, GROUP, GROUPS, Places, print, set, slots_of};
use crate::key::MarkedPair;
use crate::root::tag;
use heap::{Access, Error};
use pmem::{Fault, Flushed, Link, Media, PersistBatch};

/// A new leaf, complete except for its volatile parts.
#[derive(Debug)]
pub(crate) struct NewLeaf {
    pub(crate) bits: Bits,
    /// The slot of the greatest key.
    pub(crate) last: usize,
    passed: u64,
    order: Vec<u8>,
    prints: [u8; GROUP * GROUPS],
}

/// Makes a leaf in which only `version` counts, before the leaf `next`; its lines join the batch.
pub(crate) fn draft<'e, 'h, M: Media>(
    heap: &'h Access<M>,
    batch: &PersistBatch<'e, 'h, M>,
    entries: &[MarkedPair],
    (version, capacity): (usize, usize),
    next: &mut Option<Flushed<'e, 'h, Head>>,
) -> Result<(Flushed<'e, 'h, Head>, NewLeaf), Error> {
    let groups = capacity / GROUP;
    let mut taken = [u64::MAX; GROUPS];
    taken[..groups].fill(0);
    let mut places = Places::new(taken, 0, groups);
    let mut made = NewLeaf {
        bits: [0; GROUPS],
        last: 0,
        passed: 0,
        order: Vec::with_capacity(entries.len()),
        prints: [0; GROUP * GROUPS],
    };
    let mut records = [0; GROUPS];
    // The number of the entry in each slot.
    let mut numbers = [0; GROUP * GROUPS];
    for (number, entry) in entries.iter().enumerate() {
        let hash = entry.hash(heap)?;
        let slot = places.take(hash).ok_or(Fault {
            what: "pairs of a new leaf",
            offset: 0,
        })?;
        set(&mut made.bits, slot);
        if !entry.link.is_null() {
            set(&mut records, slot);
        }
        made.order.push(slot as u8);
        made.prints[slot] = print(hash);
        numbers[slot] = number as u8;
    }
    made.last = made.order.last().map_or(0, |&slot| usize::from(slot));
    made.passed = places.passed;
    let head = Head::new(
        heap.generation(),
        capacity,
        version,
        (made.bits, records, made.last),
    );
    let mut draft = heap.draft(head, leaf::tail(capacity), batch)?;
    let pairs = slots_of(made.bits).map(|slot| (slot, entries[usize::from(numbers[slot])]));
    let parts = leaf::fill(draft.tail_mut(), capacity, pairs);
    if let Some(next) = next.take() {
        draft.adopt(|head| head.next_mut(version), next, tag::LEAF[version]);
    }
    Ok((draft.flush_parts(parts, batch), made))
}

impl NewLeaf {
    /// Stores the volatile parts of the leaf at `link`, which no other thread can reach yet.
    pub(crate) fn store_volatile<M: Media>(
        &self,
        heap: &Access<M>,
        link: Link,
        version: usize,
    ) -> Result<(), Error> {
        let media = heap.media();
        let leaf = LeafRef::at(heap, link)?;
        leaf.set_passed(self.passed, media);
        leaf.set_prints(&self.prints, media);
        leaf.set_order(version, &self.order, media);
        Ok(())
    }
}
