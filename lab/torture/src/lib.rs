//! Wollemi's structures as subjects of the crash-testing kit (`wollemi-crashkit`), and their histories.
//!
//! | file | idea |
//! |---|---|
//! | `map` | any index as a subject |
//! | `history` | histories of a map that reach every structure modification |
//! | `log` | the log of level `disk`, on a disk that loses data and fails |
//! | `disk` | the database of level `disk`, likewise, with a pool that survives a kill |
//! | `bounds` | bounds of the exploration of these two, and its report |
//! | `syncs` | omitted syncs of these two |
//! | `builds` | indexes built from sorted pairs |
//! | `batches` | the embedded database: batches over maps of different indexes |
//! | `items` | the server's items: commands, flushes and transactions over two databases |
//! | `forgiven` | persists that a hunt may forgive |
//!
//! The heap alone is a subject of the kit itself (`crashkit::blobs`).

#![forbid(unsafe_code)]

#[cfg(feature = "listed")]
pub mod batches;
pub mod bounds;
#[cfg(feature = "listed")]
pub mod builds;
#[cfg(feature = "listed")]
pub mod disk;
pub mod forgiven;
pub mod history;
#[cfg(feature = "items")]
pub mod items;
pub mod log;
pub mod map;
pub mod syncs;
