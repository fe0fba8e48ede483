//! Writing a plan: first new pairs into free slots, and new leaves; then, when all partitions have written theirs, the
//! metadata of the new version (DPTree §2.3, the flushing phase).
//!
//! I1 Everything written here counts only once the root's state says so, and each partition's writer fences what it
//! wrote.

use super::plan::{Item, Piece, Plan};
use crate::base::leaf::{LeafRef, Order};
use crate::base::new_leaf;
use crate::base::slots::{Bits, GROUP, GROUPS, Places, clear, count, home, passed_by, print, set, slots_of};
use crate::key::MarkedPair;
use crate::root::tag;
use heap::{Access, Error};
use pmem::{Link, Media, PersistBatch, Purpose, persist_scope};

/// The site name of this file's persists.
const SITE: &str = "dptree: written by a merge";

/// A leaf of the new version. If it is an old one that is kept, its metadata is not written yet.
#[derive(Debug)]
pub(super) struct Written {
    /// The link, tagged with the new version.
    pub(super) link: Link,
    pub(super) fresh: bool,
    bits: Bits,
    last: usize,
    pub(super) pairs: usize,
    pub(super) greatest: Vec<u8>,
}

/// Writes pairs into the leaves that are kept, with one fence, and then new leaves, with one fence each. On failure,
/// `written` has the leaves made so far.
pub(super) fn write_pairs<M: Media>(
    heap: &Access<M>,
    plan: &Plan<'_>,
    version: usize,
    capacity: usize,
    written: &mut Vec<Written>,
) -> Result<(), Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        for piece in &plan.pieces {
            if let Some(keep) = piece.keep {
                heap.media().comes_to("merge: pairs into a leaf that stays");
                written.push(write_kept(heap, plan, piece, keep, version, &batch)?);
            }
        }
        heap.media().site(SITE);
        // If a leaf or a record could not be read, the batch stays unfenced: the merge fails, and nothing of it counts.
        let _durable = batch.fence().durable();
        Ok::<_, Error>(())
    })?;
    let kept = std::mem::take(written);
    let mut kept = kept.into_iter();
    for piece in &plan.pieces {
        match piece.keep {
            Some(_) => written.extend(kept.next()),
            None => {
                heap.media().comes_to("merge: new leaf");
                written.push(write_new(heap, plan, piece, version, capacity)?);
            }
        }
    }
    Ok(())
}

/// Adds a piece's foreign pairs to the leaf that it keeps.
fn write_kept<'m, M: Media>(
    heap: &Access<M>,
    plan: &Plan<'m>,
    piece: &Piece,
    keep: u32,
    version: usize,
    batch: &PersistBatch<'_, 'm, M>,
) -> Result<Written, Error> {
    let media = heap.media();
    let old = &plan.old[keep as usize];
    let leaf = &old.leaf;
    if piece.items.len() > leaf.capacity() {
        return Err(full_leaf(leaf).into());
    }
    let mut places = Places::new(old.taken, leaf.passed(media), leaf.groups());
    let mut order = Order::new();
    let mut added = Vec::with_capacity(GROUP);
    // The slots of those, and the number of each among them.
    let (mut new, mut numbers) = ([0; GROUPS], [0; GROUP * GROUPS]);
    for &item in &piece.items {
        let slot = match item {
            Item::Old { leaf, slot } if leaf == keep => slot.into(),
            item => {
                let entry = plan.entry(item, media);
                let hash = entry.hash(heap)?;
                let slot = places.take(hash).ok_or(full_leaf(leaf))?;
                set(&mut new, slot);
                numbers[slot] = added.len() as u8;
                added.push((entry, print(hash)));
                slot
            }
        };
        order.push(slot as u8);
    }
    let kept = match order.len() - added.len() == count(&old.live) {
        true => old.live,
        // Some of its pairs were removed, replaced, or are in another leaf now.
        false => order.iter().fold([0; GROUPS], |mut bits, &slot| {
            set(&mut bits, slot.into());
            bits
        }),
    };
    let bits = std::array::from_fn(|group| kept[group] | new[group]);
    let mut records = leaf.records(media);
    leaf.set_passed(places.passed, media);
    for slot in slots_of(new) {
        let (entry, print) = added[usize::from(numbers[slot])];
        let pair = &leaf.slots[slot];
        pair.prefix.store(entry.prefix, batch);
        if entry.link.is_null() {
            pair.value.store(entry.word, batch);
            clear(&mut records, slot);
        } else {
            pair.value.store_link(entry.link, batch);
            set(&mut records, slot);
        }
        leaf.set_print(slot, print, media);
    }
    for (word, bits) in leaf.head.records.iter().zip(records) {
        if word.load(media) != bits {
            word.store(bits, batch);
        }
    }
    leaf.set_order(version, &order, media);
    let last = order.last().map_or(0, |&slot| usize::from(slot));
    Ok(Written {
        link: old.link.with_tag(tag::LEAF[version]),
        fresh: false,
        bits,
        last,
        pairs: piece.items.len(),
        greatest: greatest(heap, plan, piece)?,
    })
}

/// Makes a new leaf from a piece; one fence.
fn write_new<M: Media>(
    heap: &Access<M>,
    plan: &Plan<'_>,
    piece: &Piece,
    version: usize,
    capacity: usize,
) -> Result<Written, Error> {
    let media = heap.media();
    let entries: Vec<MarkedPair> = piece.items.iter().map(|&item| plan.entry(item, media)).collect();
    let greatest = greatest(heap, plan, piece)?;
    let (link, leaf) = persist_scope(media, Purpose::Node, |batch| {
        let (flushed, leaf) = new_leaf::draft(heap, &batch, &entries, (version, capacity), &mut None)?;
        media.site(SITE);
        let link = flushed.persisted(&batch.fence()).into_link(tag::LEAF[version]);
        Ok::<_, Error>((link, leaf))
    })?;
    leaf.store_volatile(heap, link, version)?;
    Ok(Written {
        link,
        fresh: true,
        bits: leaf.bits,
        last: leaf.last,
        pairs: piece.items.len(),
        greatest,
    })
}

fn greatest<M: Media>(heap: &Access<M>, plan: &Plan<'_>, piece: &Piece) -> Result<Vec<u8>, Error> {
    match piece.items.last() {
        Some(&item) => Ok(plan.entry(item, heap.media()).key_bytes(heap)?),
        None => Ok(Vec::new()),
    }
}

#[cold]
fn full_leaf(leaf: &LeafRef<'_>) -> pmem::Fault {
    pmem::Fault {
        what: "slots of a leaf",
        offset: leaf.offset.get(),
    }
}

/// Writes the metadata of the new version of some leaves: each one's line, and one fence. `next` is the leaf after
/// the last.
pub(super) fn write_metadata<M: Media>(
    heap: &Access<M>,
    leaves: &[Written],
    next: Link,
    version: usize,
) -> Result<(), Error> {
    heap.media().comes_to("merge: metadata");
    let followers = leaves.iter().skip(1).map(|leaf| leaf.link).chain([next]);
    persist_scope(heap.media(), Purpose::Node, |batch| {
        for (written, next) in leaves.iter().zip(followers) {
            let meta = LeafRef::at(heap, written.link)?.meta(version);
            meta.next.store(next, &batch);
            if !written.fresh {
                meta.last.store(written.last as u64, &batch);
                for (word, bits) in meta.bitmap.iter().zip(written.bits) {
                    word.store(bits, &batch);
                }
            }
        }
        heap.media().site(SITE);
        let _durable = batch.fence().durable();
        Ok(())
    })
}

/// The fingerprint that a key of this hash has in this slot, and the groups that it has passed.
pub(crate) fn expected(hash: u64, slot: usize, groups: usize) -> (u8, u64) {
    (print(hash), passed_by(home(hash, groups), slot / GROUP, groups))
}
