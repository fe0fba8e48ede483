//! Persistent memory: what durable means in Wollemi.
#![doc = "See `docs/design.md` for the layers."]

#[cfg(test)]
extern crate self as wollemi_pmem;

mod counting;
mod delaying;
mod hardware;
mod lock;
mod media;
#[cfg(doctest)]
mod misuse;
pub mod pool;
mod recent;
mod token;
#[cfg(test)]
mod toy;
mod word;

pub use counting::{Counting, Counts, Persists};
pub use delaying::{Delaying, Latency};
pub use hardware::{Hardware, WriteBack};
pub use lock::{GenerationLock, Locked, Obsolete};
pub use media::{LINE, Media, Purpose};
pub use pool::{Fault, Level, Pool, PoolOptions};
pub use token::{
    Batch, Chunk, Contended, Draft, Durable, Erased, Fenced, Flushed, Lender, LinkAndPersist, NonTemporal,
    PSlot, Persisted, Publication, Published, persist_scope,
};
pub use word::{Link, Offset, PWord, Persistent, Tag, VWord};
