//! The log of level `disk` ([`log`]) on a disk that loses data and fails ([`crashkit::disk`]).
//!
//! A history is a seeded run of appends, waits and drops of old records over the smallest segments. During a sync other
//! writers append; calls fail in some of the histories. Before each event of the disk the power fails, and the process
//! is killed; in both cases the remaining files are opened and judged (`explore`). A share of the opened logs continues
//! with a history of its own, which begins with the opening, and crashes again.
//!
//! | file | idea |
//! |---|---|
//! | `script` | the steps of a history, and the answers it got |
//! | `truth` | the records that must, and those that may, survive a crash |
//! | `explore` | crash points, images, second crashes |
//! | `removal` | a log that is removed |
//! | `damage` | damaged bits, lengths and files |

mod damage;
mod explore;
mod removal;
mod script;
mod truth;

#[cfg(feature = "listed")]
pub(crate) use damage::mutate;
pub use damage::{Damaged, damage};
pub use explore::torture;
