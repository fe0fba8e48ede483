//! Entries that expire.
//!
//! | module        | what it holds                              |
//! |---------------|--------------------------------------------|
//! | `expiring`    | maps whose entries may expire              |
//! | `sweeper`     | the thread that removes expired entries    |
//! | `transaction` | expiring entries in transactions           |

pub mod expiring;
pub mod sweeper;
mod transaction;
