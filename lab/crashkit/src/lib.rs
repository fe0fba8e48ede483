//! A crash-testing kit for persistent structures: every image that a crash may leave, judged.
//!
//! A structure that is generic over its [`pmem::Media`] is run on [`Crash`], which records what passes. From the log
//! follows, for every moment, which images a crash may leave ([`Model`]); each of them is opened, recovered and judged
//! ([`Subject::judge`]), lazily: only lines that are read are decided. Nothing is ever copied whole.
//!
//! | file | idea |
//! |---|---|
//! | `torture` | all of it in one call |
//! | `log` | what a run did |
//! | `model` | the memory model: which images a crash may leave |
//! | `media` | the media that records, and makes images as they are read |
//! | `choose` | which version of each line an image has |
//! | `explore` | crash points, images, second crashes |
//! | `explore::shrink` | of what fails, as little as still fails |
//! | `schedule` | logical threads under a deterministic scheduler |
//! | `meetings` | which words threads share, and in which orders they have met there |
//! | `expect`, `dirty` | durable linearizability; dirty reads |
//! | `subject` | what is tested |
//! | `history` | the operations that it is tested with |
//! | `killed` | pools as a killed process leaves them, beside such a disk |
//! | `disk` | a disk that remembers every write, and what a power cut or a kill may leave of it |
//! | `words` | any map from words to words as a subject, and its tests by one macro |
//! | `on_heap`, `blobs` | what subjects on a heap share; the heap alone as a subject |
//! | `mutate`, `forgiven` | persists left out, and those of them that nothing need miss |
//! | `coverage` | what the histories have reached |
//! | `report` | what was explored and found |
//!
//! Begin with [`torture`], and with the tutorial, `docs/crash-tutorial.md`, of which `tests/tutorial.rs` is the
//! program.
//!
//! Not here: the indexes and the database as subjects, which are in `wollemi-torture`.

pub mod blobs;
mod choose;
pub mod coverage;
mod dirty;
pub mod disk;
mod expect;
mod explore;
pub mod forgiven;
mod history;
pub mod killed;
pub mod log;
mod media;
mod meetings;
mod model;
mod mutant;
mod mutate;
pub mod on_heap;
mod point;
mod report;
mod schedule;
mod subject;
mod torture;
pub mod words;

pub use choose::Random;
pub use explore::{Explorer, Settings, silence_findings};
pub use forgiven::Forgiven;
pub use history::History;
pub use media::Crash;
pub use meetings::Met;
pub use model::{Mode, Model};
pub use mutant::{Lacks, Mutant};
pub use mutate::{Fate, Hunted};
pub use report::{Failure, Missing, Report};
pub use subject::{Depth, Subject, Verdict};
pub use torture::{Torture, torture};
