//! A P-CLHT built from pairs in any order ([`index::Bulk`]): the pairs are gathered in memory and sorted by hash, so
//! that each table is made once, in its size. Pairs beyond a number come by ordinary writes.
//!
//! Pairs that are not stored in place become records while they are gathered. Then the tables are made from the first
//! hashes to the last, a directory and its tables at a time. So if the pool is full, the objects made so far are the
//! finished tables and directories, and the records of the pairs that come behind.

use super::bucket::{Filling, Placed, Stored, Wanted};
use super::build::{self, slots};
use super::directory::{self, DEEPEST, FANOUT};
use super::locate::BITS;
use super::segment::Size;
use super::trace::Tracer;
use super::{Clht, tag};
use heap::{Access, Error, Heap};
use index::codec::{self, RecordRef};
use index::{Bulk, Index, OnHeap, Parts, Reading};
use pmem::{Erased, Link, Media, Persisted, Purpose, persist_scope};

/// Maximum number of records that one fence makes durable.
const RECORDS: usize = 1024;

/// The site name of a build's own persists.
const SITE: &str = "clht: built of pairs";

/// Number of pairs that are gathered, which take 256 MiB; few under media with short histories.
const fn max_gathered<M: Media>() -> usize {
    if M::TAKES_TURNS { 50 } else { 1 << 23 }
}

/// An index under construction.
struct Builder<'h, M: Media> {
    heap: &'h Access<M>,
    /// The gathered pairs, which are sorted by hash when they are complete.
    pairs: Vec<Placed>,
    /// Number of pairs that are in tables.
    done: usize,
    /// Tables and directories that hang from no other object yet.
    built: Vec<Link>,
    /// The root of all.
    root: Option<Persisted<'h, Erased>>,
}

impl<M: Media> Bulk for Clht<M> {
    fn build(heap: &Heap<M>, name: &[u8], parts: Parts<'_>) -> Result<Self, index::Error> {
        // SAFETY: a build reads only objects that it has made, which no other thread can retire meanwhile; then as for
        // `open`.
        let heap = unsafe { heap.access() };
        let mut builder = Builder {
            heap,
            pairs: Vec::new(),
            done: 0,
            built: Vec::new(),
            root: None,
        };
        match builder.build(parts) {
            Ok(root) => {
                // SAFETY: it is the root of a P-CLHT, and nothing reachable has led to any of it.
                let root = unsafe { index::name_built(heap, name, root, tag::ROOT, &Tracer) }?;
                let heap = heap.clone();
                Ok(Clht { heap, root })
            }
            Err(error) => {
                // SAFETY: the builder has made them, and published none.
                unsafe { heap.retire_unpublished(builder.abandon(), &Tracer) }?;
                Err(error)
            }
        }
    }
}

impl<'h, M: Media> Builder<'h, M> {
    /// Builds everything, and returns the root.
    fn build(&mut self, parts: Parts<'_>) -> Result<Persisted<'h, Erased>, index::Error> {
        parts.read_in_turn(Clht::<M>::ORDER, |mut pairs| {
            while self.gather(&mut pairs)? {}
            match self.pairs.len() < max_gathered::<M>() {
                true => Ok(()),
                false => self.write_others(&mut pairs),
            }
        })?;
        match self.root.take() {
            Some(root) => Ok(root),
            None => self.build_root(),
        }
    }

    /// Writes the pairs that are too many to be gathered.
    fn write_others(&mut self, others: &mut Reading<'_>) -> Result<(), index::Error> {
        let root = match self.root.take() {
            Some(root) => root,
            None => self.build_root()?,
        };
        let index = Clht {
            heap: self.heap.clone(),
            root: self.root.insert(root).link(tag::ROOT),
        };
        while let Some((key, value)) = others.next()? {
            if !index.insert(key, value)? {
                return Err(index::Error::OutOfOrder);
            }
        }
        Ok(())
    }

    /// Builds the index of the gathered pairs.
    fn build_root(&mut self) -> Result<Persisted<'h, Erased>, index::Error> {
        self.pairs.sort_unstable_by_key(|(hash, _)| *hash);
        self.check_unique()?;
        let pairs = std::mem::take(&mut self.pairs);
        let top = self.build_below(0, 0, &pairs);
        self.pairs = pairs;
        let link = top?;
        Ok(self.heap.with_room(|| self.draft_directory(&[link]))?)
    }

    /// Gathers pairs until they have the records for one fence, or are too many, or end: returns whether to go on.
    fn gather(&mut self, reading: &mut Reading<'_>) -> Result<bool, index::Error> {
        let heap = self.heap;
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let mut records = Vec::new();
            while records.len() < RECORDS
                && self.pairs.len() + records.len() < max_gathered::<M>()
                && let Some((key, value)) = reading.next()?
            {
                let wanted = Wanted::new(key);
                if let Some(pair) = Filling::in_place(&wanted, value) {
                    self.pairs.push((wanted.hash, pair));
                } else {
                    let record = heap.with_room(|| codec::draft(heap, key, value, &batch))?;
                    records.push((wanted.hash, record));
                }
            }
            if records.is_empty() {
                return Ok(false);
            }
            let are_more = records.len() == RECORDS;
            heap.media().site(SITE);
            let fenced = batch.fence();
            self.pairs.extend(records.into_iter().map(|(hash, record)| {
                let link = record.persisted(&fenced).into_link(tag::RECORD);
                (hash, Filling::in_record(hash, link))
            }));
            Ok(are_more)
        })
    }

    /// Checks that no key occurs twice.
    fn check_unique(&self) -> Result<(), index::Error> {
        let alike = self.pairs.chunk_by(|a, b| a.0 == b.0);
        for alike in alike.filter(|alike| alike.len() > 1) {
            let keys = alike.iter().map(|(_, pair)| match pair.value {
                Stored::Word(_) => Ok(pair.key.to_le_bytes().to_vec()),
                Stored::Record(link) => Ok(RecordRef::at(self.heap, link)?.key.to_vec()),
            });
            let mut keys = keys.collect::<Result<Vec<_>, Error>>()?;
            keys.sort_unstable();
            if !keys.is_sorted_by(|a, b| a < b) {
                return Err(index::Error::OutOfOrder);
            }
        }
        Ok(())
    }

    /// Builds the table or the directory for a slot below this number of directories, and returns the link to it.
    fn build_below(&mut self, slot: usize, depth: usize, pairs: &[Placed]) -> Result<Link, Error> {
        if pairs.is_empty() {
            return Ok(Link::NULL);
        }
        let (heap, used) = (self.heap, BITS * depth as u32);
        let fits = |slot, depth, keys| depth == DEEPEST || Size::for_keys(slot, keys).has_room(keys);
        let before = self.built.len();
        let link = if fits(slot, depth, pairs.len()) {
            let size = Size::for_keys(slot, pairs.len());
            let table = heap.with_room(|| build::table(heap, size, (pairs, used)))?;
            self.done += pairs.len();
            table.into_link(size.tag())
        } else if slots(pairs, used).all(|(slot, pairs)| fits(slot, depth + 1, pairs.len())) {
            let directory = heap.with_room(|| build::directory(heap, (pairs, used)))?;
            self.done += pairs.len();
            directory.into_link(tag::DIRECTORY)
        } else {
            let mut links = [Link::NULL; FANOUT];
            for (slot, pairs) in slots(pairs, used) {
                links[slot] = self.build_below(slot, depth + 1, pairs)?;
            }
            let directory = heap.with_room(|| self.draft_directory(&links))?;
            self.built.truncate(before);
            directory.into_link(tag::DIRECTORY)
        };
        self.built.push(link);
        Ok(link)
    }

    /// Builds a directory of what these links lead to.
    fn draft_directory(&self, links: &[Link]) -> Result<Persisted<'h, Erased>, Error> {
        let media = self.heap.media();
        persist_scope(media, Purpose::Node, |batch| {
            let directory = directory::draft(self.heap, links, &batch)?.flush(&batch);
            media.site(SITE);
            Ok(directory.erased().persisted(&batch.fence()))
        })
    }

    /// Everything that has no parent, for a build that has failed.
    fn abandon(self) -> Vec<Link> {
        if let Some(root) = self.root {
            return vec![root.into_link(tag::ROOT)];
        }
        let left = self.pairs.iter().skip(self.done);
        let records = left.map(|(_, pair)| pair.value.record());
        let mut all = self.built;
        all.extend(records.filter(|record| !record.is_null()));
        all
    }
}
