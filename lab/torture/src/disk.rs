//! The database of level `disk` on a disk that loses data and fails ([`crashkit::disk`]), with a pool that survives a
//! kill but not a loss of power.
//!
//! A history is a seeded run of writes, batches, transactions, temporary maps, checkpoints and syncs over the smallest
//! segments and runs. Calls fail in some of the histories. Before events of the disk, drawn at random, the power fails
//! or the process is killed, and it is also killed between stores into the pool; the remaining files are opened and
//! judged. A share of the opened databases continues with a history of its own and crashes again. That history begins
//! with the opening, so that rebuilds and replays crash too.
//!
//! The writes of one thread are in log order, so a crash leaves the state after a prefix of them. After a loss of power
//! the prefix includes all durable writes, after a kill all writes that have returned. It never includes a write that
//! has not begun.
//!
//! | file | idea |
//! |---|---|
//! | `state` | the content of a database |
//! | `trouble` | why a run or a judgement failed |
//! | `notes` | the answers that a process got, and the states that a crash may leave |
//! | `pool` | the pool, and how the database in it is opened |
//! | `faults` | the errors that failing calls of the disk explain |
//! | `process` | a process over a disk: executes and records operations |
//! | `steps` | the operations |
//! | `history` | a process from its opening to its end |
//! | `explore` | crash points, images, second crashes |
//! | `together` | several threads at once |
//! | `calls` | each call of the disk fails in turn |
//! | `damage` | damaged bits, lengths and files |

mod calls;
mod damage;
mod explore;
mod faults;
mod history;
mod notes;
mod pool;
mod process;
mod state;
mod steps;
mod together;
mod trouble;

pub use calls::each_call;
pub use damage::damage;
pub use explore::torture;
