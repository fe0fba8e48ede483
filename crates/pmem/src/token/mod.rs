//! Tokens: publishing an object that is not durable does not compile.
//!
//! ```text
//! Draft<'e, T>     --flush(&PersistBatch<'e>)--> Flushed<'e, T> --persisted(&Fenced<'e>)--> Persisted<T>
//! PersistBatch<'e> --fence()-------------------> Fenced<'e>      one fence for the whole batch; stays on its thread
//! PSlot            --publish(Persisted<T>)-----> Published --commit()--> Durable
//! Published        --join(&PersistBatch<'e>)---> Joined<'e> --durable(&Fenced<'e>)--> Durable
//! PSlot            --place(Flushed<'e, T>)-----> Placed<'e> --publish(&Fenced<'e>, CommitWord)--> Published
//! ```
//!
//! `'e` is an invariant brand that [`persist_scope`] makes anew for each batch, so that no token of one batch passes
//! for another's. A draft may link to objects drafted or flushed in its own batch, to persisted ones and to reachable
//! ones. A drafted, flushed or persisted object that is dropped unpublished gives its chunk back.
//!
//! `misuse.rs` lists uses that do not compile. These types do not prove: the order of two publications, that no
//! reader acts on a link that is not yet durable (the publication policy ensures that), the assumptions of recovery,
//! that a draft to which another one links ahead is flushed, too, and that a draft's own slots stay its own (a link
//! read out of a draft, or a slot swapped from a draft of one batch into that of another, may lead to an object that is
//! not durable yet).

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
pub use slot::{Joined, Published};

use std::cell::Cell;
use std::marker::PhantomData;

/// Invariant in `'e`, so that the tokens of two batches are never interchangeable.
type Brand<'e> = PhantomData<Cell<&'e mut ()>>;

/// A fence belongs to one thread.
type NotSend = PhantomData<*const ()>;

/// Proof that a write operation made its change durable.
#[derive(Debug)]
#[must_use]
pub struct Durable(());
