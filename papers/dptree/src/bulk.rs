//! A DPTree built from sorted pairs ([`index::Bulk`]): the base tree's leaves, filled in order. The log stays empty.
//!
//! Leaves are written in *runs* of some, from the last leaf of a run to its first, so that each can link to its
//! successor. One fence makes the records of a run durable, another its leaves. At the end the runs are joined, by one
//! more fence.

use crate::base::leaf::LeafRef;
use crate::base::new_leaf;
use crate::key::{MarkedPair, in_place};
use crate::options::{Choice, DpTreeOptions};
use crate::root::{Root, tag};
use crate::worker::Worker;
use crate::{DpTree, KIND, tracer};
use heap::{Access, Error, Heap};
use index::codec::{self, PairWords, prefix};
use index::{Bulk, Parts, Reading};
use pmem::{Link, Media, Purpose, persist_scope};

/// The fill of leaves, in sixteenths: later writes find room.
const FILLED: usize = 15;

/// The site name of a build's persists, except for those of the root.
const SITE: &str = "dptree: built of pairs";

/// Number of leaves in a run: one under media with short histories, so that there are runs to join.
const fn leaves_of_run<M: Media>() -> usize {
    if M::TAKES_TURNS { 1 } else { 16 }
}

/// The version that counts in a new tree.
const VERSION: usize = 0;

/// A run of consecutive leaves.
struct Run {
    first: Link,
    last: Link,
}

/// The error of a failed build, and the objects to give back.
type Failed = (index::Error, Vec<Link>);

impl<M: Media, C: Choice> Bulk for DpTree<M, C> {
    fn build(heap: &Heap<M>, name: &[u8], parts: Parts<'_>) -> Result<Self, index::Error> {
        let options = DpTreeOptions::on::<M, C>().sane();
        // Before the tree has its name: nothing remains of a build whose thread does not start.
        let worker = Worker::start(&options)?;
        // SAFETY: this reads only objects made by this thread, or by one that it waits for, and none of them can be
        // retired meanwhile.
        let access = unsafe { heap.access() };
        let made = parts.read(|reading| write_runs(access, reading, options.leaf_capacity))?;
        let (mut runs, mut failed, mut rest) = (Vec::new(), None, Vec::new());
        for (written, failure) in made {
            runs.extend(written);
            if let Some((error, links)) = failure {
                failed.get_or_insert(error);
                rest.extend(links);
            }
        }
        let named = match failed {
            None => join(access, &runs).and_then(|first| publish(heap, name, &options, first)),
            Some(error) => {
                rest.extend(runs.iter().map(|run| run.first));
                Err((error, rest))
            }
        };
        match named {
            Ok(root) => Ok(Self::attach(heap, root, options, || Ok(worker))?),
            Err((error, links)) => {
                // SAFETY: none of them was published, or drafted in an earlier opening.
                unsafe { heap.retire_unpublished(links, &*tracer()) }?;
                Err(error)
            }
        }
    }
}

/// Writes a part's leaves; returns the runs written, and the error if it stopped early.
fn write_runs<M: Media>(
    heap: &Access<M>,
    mut reading: Reading<'_>,
    capacity: usize,
) -> (Vec<Run>, Option<Failed>) {
    let filled = capacity * FILLED / 16;
    let mut runs = Vec::new();
    loop {
        let entries = match read_entries(heap, &mut reading, leaves_of_run::<M>() * filled) {
            Ok(entries) if entries.is_empty() => return (runs, None),
            Ok(entries) => entries,
            Err(error) => return (runs, Some((error, Vec::new()))),
        };
        match write_run(heap, &entries, capacity, filled) {
            Ok(run) => runs.push(run),
            Err((error, links)) => return (runs, Some((error.into(), links))),
        }
    }
}

/// The next pairs as entries; those that are not stored in place have durable records. Costs one fence.
fn read_entries<M: Media>(
    heap: &Access<M>,
    reading: &mut Reading<'_>,
    max: usize,
) -> Result<Vec<MarkedPair>, index::Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let (mut entries, mut records) = (Vec::new(), Vec::new());
        while entries.len() < max
            && let Some((key, value)) = reading.next()?
        {
            let word = in_place(key, value);
            if word.is_none() {
                let record = heap.with_room(|| codec::draft(heap, key, value, &batch))?;
                records.push((entries.len(), record));
            }
            entries.push(MarkedPair {
                pair: PairWords {
                    prefix: prefix(key),
                    link: Link::NULL,
                    word: word.unwrap_or_default(),
                },
                removed: false,
            });
        }
        heap.media().site(SITE);
        let fenced = batch.fence();
        for (i, record) in records {
            entries[i].pair.link = record.persisted(&fenced).into_link(tag::RECORD);
        }
        Ok(entries)
    })
}

/// Writes the leaves of some entries. Costs one fence.
fn write_run<M: Media>(
    heap: &Access<M>,
    entries: &[MarkedPair],
    capacity: usize,
    filled: usize,
) -> Result<Run, (Error, Vec<Link>)> {
    let count = entries.len().div_ceil(filled);
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut next = None;
        let mut made = Vec::with_capacity(count);
        let mut failed = None;
        for i in (0..count).rev() {
            let [from, to] = [i, i + 1].map(|i| entries.len() * i / count);
            let shape = (VERSION, capacity);
            let leaf = heap.with_room(|| new_leaf::draft(heap, &batch, &entries[from..to], shape, &mut next));
            match leaf {
                Ok((leaf, about)) => {
                    next = Some(leaf);
                    made.push(about);
                }
                Err(error) => {
                    failed = Some((error, to));
                    break;
                }
            }
        }
        heap.media().site(SITE);
        let fenced = batch.fence();
        let first = next.map_or(Link::NULL, |leaf| {
            leaf.persisted(&fenced).into_link(tag::LEAF[VERSION])
        });
        if let Some((error, to)) = failed {
            let records = entries[..to].iter().map(|entry| entry.link);
            return Err((
                error,
                records.chain([first]).filter(|link| !link.is_null()).collect(),
            ));
        }
        let (mut at, mut last) = (first, first);
        for leaf in made.iter().rev() {
            let stored = leaf.store_volatile(heap, at, VERSION);
            let follows =
                stored.and_then(|()| Ok(LeafRef::at(heap, at)?.meta(VERSION).next.peek(heap.media())));
            last = at;
            at = follows.map_err(|error| (error, vec![first]))?;
        }
        Ok(Run { first, last })
    })
}

/// Joins the runs; returns the very first leaf, or null. Costs one fence.
fn join<M: Media>(heap: &Access<M>, runs: &[Run]) -> Result<Link, Failed> {
    let joined = persist_scope(heap.media(), Purpose::Node, |batch| {
        for pair in runs.windows(2) {
            let last = LeafRef::at(heap, pair[0].last)?;
            last.meta(VERSION).next.store(pair[1].first, &batch);
        }
        heap.media().site(SITE);
        let _durable = batch.fence().durable();
        Ok::<_, Error>(runs.first().map_or(Link::NULL, |run| run.first))
    });
    // A run that cannot be read was damaged since it was written.
    joined.map_err(|error| (error.into(), Vec::new()))
}

/// Creates the root of a tree with these leaves.
fn publish<M: Media>(
    heap: &Heap<M>,
    name: &[u8],
    options: &DpTreeOptions,
    first: Link,
) -> Result<Link, Failed> {
    heap.media().comes_to("bulk: publication");
    let make = || {
        // SAFETY: it is the root of a DPTree with these leaves.
        unsafe {
            index::create_root(heap, name, KIND, |batch| {
                let mut draft = heap.draft(Root::new(options), 0, batch)?;
                if !first.is_null() {
                    draft.link(|root| &mut root.heads[VERSION], first);
                }
                Ok((draft.flush(batch).erased(), tag::ROOT))
            })
        }
    };
    heap.with_room(make).map_err(|error| {
        (
            error.into(),
            Some(first).filter(|first| !first.is_null()).into_iter().collect(),
        )
    })
}
