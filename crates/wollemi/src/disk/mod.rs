//! Level `disk`: a log and checkpoints beside the pool, so that acknowledged writes survive a loss of power on an
//! ordinary disk.
//!
//! The pool is the same as at level `process`: a memory image that is consistent after every store, and opens at once
//! after `kill -9`. Its pages reach the medium in any order, so the pool is not trusted after the machine has stopped.
//! It is then rebuilt from the last [checkpoint](checkpoint) and the [log](crate::write::journal) after it.
//!
//! ```text
//! shop.pool           the pool
//! shop.pool.disk/     manifest         names the runs of the last checkpoint and the position where replay begins
//!                     run-00000007     sorted entries of one map
//!                     log-…            segments of the log
//! ```
//!
//! I1 Everything in the pool is in the log or in the checkpoint: a write appends before the index publishes.
//! I2 All of the log below the pool's log position is in the pool, and durable in the log. So after a process is
//!    killed, replaying from there makes the two agree, and a closed pool never claims more than a loss of power
//!    leaves.
//! I3 The runs, with the log replayed over them from the manifest's position, are the database's content at the log's
//! end.
//!
//! | module       | what it holds                                                        |
//! |--------------|----------------------------------------------------------------------|
//! | `making`     | creating a database: its steps, and what a crash between them leaves |
//! | `opening`    | opening a pool with its log; `settings`: the settings of an opening  |
//! | `beside`     | the directory beside the pool, its lock, and removing its files      |
//! | `checkpoint` | taking checkpoints; `manifest`, `run`: their files; `sizes`          |
//! | `pace`       | the pace of a checkpoint beside writers                              |
//! | `delta`      | the last record about each key in a part of the log, sorted          |
//! | `rebuild`    | a new pool from a checkpoint and the log; `merged`: a map's runs     |
//! | `progress`   | the progress of a rebuild, and its reports                           |
//! | `replay`     | the log's changes over the maps                                      |
//! | `keeper`     | the threads that record the position and take checkpoints            |

pub mod beside;
pub mod checkpoint;
mod delta;
pub mod keeper;
mod making;
pub mod manifest;
pub mod merged;
pub mod opening;
pub mod pace;
pub mod progress;
pub mod rebuild;
pub mod replay;
pub mod run;
pub mod settings;
pub mod sizes;
#[cfg(test)]
mod tests;
