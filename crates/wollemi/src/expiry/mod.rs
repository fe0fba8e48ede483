//! Entries that expire.
//!
//! | module        | what it holds                                                         |
//! |---------------|-----------------------------------------------------------------------|
//! | `expiring`    | maps whose entries may expire                                         |
//! | `edits`       | their remaining operations on keys, and handles of another durability |
//! | `iter`        | iteration over live entries                                           |
//! | `pop`         | removing the first or last live entry                                 |
//! | `sweeper`     | the thread that removes expired entries                               |
//! | `transaction` | expiring entries in transactions                                      |
//! | `view`        | expiring maps in snapshots                                            |
//! | `watch`       | streams of their changes                                              |

mod edits;
pub mod expiring;
pub mod iter;
mod pop;
pub mod sweeper;
mod transaction;
pub mod view;
pub mod watch;
