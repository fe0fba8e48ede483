//! The validator: walks everything and reports faults.

use super::bucket::{Bucket, Stored};
use super::chain::Chain;
use super::directory::{DEEPEST, DirectoryRef};
use super::locate::below;
use super::segment::{SegmentRef, home, is_segment};
use super::{Clht, hash, tag};
use index::codec::RecordRef;
use index::{Faults, MAX_KEY, MAX_VALUE};
use pmem::{Fault, Link, Media, Offset};
use std::collections::BTreeSet;

/// A place among the tables: the number of directories above, not counting the root, and their slots, as the first bits
/// of a hash.
#[derive(Clone, Copy)]
struct Range {
    depth: usize,
    prefix: u64,
}

impl Range {
    fn holds(self, hash: u64) -> bool {
        self.depth == 0 || (hash ^ self.prefix) >> (64 - 4 * self.depth) == 0
    }
}

impl<M: Media> Clht<M> {
    /// Every detectable fault.
    pub(super) fn check_all(&self) -> Faults {
        // Beside writers its reports may be wrong, but the guard keeps the objects that it reads from being reused.
        let _guard = heap::pin();
        let mut faults = Faults::default();
        let all = Range { depth: 0, prefix: 0 };
        let checked = self.check_directory(self.root, all, &mut faults);
        note(checked, &mut faults);
        faults
    }

    fn check_directory(&self, link: Link, range: Range, faults: &mut Faults) -> Result<(), Fault> {
        faults.objects += 1;
        let directory = DirectoryRef::at(&self.heap, link)?;
        for (at, slot) in directory.slots.iter().enumerate() {
            let child = slot.load(self.heap.media());
            let range = match link.tag() {
                tag::ROOT => range,
                _ => Range {
                    depth: range.depth + 1,
                    prefix: range.prefix | (at as u64) << (60 - 4 * range.depth),
                },
            };
            let checked = if child.is_null() {
                Ok(())
            } else if is_segment(child) {
                self.check_segment(child, range, faults)
            } else if child.tag() == tag::DIRECTORY && range.depth < DEEPEST {
                self.check_directory(child, range, faults)
            } else {
                report(faults, child, "a slot of a directory leads to no table");
                Ok(())
            };
            note(checked, faults);
        }
        Ok(())
    }

    fn check_segment(&self, link: Link, range: Range, faults: &mut Faults) -> Result<(), Fault> {
        faults.objects += 1;
        let segment = SegmentRef::at(&self.heap, link)?;
        if segment.head.shape.load(self.heap.media()) != segment.buckets.len() as u64 {
            report(
                faults,
                link,
                "a table's number of buckets does not match its link",
            );
        }
        for (number, bucket) in segment.buckets.iter().enumerate() {
            let checked = self.check_chain(bucket, (number, segment.buckets.len()), range, link, faults);
            note(checked, faults);
        }
        Ok(())
    }

    fn check_chain(
        &self,
        first: &Bucket,
        (number, buckets): (usize, usize),
        range: Range,
        table: Link,
        faults: &mut Faults,
    ) -> Result<(), Fault> {
        let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
        let (mut chain, mut next) = (Chain::new(&self.heap), Some(first));
        while let Some(bucket) = next {
            let (state, pairs) = bucket.pairs(self.heap.media());
            if let Some(fault) = state.fault() {
                report(faults, table, fault);
            }
            for pair in pairs.iter().flatten() {
                let key = match pair.value {
                    Stored::Word(_) => pair.key.to_le_bytes().to_vec(),
                    Stored::Record(link) => self.check_record(link, pair.key, faults)?,
                };
                let hash = pair.hash();
                let rest = (0..range.depth).fold(hash, |rest, _| below(rest).1);
                if !range.holds(hash) || home(rest, buckets) != number {
                    report(faults, table, "a key is in another key's bucket");
                }
                faults.keys += 1;
                if !keys.insert(key) {
                    report(faults, table, "a key is in two slots of a chain");
                }
            }
            faults.objects += u64::from(!state.next().is_null());
            next = chain.follow(state.next())?;
            if next.is_some_and(|next| next.state(self.heap.media()).count() == 0) {
                report(faults, state.next(), "an overflow bucket is empty");
            }
        }
        Ok(())
    }

    /// Checks a record with this hash; returns its key.
    fn check_record(&self, link: Link, own: u64, faults: &mut Faults) -> Result<Vec<u8>, Fault> {
        faults.objects += 1;
        let record = RecordRef::at(&self.heap, link)?;
        if link.tag() != tag::RECORD {
            report(faults, link, "a link to a record has another kind in its tag");
        }
        if !record.is_whole(&self.heap) {
            report(faults, link, "key and value do not match their checksum");
        }
        if hash(record.key) != own {
            report(faults, link, "the hash beside a link does not match its record");
        }
        if record.key.len() > MAX_KEY || record.value.len() > MAX_VALUE {
            report(faults, link, "a record is too long");
        }
        Ok(record.key.to_vec())
    }
}

fn note(checked: Result<(), Fault>, faults: &mut Faults) {
    if let Err(fault) = checked {
        faults.note(|| format!("offset {:#x}: {}", fault.offset, fault.what));
    }
}

fn report(faults: &mut Faults, link: Link, what: &str) {
    let place = link.offset().map_or(0, Offset::get);
    faults.note(|| format!("offset {place:#x}: {what}"));
}
