//! Persistent memory: what durable means in Wollemi.
//!
//! * A [`Pool`] is a growing file, or memory, mapped at a base that differs from one opening to the next: everything
//!   in it is found by its [`Offset`].
//! * A [`Media`] carries out stores, write-backs and fences: the machine ([`Hardware`]), or one that also
//!   [counts](Counting) or [delays](Delaying) them.
//! * Words ([`PWord`], [`VWord`], [`PSlot`]) are the only way to shared persistent state, and a [`GenerationLock`]
//!   held at a crash is free after it.
//! * Tokens make publishing what is not durable a compile error: see [`persist_scope`].
//!
//! Not here: who allocates the pages of a pool, and who is alive in them.

#[cfg(test)]
extern crate self as wollemi_pmem;

mod counting;
mod delaying;
mod hardware;
mod lock;
mod media;
#[cfg(doctest)]
mod misuse;
mod observed;
pub mod pool;
mod prefetch;
mod recent;
mod token;
#[cfg(test)]
mod toy;
mod tracing;
mod word;

pub use counting::{Counting, Counts, Persists};
pub use delaying::{Delaying, Latency};
pub use hardware::{Hardware, WriteBack};
pub use lock::{GenerationLock, Locked, Obsolete};
pub use media::{LINE, Lacks, Media, Purpose};
pub use observed::Observed;
pub use pool::{Fault, Level, Memory, Pool, PoolOptions};
pub use prefetch::{prefetch, prefetch_range};
pub use token::{
    Batch, Chunk, CommitWord, Contended, Draft, Durable, Erased, Fenced, Flushed, Lender, LinkAndPersist,
    NonTemporal, PSlot, Persisted, Placed, Publication, Published, Uncounted, persist_scope,
};
pub use tracing::Tracing;
pub use word::{Link, Offset, PEither, PWord, Persistent, Tag, VWord};
