//! The native half of Wollemi's Java binding: the methods that `io.github.wollemi.Handle` declares `native`.
//!
//! Java refers to a database, a map, a snapshot, a transaction or a sweeper by a number ([`table`]). Everything else
//! (cursors, batches, views) exists only in Java and is passed as bytes.
//!
//! I1 A number is never reused, and every call looks it up: a closed one gives an exception, whichever thread closed
//! it.
//! I2 A call keeps the objects it uses alive until it returns. Closing a database waits for the calls in progress.
//! I3 No panic crosses the boundary: each method catches it and turns it into an exception ([`failure`]).
//! I4 No pin outlives a call, and under one pin a call visits a bounded number of entries.
//! I5 Java's arrays and buffers are copied: no reference into them, or into the pool, outlives a call.

mod bytes;
mod calls;
mod failure;
mod options;
mod reads;
mod report;
mod table;
