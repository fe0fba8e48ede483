//! The database of level `disk` on a disk that loses and fails ([`crashkit::disk`]), with a pool that a kill leaves and
//! a loss of power takes.
//!
//! A history is a seeded run of writes, batches, transactions, maps that come and go, checkpoints and syncs over the
//! smallest segments and runs. Calls fail in some of the histories. Before each event of the disk the power goes, and
//! between stores into the pool the process is killed; what is left is opened and judged. A share of what was opened
//! goes on, with a history of its own that begins with the opening, so that crashes come during rebuilds and replays,
//! and crashes again.
//!
//! A history of one thread has its writes in the order of its log, so what a crash may leave is its state after some of
//! them: after a loss of power at least those that are durable, after a kill at least those that have returned, and
//! after either no more than have begun.
//!
//! | file | idea |
//! |---|---|
//! | `state` | what a database holds |
//! | `notes` | what a process was told, and what a crash may leave |
//! | `process` | a process over a disk: how operations are carried out and noted |
//! | `steps` | which operations these are |
//! | `history` | a process from its opening to its end |
//! | `explore` | crash points, images, second crashes |
//! | `together` | several threads at once |
//! | `damage` | bits, lengths and files that are not what was written |

mod damage;
mod explore;
mod history;
mod notes;
mod process;
mod state;
mod steps;
mod together;

pub use damage::damage;
pub use explore::torture;
