//! Entries that end by themselves.
//!
//! | module        | what it holds                              |
//! |---------------|--------------------------------------------|
//! | `expiring`    | maps whose entries may end                 |
//! | `sweeper`     | the thread that removes what has ended     |
//! | `transaction` | the same in transactions                   |

pub mod expiring;
pub mod sweeper;
mod transaction;
