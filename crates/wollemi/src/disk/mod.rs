//! Level `disk`: a log and checkpoints beside the pool, so that what was acknowledged survives a loss of power on an
//! ordinary disk.
//!
//! The pool is what it is at level `process`: a memory image that is whole after every step of every process, and opens at
//! once after `kill -9`. Its pages reach the medium in any order, so after the machine has stopped it is not trusted. Then
//! it is rebuilt from the last [checkpoint](checkpoint) and the [log](crate::write::journal) behind that.
//!
//! ```text
//! shop.pool           the pool
//! shop.pool.disk/     manifest         which runs are the last checkpoint, and where replaying begins
//!                     run-00000007     sorted entries of one map
//!                     log-…            segments of the log
//! ```
//!
//! I1 All that the pool holds is in the log, or in the checkpoint: a write appends before the index publishes.
//! I2 All that the log says below the pool's log position is in the pool, and durable in the log. So after a killed process,
//!    replaying from there makes the two agree, and a pool that was closed never claims more than a loss of power leaves.
//! I3 The runs, with the log replayed over them from the manifest's position, are what the database held at the log's end.
//!
//! | module       | what it holds                                                  |
//! |--------------|----------------------------------------------------------------|
//! | `making`     | a new database: its steps, and what a crash amid them leaves    |
//! | `opening`    | which of all this an opening does                              |
//! | `checkpoint` | taking checkpoints; `manifest`, `run`: their files; `sizes`     |
//! | `pace`       | the pace of a checkpoint beside writers                        |
//! | `delta`      | the last statement of the log about each key, sorted           |
//! | `rebuild`    | a new pool of a checkpoint and the log; `merged`: a map's runs |
//! | `replay`     | the log's changes over the maps                                |
//! | `keeper`     | the threads that note the position and take checkpoints        |

pub mod checkpoint;
mod delta;
pub mod keeper;
mod making;
pub mod manifest;
pub mod merged;
pub mod opening;
pub mod pace;
pub mod rebuild;
pub mod replay;
pub mod run;
pub mod sizes;
#[cfg(test)]
mod tests;
