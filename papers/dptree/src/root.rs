//! The root: the persistent state of a DPTree besides its leaves, records and log pages.
//!
//! ```text
//!    0   state     number of the last buffer tree that was merged:63 | version:1     the commit point of a merge
//!    8   shape     leaf capacity:16 | partitions:16 | log page:32, in bytes
//!   16   0
//!   64   heads     of the list of leaves, one for each version
//!   80   0
//!  128   logs      for even and odd numbers: 64 links to the newest page of each partition
//! ```
//!
//! I1 Buffer trees are numbered from 1. Those above n, the number in `state`, are alive, and there are at most two:
//!    tree n + 1, which may be being merged, and tree n + 2.
//! I2 The version selects the valid half of all leaves' metadata, and the valid head. The other half may hold
//!    anything during a merge, and after a crash.
//! I3 A thread that acts on state left here by another process [persists](Root::persist_seen) it first: that process
//!    may have been killed between a store and its fence.
//! I4 The links of a merged log are null, or lead to pages with its number or an older one; they are made null before
//!    these pages are reused.

use crate::options::{DpTreeOptions, MAX_PARTITIONS};
use heap::{Access, Error};
use pmem::{Fault, Link, Media, PSlot, PWord, Purpose, Tag, persist_scope, persistent};

/// The kinds of objects, in the tags of links. A link to a leaf also states the version of its metadata.
pub(crate) mod tag {
    use super::Tag;

    pub(crate) const ROOT: Tag = Tag::new(0);
    pub(crate) const LEAF: [Tag; 2] = [Tag::new(1 << 1), Tag::new(1 << 1 | 1 << 48)];
    pub(crate) const PAGE: Tag = Tag::new(2 << 1);
    /// A log page that is only kept from being swept.
    pub(crate) const STALE_PAGE: Tag = Tag::new(3 << 1);
    pub(crate) const RECORD: Tag = Tag::new(4 << 1);
}

persistent! {
    #[derive(Debug)]
    pub(crate) struct Root [size: 128 + 2 * 8 * MAX_PARTITIONS, align: 64] {
        pub(crate) state: PWord,
        shape: PWord,
        unused: [PWord; 6],
        pub(crate) heads: [PSlot; 2],
        more_unused: [PWord; 6],
        logs: [[PSlot; MAX_PARTITIONS]; 2],
    }
}

/// The decoded first word of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The last buffer tree that was merged; 0 at first.
    pub(crate) merged: u64,
    /// The half of the metadata that counts.
    pub(crate) version: usize,
}

impl State {
    pub(crate) fn from_word(word: u64) -> State {
        State {
            merged: word >> 1,
            version: (word & 1) as usize,
        }
    }

    pub(crate) fn word(self) -> u64 {
        self.merged << 1 | self.version as u64
    }
}

/// The options that shape persistent objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Entries of a leaf.
    pub(crate) leaf: usize,
    /// Partitions of a log.
    pub(crate) partitions: usize,
    /// Bytes of a log page.
    pub(crate) page: usize,
}

impl Root {
    /// The root of an empty tree.
    pub(crate) fn new(options: &DpTreeOptions) -> Root {
        let shape = options.leaf_capacity as u64
            | (options.partitions as u64) << 16
            | (options.log_page as u64) << 32;
        Root {
            state: PWord::new(0),
            shape: PWord::new(shape),
            unused: Default::default(),
            heads: [const { PSlot::null() }; 2],
            more_unused: Default::default(),
            logs: [const { [const { PSlot::null() }; MAX_PARTITIONS] }; 2],
        }
    }

    /// The root at `link`.
    pub(crate) fn at<M: Media>(heap: &Access<M>, link: Link) -> Result<&Root, Error> {
        let offset = link.offset().ok_or(Fault {
            what: "null root of a DPTree",
            offset: 0,
        })?;
        Ok(heap.at(offset)?)
    }

    pub(crate) fn state<M: Media>(&self, media: &M) -> State {
        State::from_word(self.state.load(media))
    }

    /// The shape, if it is valid.
    pub(crate) fn shape<M: Media>(&self, media: &M) -> Result<Shape, Fault> {
        let word = self.shape.load(media);
        let shape = Shape {
            leaf: (word & 0xffff) as usize,
            partitions: (word >> 16 & 0xffff) as usize,
            page: (word >> 32) as usize,
        };
        let sane = (64..=256).contains(&shape.leaf)
            && shape.leaf.is_multiple_of(64)
            && (1..=MAX_PARTITIONS).contains(&shape.partitions)
            && (256..=64 << 10).contains(&shape.page)
            && shape.page.is_multiple_of(64);
        sane.then_some(shape).ok_or(Fault {
            what: "shape of a DPTree",
            offset: word,
        })
    }

    /// Persists the root's state and links to logs, which another process may have stored without a fence (I3). Costs
    /// one fence.
    pub(crate) fn persist_seen<M: Media>(&self, media: &M) -> Result<(), Fault> {
        let partitions = self.shape(media)?.partitions;
        persist_scope(media, Purpose::Log, |batch| {
            self.state.persist_seen(&batch);
            media.site("dptree: logs as found");
            for log in &self.logs {
                log[..partitions]
                    .iter()
                    .for_each(|slot| slot.persist_seen(&batch));
            }
            let _durable = batch.fence().durable();
        });
        Ok(())
    }

    /// The newest pages of log `number`, for each partition.
    pub(crate) fn log(&self, number: u64) -> &[PSlot] {
        &self.logs[(number & 1) as usize]
    }

    /// Both logs' links.
    pub(crate) fn logs(&self) -> impl Iterator<Item = &PSlot> {
        self.logs.iter().flatten()
    }
}
