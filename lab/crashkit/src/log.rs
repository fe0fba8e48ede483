//! The log of a run: its stores, write-backs, locked instructions, fences and operations, and the loads of what another
//! thread stored last, in order.
//!
//! The kit performs no crash. A history runs once, to its end. A crash may come after every prefix of its log, and the
//! images that it may leave follow from that prefix alone (`model`).

use std::panic::Location;

/// The source line that asked for a store, a write-back or a fence.
pub type Site = &'static Location<'static>;

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// An ordinary store, or the successful half of a compare-and-swap.
    Plain,
    /// A word of a draft, stored by a plain copy and reported when the draft ended.
    Draft,
    /// A store past the cache.
    NonTemporal,
    /// A store that changes only bits that recovery ignores.
    Unpersisted,
    /// A store to a word that is valid in its own generation only.
    Volatile,
    /// Such a store by a compare-and-swap: the word is a lock.
    Lock,
}

impl StoreKind {
    /// Returns whether recovery may depend on the stored value.
    pub fn matters(self) -> bool {
        !matches!(
            self,
            StoreKind::Unpersisted | StoreKind::Volatile | StoreKind::Lock
        )
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A store to a word.
    Store {
        /// The word: its offset in the memory divided by 8.
        word: u32,
        /// The stored value.
        value: u64,
        /// How it was stored.
        kind: StoreKind,
    },
    /// The words from `word` on belong to a new object: its stores follow.
    Drafted {
        /// The first word.
        word: u32,
        /// The number of words.
        words: u32,
    },
    /// A line was written back.
    WriteBack {
        /// The line: its offset in the memory divided by 64.
        line: u32,
        /// Index into [`EventLog::joins`] of the other call sites that asked for it; 0 if there is none.
        joins: u32,
    },
    /// A load of a word into which another thread stored last.
    Load {
        /// The word.
        word: u32,
    },
    /// The operation does not use what it loaded from a word.
    Disregarded {
        /// The word.
        word: u32,
    },
    /// A fence.
    Fence,
    /// A locked instruction. It completes write-backs, as a fence does, if the
    /// [model](crate::MemoryModel::locked_completes) says so.
    Locked,
    /// An operation begins.
    Invoke(u32),
    /// It has answered.
    Ack(u32),
    /// The process is killed, and another one continues with the visible content of memory.
    Killed,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// What happened.
    pub kind: EventKind,
    /// The logical thread that did it.
    pub thread: u32,
    /// The call site that asked for it; for a batch's write-back, the first that joined the line to the batch.
    pub site: Site,
}

/// A name that the source gives to the persists that follow ([`Media::site`](pmem::Media::site)).
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
    /// Source lines that had asked for write-backs before, which had not been issued yet: the name does not apply to
    /// these.
    pub before: Vec<Site>,
}

/// The log of one run.
#[derive(Clone, Debug)]
pub struct EventLog {
    /// The events, in order.
    pub events: Vec<LogEvent>,
    /// For write-backs that several source lines asked for: the lines after the first. Entry 0 is empty.
    pub joins: Vec<Vec<Site>>,
    /// Steps of larger changes that the structure reported, each with the number of the event after it.
    pub steps: Vec<(usize, &'static str)>,
    /// Names of persists.
    pub named: Vec<Named>,
}

impl Default for EventLog {
    fn default() -> EventLog {
        EventLog {
            events: Vec::new(),
            joins: vec![Vec::new()],
            steps: Vec::new(),
            named: Vec::new(),
        }
    }
}

impl EventLog {
    /// Returns the call sites that asked for an event: one, or several for a write-back.
    pub fn sites(&self, event: &LogEvent) -> impl Iterator<Item = Site> + '_ {
        let joins = match event.kind {
            EventKind::WriteBack { joins, .. } => joins as usize,
            _ => 0,
        };
        std::iter::once(event.site).chain(self.joins[joins].iter().copied())
    }
}
