//! The validator: walks everything and reports faults.

use crate::base::Base;
use crate::base::leaf::LeafRef;
use crate::buffer::Buffer;
use crate::key::MarkedPair;
use crate::merge::expected;
use crate::tree::TreeState;
use heap::Error;
use index::codec::{self, RecordRef};
use index::{Direction, Faults, KEYS_PER_GUARD};
use pmem::{Link, Media, Offset};
use std::ops::{Bound, ControlFlow};

impl<M: Media> TreeState<M> {
    /// The faults found. The check of a tree ends at the first object that cannot be read.
    pub(crate) fn find_faults(&self) -> Faults {
        let mut faults = Faults::default();
        // No merge rewrites or retires the checked objects meanwhile.
        let _alone = pmem::lock_across(&self.merging, self.heap.media());
        let guard = heap::pin();
        let trees = self.current.load(&guard);
        self.noting(&mut faults, |faults| self.check_base(&trees.base, faults));
        for buffer in [Some(&trees.front), trees.middle.as_ref()].into_iter().flatten() {
            self.noting(&mut faults, |faults| self.check_buffer(buffer, faults));
        }
        // The check of all indexes tests that a scan in the other direction meets as many keys, in order.
        self.noting(&mut faults, |faults| self.count_keys(&mut faults.keys));
        faults
    }

    /// Counts the keys of a reverse scan.
    fn count_keys(&self, keys: &mut u64) -> Result<(), Error> {
        let mut above: Option<Vec<u8>> = None;
        loop {
            let guard = heap::pin();
            let (mut left, mut last) = (KEYS_PER_GUARD, None);
            let visit = &mut |key, _: index::Value<'_>| {
                *keys += 1;
                left -= 1;
                last = Some(key);
                match left {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            };
            let high = above.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            self.visit_range(Bound::Unbounded, high, Direction::Reverse, &guard, visit)?;
            match last {
                Some(last) if left == 0 => above = Some(<[u8]>::to_vec(last)),
                _ => return Ok(()),
            }
        }
    }

    fn noting(&self, faults: &mut Faults, check: impl FnOnce(&mut Faults) -> Result<(), Error>) {
        if let Err(error) = check(faults) {
            faults.note(|| error.to_string());
        }
    }

    fn check_buffer(&self, buffer: &Buffer, faults: &mut Faults) -> Result<(), Error> {
        let mut cursor = buffer.tree.cursor(Bound::Unbounded, Direction::Forward);
        let mut last: Option<MarkedPair> = None;
        while let Some(entry) = cursor.peek(&self.heap)? {
            cursor.advance();
            if let Some(last) = last
                && last.compare(&self.heap, &entry)?.is_ge()
            {
                report(faults, 0, "keys of a buffer tree out of order");
            }
            self.check_record(&entry, faults)?;
            last = Some(entry);
        }
        faults.objects += (buffer.log.bytes() / self.shape.page) as u64;
        Ok(())
    }

    fn check_record(&self, entry: &MarkedPair, faults: &mut Faults) -> Result<(), Error> {
        if entry.link.is_null() {
            return Ok(());
        }
        faults.objects += 1;
        let record = RecordRef::at(&self.heap, entry.link)?;
        let place = entry.link.offset().map_or(0, Offset::get);
        if !record.is_whole(&self.heap) {
            report(faults, place, "key and value do not match their checksum");
        }
        if codec::prefix(record.key) != entry.prefix {
            report(
                faults,
                place,
                "the prefix beside a link does not match its record",
            );
        }
        if record.key.len() > index::MAX_KEY || record.value.len() > index::MAX_VALUE {
            report(faults, place, "a record is too long");
        }
        Ok(())
    }

    fn check_base(&self, base: &Base, faults: &mut Faults) -> Result<(), Error> {
        let media = self.heap.media();
        let version = base.state.version;
        let mut next = self.root()?.heads[version].peek(media);
        let mut last: Option<MarkedPair> = None;
        for (i, &link) in base.leaves.iter().enumerate() {
            faults.objects += 1;
            let place = link.offset().map_or(0, Offset::get);
            if next != link {
                report(faults, place, "the list of leaves does not lead here");
            }
            let leaf = LeafRef::at(&self.heap, link)?;
            leaf.touch(&self.heap, version)?;
            next = leaf.meta(version).next.peek(media);
            self.check_leaf(&leaf, version, &mut last, faults)?;
            if let (Bound::Included(end), Some(last)) = (base.end(i), &last)
                && last.key(&self.heap, &mut [0; 8])?.bytes > end
            {
                report(faults, place, "a key beyond its leaf's end");
            }
        }
        if next != Link::NULL {
            report(faults, 0, "the list of leaves goes on after its last");
        }
        Ok(())
    }

    fn check_leaf(
        &self,
        leaf: &LeafRef<'_>,
        version: usize,
        last: &mut Option<MarkedPair>,
        faults: &mut Faults,
    ) -> Result<(), Error> {
        let (heap, media) = (&self.heap, self.heap.media());
        let place = leaf.offset.get();
        let live = leaf.bitmap(version, media);
        let order = leaf.order(version, &live, media);
        if order.len() != live.iter().map(|word| word.count_ones() as usize).sum::<usize>() {
            report(faults, place, "the order of a leaf does not name its slots");
        }
        let passed = leaf.passed(media);
        for &slot in &*order {
            let slot = usize::from(slot);
            let entry = leaf.entry(slot, media);
            if let Some(last) = last
                && last.compare(heap, &entry)?.is_ge()
            {
                report(faults, place, "keys of leaves out of order");
            }
            let hash = entry.key(heap, &mut [0; 8])?.hash();
            let (print, needed) = expected(hash, slot, leaf.groups());
            if leaf.print_at(slot, media) != print || passed & needed != needed {
                report(faults, place, "a key cannot be found by its fingerprint");
            }
            self.check_record(&entry, faults)?;
            *last = Some(entry);
        }
        leaf.last(version, media)?;
        Ok(())
    }
}

fn report(faults: &mut Faults, place: u64, what: &str) {
    faults.note(|| format!("offset {place:#x}: {what}"));
}
