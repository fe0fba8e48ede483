//! The log of level `disk` ([`log`]) on a disk that loses and fails ([`crashkit::disk`]).
//!
//! A history is a seeded run of appends, waits, drops and closings over the smallest segments. During a sync other
//! writers append; calls fail in some of the histories. Before each event of the disk the process is killed or the
//! power goes, and the remaining files are opened and judged (`judge`). A share of the opened logs continues with a
//! history of its own, which begins with the opening, and crashes again.
//!
//! | file | idea |
//! |---|---|
//! | `script` | what a history does, and notes of what it was told |
//! | `truth` | what must be there after a crash, and what may be |
//! | `explore` | crash points, images, second crashes |
//! | `damage` | bits, lengths and files that are not what was written |

mod damage;
mod explore;
mod script;
mod truth;

#[cfg(feature = "listed")]
pub(crate) use damage::mutate;
pub use damage::{Damaged, damage};
pub use explore::torture;
