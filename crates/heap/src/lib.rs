//! DCMM: the persistent heap (ROART §3.4.2, Delayed Check Memory Management).
//!
//! ```text
//!  first layer    page 0: header, roots | page | page | page | ...      one pool
//!                 free runs of pages; `allocated`, the only thing persisted for an allocation
//!  second layer   a page is carved into chunks of one size class; a bitmap a page says which are in use
//!                 a thread claims up to 64 free chunks at a time and hands them out without a lock
//! ```
//!
//! **Persistent state** consists of the objects, the named roots that lead to them, and one word: the end of the
//! allocated pages. Taking a new page persists that word (one write-back, one fence); taking or freeing a chunk
//! persists nothing. Everything else (the class of each page, the chunks in use) lives in DRAM and is rebuilt after
//! each opening, clean or not.
//!
//! **A chunk's life.** [`Heap::draft`] hands it out as a private [`Draft`](pmem::Draft); a draft that is dropped
//! gives it back at once; [`Heap::retire`] takes a published object out of use, and its chunk is free when every
//! [`Guard`] from before that call is gone. A draft that was neither published nor given back before a crash is found
//! unreachable after it.
//!
//! **Instant restart.** [`Heap::new`] takes a time that does not depend on the pool's size. New chunks come from new
//! pages at once, while [`Heap::recover`] traces in the background what the roots lead to, through each index's
//! [`Trace`], and then sweeps the old pages. An object retired while the trace runs is kept until it has ended. If
//! the trace meets anything that it does not understand, nothing is swept.
//!
//! **Accounting.** [`Heap::stats`]: used + free + unswept = reserved. [`Heap::audit`] compares what is reachable with
//! what is in use.
//!
//! Differences from the paper: a page does not belong to a thread, only claimed chunks do, so that all threads can
//! reuse memory that one of them freed, threads need no registration of fixed size, and a small pool with many
//! threads stays small; chunks in use are bits, not lists, so that the trace's marks already are the allocator's
//! metadata and the sweep has nothing to sort; and free runs of pages coalesce, so that large objects can use them.
//!
//! | file | idea |
//! |---|---|
//! | `heap` | drafts and retirement; new pages |
//! | `access` | reading objects |
//! | `cache`, `local` | chunks claimed by a thread; finding them, and giving them back when the thread ends |
//! | `apart`, `set_apart` | pages set apart for a thread that must not find the pool full |
//! | `space` | the pages' lists: open and scanty pages of each class, frees |
//! | `class`, `page`, `table`, `runs` | size classes; a page's state; finding it; free runs of pages |
//! | `exact` | guards that end exactly, under media that reuse memory at once |
//! | `root_entry`, `root`, `removed` | the bytes of a named root; their directory; taking a root and all objects below it out of use |
//! | `guard` | epochs, and the guards that hold them back |
//! | `attach` | DRAM state that belongs to a persistent object |
//! | `dram` | DRAM that lives under the same guards as the pool's objects |
//! | `course`, `trace`, `sweep`, `recovery` | phases, and waits for them; parallel tracing; marks and sweep; the order of it all |
//! | `retire`, `aside` | when a retired object is freed; retirements during recovery |
//! | `shrink` | giving free pages back to the file system |
//! | `stats`, `audit` | accounting |
//! | `error` | the errors |
//!
//! Locks are held only briefly, and taken in this order: roots; the end of the pages; recovery's course and stage, the
//! list of caches, a thread's pages set apart; a class's open and scanty pages; a page; free runs; the pool's growth.
//! No guard is pinned and no tracer runs under them. Two locks are exceptions. That of the end of the pages is also
//! held while space beyond that end loses its blocks. That of the attached values, which comes before all others, is
//! held while a value is made; its maker may pin guards.

mod access;
mod apart;
mod aside;
mod attach;
mod audit;
mod cache;
mod class;
mod course;
mod dram;
mod error;
mod exact;
mod guard;
mod heap;
mod local;
#[cfg(doctest)]
mod misuse;
mod page;
mod recovery;
mod removed;
mod retire;
mod root;
mod root_entry;
mod runs;
mod set_apart;
mod shrink;
mod space;
mod stats;
mod sweep;
mod table;
mod trace;

pub use access::Access;
pub use audit::Audit;
pub use class::footprint;
pub use course::{Progress, RecoveryStage, TracePause};
pub use dram::{Swap, keep};
pub use error::{Error, MayBeFull};
pub use guard::{Guard, is_pinned, pin};
pub use heap::Heap;
pub use removed::Removed;
pub use root_entry::{MAX_NAME, Root};
pub use set_apart::SetApart;
pub use stats::HeapStats;
pub use trace::{Trace, Tracers};
