//! Tokens: publishing what is not durable does not compile.
//!
//! ```text
//! Draft<'e, T>     --flush(&PersistBatch<'e>)--> Flushed<'e, T> --persisted(&Fenced<'e>)--> Persisted<T>
//! PersistBatch<'e> --fence()-------------------> Fenced<'e>      one fence for the whole batch; stays on its thread
//! PSlot            --publish(Persisted<T>)-----> Published --commit()--> Durable
//! Published        --join(&PersistBatch<'e>)---> Joined<'e> --durable(&Fenced<'e>)--> Durable
//! PSlot            --place(Flushed<'e, T>)-----> Placed<'e> --publish(&Fenced<'e>, CommitWord)--> Published
//! ```
//!
//! `'e` is an invariant brand that [`persist_scope`] makes anew for each batch, so that no token of one batch
//! passes for another's. A draft may link to what was flushed in its own batch and to what is reachable already.
//! A draft, flushed or persisted object that is dropped unpublished gives its chunk back.
//!
//! `misuse.rs` shows what does not compile. Not proved by these types: the order of two publications, readers that
//! act on links not yet durable (the publication policy's affair), what recovery assumes, and that a draft's own
//! slots stay its own (a link read out of a draft, or a slot swapped from a draft of one batch into that of another,
//! may name what is not durable yet).

mod batch;
mod commit;
mod draft;
mod publish;
mod slot;
#[cfg(test)]
mod tests;

pub use batch::{Fenced, PersistBatch, persist_scope};
pub use commit::{CommitWord, Marked, Placed};
pub use draft::{Chunk, Draft, Erased, Flushed, Lender, Persisted};
pub use publish::{Contended, LinkAndPersist, NonTemporal, Publication, Uncounted};
pub use slot::{Joined, PSlot, Published};

use std::cell::Cell;
use std::marker::PhantomData;

/// Invariant in `'e`, so that no two batches' tokens pass for each other.
type Brand<'e> = PhantomData<Cell<&'e mut ()>>;

/// A fence is an affair of one thread.
type NotSend = PhantomData<*const ()>;

/// Proof that a write operation made its change durable.
#[derive(Debug)]
#[must_use]
pub struct Durable(());
