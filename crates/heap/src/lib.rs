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
//! Each of these modules uses only later ones. The `mod.rs` of a folder lists its files.
//!
//! | module | what it holds |
//! |---|---|
//! | `recovery` | what follows the links from the roots: tracing, recovery, the audit, the retirement of whole trees |
//! | `roots` | named roots |
//! | `heap` | the heap: drafts and retirement; new pages |
//! | `heap::access` | reading objects |
//! | `heap::attach` | DRAM state that belongs to a persistent object |
//! | `heap::reserve` | pages set apart (reserved) for a thread that must not find the pool full |
//! | `heap::trim` | giving free pages back to the file system |
//! | `heap::stats` | accounting |
//! | `reclaim` | when an object becomes free: guards, retirement, marks and sweep, recovery's phases |
//! | `alloc` | which pages and chunks are free: size classes, pages, claims, frees |
//! | `lock`, `error` | taking locks; the errors |
//!
//! Locks are held only briefly, and taken in this order: roots; the end of the pages; recovery's state, the
//! quarantine, the list of caches, a thread's pages set apart; a class's open and nearly full pages; a page; free runs;
//! the pool's growth. No guard is pinned and no tracer runs under them. Two locks are exceptions. That of the end of
//! the pages is also held while space beyond that end loses its blocks. That of the attached values, which comes before
//! all others, is held while a value is made; its maker may pin guards.

mod alloc;
mod error;
mod heap;
mod lock;
#[cfg(doctest)]
mod misuse;
mod reclaim;
mod recovery;
mod roots;

pub use alloc::class::footprint;
pub use error::{Error, MAX_NAME, MayBeFull};
pub use heap::Heap;
pub use heap::access::Access;
pub use heap::reserve::SetApart;
pub use heap::stats::HeapStats;
pub use reclaim::dram::{Swap, keep};
pub use reclaim::guard::{Guard, is_pinned, pin};
pub use reclaim::phase::{Progress, RecoveryStage, TracePause};
pub use recovery::audit::Audit;
pub use recovery::retire_tree::Removed;
pub use recovery::trace::{Trace, Tracers};
pub use roots::entry::Root;
