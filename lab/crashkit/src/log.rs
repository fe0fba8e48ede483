//! The log of a run: all accesses through the media, in order.
//!
//! A crash need not be performed. A history runs once, to its end, and every prefix of its log is a crash point whose
//! legal images follow from the log alone (`model`).

use std::panic::Location;

/// A line of source: what asked for a store, a write-back or a fence.
pub type Site = &'static Location<'static>;

/// What kind of store it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// An ordinary store, or the successful half of a compare-and-swap.
    Plain,
    /// A word of a draft, stored by a plain copy and reported when the draft ended.
    Draft,
    /// A store past the cache.
    NonTemporal,
    /// A store that changes only bits that recovery ignores.
    Unpersisted,
    /// A store to a word that means something in its own generation only.
    Volatile,
    /// The same, by a compare-and-swap: such words are locks.
    Lock,
}

impl Store {
    /// Whether recovery may make anything of what is stored.
    pub fn matters(self) -> bool {
        !matches!(self, Store::Unpersisted | Store::Volatile | Store::Lock)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Word number `word` of the memory got a value.
    Store {
        /// The word: its offset in the memory divided by 8.
        word: u32,
        /// What it got.
        value: u64,
        /// How.
        kind: Store,
    },
    /// The words from `word` on belong to a new object: its stores follow.
    Drafted {
        /// The first word.
        word: u32,
        /// How many.
        words: u32,
    },
    /// A line was written back.
    WriteBack {
        /// The line: its offset in the memory divided by 64.
        line: u32,
        /// Index into [`Log::joins`] of the other call sites that asked for it; 0 if there is none.
        joins: u32,
    },
    /// A word that another thread has stored into was read.
    Load {
        /// The word.
        word: u32,
    },
    /// What was read of a word does not count.
    Disregarded {
        /// The word.
        word: u32,
    },
    /// A fence.
    Fence,
    /// A locked instruction, which completes write-backs as a fence does.
    Locked,
    /// An operation begins.
    Invoke(u32),
    /// It has answered.
    Ack(u32),
    /// The process is killed, and another one goes on with what it sees in memory.
    Killed,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub what: What,
    /// The logical thread that did it.
    pub thread: u32,
    /// The call site that asked for it; for a batch's write-back, the first that joined the line to the batch.
    pub site: Site,
}

/// What the source calls the persists that follow ([`Media::site`](pmem::Media::site)).
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// It was given before the event of this number...
    pub place: usize,
    /// ...by this logical thread...
    pub thread: u32,
    /// ...in the source file of this line.
    pub site: Site,
    /// Lines of source that had asked for write-backs before, which wait for a fence: it is no name of these.
    pub before: Vec<Site>,
}

/// The log of one run.
#[derive(Clone, Debug)]
pub struct Log {
    /// In order.
    pub events: Vec<Event>,
    /// For write-backs for which several lines of source asked: those after the first. The first entry is empty.
    pub joins: Vec<Vec<Site>>,
    /// Steps of larger changes that the structure says it came to, each before the event of this number.
    pub steps: Vec<(usize, &'static str)>,
    /// Names of persists.
    pub named: Vec<Named>,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            events: Vec::new(),
            joins: vec![Vec::new()],
            steps: Vec::new(),
            named: Vec::new(),
        }
    }
}

impl Log {
    /// All call sites that asked for a write-back, or the one that asked for anything else.
    pub fn sites(&self, event: &Event) -> impl Iterator<Item = Site> + '_ {
        let joins = match event.what {
            What::WriteBack { joins, .. } => joins as usize,
            _ => 0,
        };
        std::iter::once(event.site).chain(self.joins[joins].iter().copied())
    }
}
