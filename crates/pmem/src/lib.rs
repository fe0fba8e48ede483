//! Persistent memory: what durability means in Wollemi.
//!
//! * A [`Pool`] is a growing file, or memory, mapped at a base that may differ from one opening to the next:
//!   everything in it is addressed by its [`Offset`].
//! * A [`Media`] carries out stores, write-backs and fences: the machine ([`Hardware`]), or one that also
//!   [counts](Counting), [delays](Delaying) or [traces](Tracing) them; an observer implements
//!   [`Observer`](watched::Observer).
//! * Shared persistent state is accessed only through words ([`PWord`], [`VWord`], [`PSlot`]). A [`GenerationLock`]
//!   held at a crash is free after it.
//! * [`persistent!`] declares the structs of a pool, and checks that any bytes are a valid value of them.
//! * Tokens make it a compile error to publish an object that is not durable: see [`persist_scope`].
//!
//! Not here: the allocation of a pool's pages, and which objects in them are alive.

#[cfg(test)]
extern crate self as wollemi_pmem;

mod candidates;
mod counting;
mod delaying;
mod hardware;
mod link;
mod lock;
mod media;
#[cfg(doctest)]
mod misuse;
mod mutex;
mod observed;
mod persistent;
mod platform;
pub mod pool;
mod prefetch;
mod process;
mod recent;
mod token;
#[cfg(test)]
mod toy;
mod tracing;
pub mod watched;
mod word;

pub use counting::{Counter, Counting, Counts, Persists};
pub use delaying::{Delay, Delaying, Latency};
pub use hardware::{Hardware, WriteBack};
pub use link::{Link, Offset, PSlot, Tag};
pub use lock::{GenerationLock, Locked, Obsolete};
pub use media::{LINE, Media, PersistenceDomain, Purpose};
pub use mutex::lock_across;
pub use observed::Observed;
pub use persistent::{Persistent, zeroed};
pub use pool::{Fault, Memory, Pool, PoolLevel, PoolOptions};
pub use prefetch::{prefetch, prefetch_range};
pub use process::Process;
pub use token::{
    Chunk, CommitWord, Contended, Draft, Durable, Erased, Fenced, Flushed, Joined, Lender, LinkAndPersist,
    Marked, NonTemporal, PersistBatch, Persisted, Placed, Publication, Published, Uncounted, persist_scope,
};
pub use tracing::{LineTrace, Tracing};
pub use watched::Watched;
pub use word::{PEither, PWord, VWord};
