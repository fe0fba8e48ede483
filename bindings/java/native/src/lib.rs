//! The native half of Wollemi's Java binding: the methods that `io.github.wollemi.Handle` declares `native`.
//!
//! Java holds a database, a map, a snapshot, a transaction or a sweeper by a number ([`table`]). Everything else
//! (cursors, batches, views) is Java's own and comes here as bytes.
//!
//! I1 A number is never used twice, and every call looks it up: a closed one is an exception, whatever thread closed
//!    it.
//! I2 A call keeps what it uses alive until it returns. Closing a database waits for the calls that are under way.
//! I3 No panic crosses: each method catches it, and it becomes an exception ([`failure`]).
//! I4 No pin outlives a call, and a call looks at a bounded number of entries.
//! I5 Java's arrays and buffers are copied: no reference into them, or into the pool, outlives a call.

mod bytes;
mod calls;
mod failure;
mod options;
mod reads;
mod report;
mod table;
