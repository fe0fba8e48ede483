//! A P-BwTree built from sorted pairs ([`index::Bulk`]): bases filled in order, each with its cell, and no deltas.
//!
//! A base leads to its right sibling's cell. So nodes are written in *rows* of some, from the last node of a row to its
//! first. A row of leaves costs one fence for its records, if there are any, and one for its nodes. At the end the rows
//! are joined, by one more fence, and each level above is written as one row.
//!
//! **Load.** Nodes get seven eighths of the entries of a full one, as many as a split leaves in the last node of a
//! level. With 64 entries that is room for one chain of deltas: a leaf's first consolidation does not split it.
//!
//! **Parts.** The leaves of a part cover all keys from its beginning to that of the next part. So a part without pairs
//! has an empty leaf.

use super::base::{BaseRef, Head};
use super::build::{Bounds, draft_inner_base, draft_leaf_base};
use super::link::{BASE, RECORD, ROOT, cell_tag};
use super::object::Cell;
use super::page::Page;
use super::split::{BEHIND, between};
use super::trace::Tracer;
use super::{BwTree, KIND, Root};
use heap::{Access, Error, Heap};
use index::codec::{self, PairWords};
use index::{Bulk, Parts, Reading};
use pmem::{Draft, Fault, Link, Media, PSlot, PersistBatch, Purpose, persist_scope};
use std::ops::Range;

/// The site name of a build's persists, except for those of the root.
const SITE: &str = "bwtree: built of pairs";

/// Number of leaves in a row: one under media with short histories, so that there are rows to join.
const fn leaves_of_row<M: Media>() -> usize {
    if M::TAKES_TURNS { 1 } else { 16 }
}

/// Number of entries of a new node.
const fn load(full: usize) -> usize {
    full * BEHIND.0 / BEHIND.1
}

/// A node that was built: the lower bound of its keys, and its cell.
type Node = (Vec<u8>, Link);

/// The error of a failed build, and the objects to give back.
type Failed = (index::Error, Vec<Link>);

impl<M: Media, const FULL: usize> Bulk for BwTree<M, FULL> {
    fn build(heap: &Heap<M>, name: &[u8], parts: Parts<'_>) -> Result<Self, index::Error> {
        let access = Self::access_of(heap);
        let parts = parts.read(|mut reading| {
            let mut leaves = Leaves::<M, FULL> {
                heap: access,
                rows: Vec::new(),
                pairs: Vec::new(),
            };
            let written = leaves.write_all(&mut reading);
            (leaves, written.err())
        })?;
        let (mut rows, mut records, mut failed) = (Vec::new(), Vec::new(), None);
        for (leaves, error) in parts {
            records.extend(leaves.pairs.iter().map(|pair| pair.link));
            rows.extend(leaves.rows);
            failed = failed.or(error);
        }
        let built = match failed {
            None => write_above::<M, FULL>(access, rows).and_then(|top| publish(heap, name, top)),
            Some(error) => {
                let rows = rows.iter().filter_map(|row| row.first());
                records.extend(rows.map(|(_, cell)| *cell));
                Err((error, records))
            }
        };
        match built {
            Ok(root) => Ok(BwTree {
                heap: access.clone(),
                root,
            }),
            Err((error, links)) => {
                // SAFETY: this build has made all of it, and published none.
                unsafe { heap.retire_unpublished(links, &Tracer) }?;
                Err(error)
            }
        }
    }
}

/// The leaves of a part.
struct Leaves<'h, M: Media, const FULL: usize> {
    heap: &'h Access<M>,
    /// Rows that are not joined yet.
    rows: Vec<Vec<Node>>,
    /// Pairs that no leaf has yet; their records are durable.
    pairs: Vec<PairWords>,
}

impl<M: Media, const FULL: usize> Leaves<'_, M, FULL> {
    /// Writes the leaves of all pairs.
    fn write_all(&mut self, reading: &mut Reading<'_>) -> Result<(), index::Error> {
        let (from, until) = (reading.from().unwrap_or_default(), reading.until());
        let max = leaves_of_row::<M>() * load(FULL);
        let mut low = from.to_vec();
        // The first pair of the next row tells where the row ends.
        self.read(reading, max + 1)?;
        while let [.., last, next] = &self.pairs[..]
            && self.pairs.len() > max
        {
            let high = between(self.heap, last, next)?;
            self.write_row(low, max, Some(&high))?;
            low = high;
            self.read(reading, max + 1)?;
        }
        // Before the empty key there are no keys.
        if until == Some(from) {
            return Ok(());
        }
        self.write_row(low, self.pairs.len(), until)
    }

    /// Reads pairs until there are `count`, or no more; those that are not stored in place get records. Costs one
    /// fence if there are records.
    fn read(&mut self, reading: &mut Reading<'_>, count: usize) -> Result<(), index::Error> {
        let heap = self.heap;
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let mut pairs = Vec::with_capacity(count);
            let mut records = Vec::new();
            while self.pairs.len() + pairs.len() < count
                && let Some((key, value)) = reading.next()?
            {
                let word = codec::in_place(key, value);
                if word.is_none() {
                    let record = heap.with_room(|| codec::draft(heap, key, value, &batch))?;
                    records.push((pairs.len(), record));
                }
                pairs.push(PairWords {
                    prefix: codec::prefix(key),
                    link: Link::NULL,
                    word: word.unwrap_or_default(),
                });
            }
            if !records.is_empty() {
                heap.media().site(SITE);
                let fenced = batch.fence();
                for (i, record) in records {
                    pairs[i].link = record.persisted(&fenced).into_link(RECORD);
                }
            }
            self.pairs.append(&mut pairs);
            Ok(())
        })
    }

    /// Writes the leaves of the first `count` pairs.
    fn write_row(&mut self, low: Vec<u8>, count: usize, high: Option<&[u8]>) -> Result<(), index::Error> {
        let heap = self.heap;
        let shares = shares(count, load(FULL));
        let mut lows = vec![low];
        for share in &shares[1..] {
            let separator = between(heap, &self.pairs[share.start - 1], &self.pairs[share.start]);
            lows.push(separator?);
        }
        let (row, failed) = write_nodes(heap, 0, lows, high, |i, bounds, batch| {
            draft_leaf_base(heap, &self.pairs[shares[i].clone()], bounds, batch)
        });
        let first = shares.get(shares.len() - row.len());
        self.pairs.drain(first.map_or(count, |share| share.start)..count);
        self.rows.push(row);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Divides `count` entries among as few nodes as possible, at least one, each with about as many of them.
fn shares(count: usize, max: usize) -> Vec<Range<usize>> {
    let nodes = count.div_ceil(max).max(1);
    (0..nodes)
        .map(|i| count * i / nodes..count * (i + 1) / nodes)
        .collect()
}

/// Writes nodes of a level with these lower bounds, from the last to the first. Returns those that are written, in
/// order, and the error if it stopped early. Costs one fence.
fn write_nodes<'h, M: Media>(
    heap: &'h Access<M>,
    level: u8,
    lows: Vec<Vec<u8>>,
    high: Option<&[u8]>,
    draft: impl for<'e> Fn(usize, Bounds<'_>, &PersistBatch<'e, 'h, M>) -> Result<Draft<'e, 'h, Head>, Error>,
) -> (Vec<Node>, Option<Error>) {
    let tag = cell_tag(level);
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut nodes: Vec<Node> = Vec::with_capacity(lows.len());
        let (mut right, mut failed) = (None, None);
        for (i, low) in lows.into_iter().enumerate().rev() {
            let bounds = Bounds {
                low: &low,
                high: nodes.last().map(|(low, _)| &low[..]).or(high),
                right: Link::NULL,
            };
            let drafts = heap.with_room(|| {
                let base = draft(i, bounds, &batch)?;
                Ok::<_, Error>((base, heap.draft(Cell { head: PSlot::null() }, 0, &batch)?))
            });
            let (mut base, mut cell) = match drafts {
                Ok(drafts) => drafts,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            if let Some(right) = right.take() {
                base.adopt(|base| &mut base.right, right, tag);
            }
            cell.adopt(|cell| &mut cell.head, base.flush(&batch), BASE);
            nodes.push((low, Link::NULL));
            right = Some(cell.flush(&batch));
        }
        heap.media().site(SITE);
        let fenced = batch.fence();
        let mut at = right.map_or(Link::NULL, |first| first.persisted(&fenced).into_link(tag));
        nodes.reverse();
        for (_, cell) in &mut nodes {
            *cell = at;
            match base_at(heap, at) {
                Ok(base) => at = base.head.right.load(heap.media()),
                Err(error) => failed = failed.or(Some(error.into())),
            }
        }
        (nodes, failed)
    })
}

/// Joins the rows of leaves, and writes the levels above; returns the cell of the root node.
fn write_above<M: Media, const FULL: usize>(heap: &Access<M>, rows: Vec<Vec<Node>>) -> Result<Link, Failed> {
    // A row that cannot be read was damaged since it was written.
    join(heap, &rows).map_err(|error| (error.into(), Vec::new()))?;
    let mut nodes = rows.concat();
    let mut level = 0;
    while nodes.len() > 1 {
        level += 1;
        let shares = shares(nodes.len(), load(FULL));
        let lows = shares.iter().map(|share| nodes[share.start].0.clone()).collect();
        let children: Vec<_> = nodes.iter().map(|(low, cell)| (&low[..], *cell)).collect();
        let (above, failed) = write_nodes(heap, level, lows, None, |i, bounds, batch| {
            draft_inner_base(heap, level, &children[shares[i].clone()], bounds, batch)
        });
        if let Some(error) = failed {
            // The first node of the new level, which leads to the level below, would have been written last.
            let firsts = [nodes.first(), above.first()].into_iter().flatten();
            return Err((error.into(), firsts.map(|(_, cell)| *cell).collect()));
        }
        nodes = above;
    }
    Ok(nodes.first().map_or(Link::NULL, |(_, cell)| *cell))
}

/// The base of a new node.
fn base_at<M: Media>(heap: &Access<M>, cell: Link) -> Result<BaseRef<'_>, Fault> {
    BaseRef::at(heap, Page::load(heap, cell)?.head)
}

/// Links the last leaf of each row to the first of the next. Costs a write-back for each row, and one fence.
fn join<M: Media>(heap: &Access<M>, rows: &[Vec<Node>]) -> Result<(), Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        for pair in rows.windows(2) {
            if let (Some((_, last)), Some((_, next))) = (pair[0].last(), pair[1].first()) {
                base_at(heap, *last)?.head.right.store(*next, &batch);
            }
        }
        heap.media().site(SITE);
        let _durable = batch.fence().durable();
        Ok(())
    })
}

/// Creates the root of a tree whose root node has this cell.
fn publish<M: Media>(heap: &Heap<M>, name: &[u8], top: Link) -> Result<Link, Failed> {
    heap.media().comes_to("bulk: publication");
    let make = || {
        // SAFETY: it is the root of a P-BwTree, whose nodes are durable.
        unsafe {
            index::create_root(heap, name, KIND, |batch| {
                let mut root = heap.draft(Root { top: PSlot::null() }, 0, batch)?;
                root.link(|root| &mut root.top, top);
                Ok((root.flush(batch).erased(), ROOT))
            })
        }
    };
    heap.with_room(make).map_err(|error| (error.into(), vec![top]))
}
