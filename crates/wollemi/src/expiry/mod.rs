//! Entries that expire.
//!
//! | module        | what it holds                              |
//! |---------------|--------------------------------------------|
//! | `expiring`    | maps whose entries may expire              |
//! | `edits`       | their remaining operations on keys         |
//! | `iter`        | iteration over live entries                |
//! | `pop`         | removing the first or last live entry      |
//! | `sweeper`     | the thread that removes expired entries    |
//! | `transaction` | expiring entries in transactions           |

mod edits;
pub mod expiring;
pub mod iter;
mod pop;
pub mod sweeper;
mod transaction;
