//! A crash-testing kit for persistent structures: it judges the images that a crash may leave.
//!
//! A structure that is generic over its [`pmem::Media`] runs on [`Crash`], which logs stores, write-backs and fences.
//! The log determines, for every moment, which images a crash may leave ([`MemoryModel`]). The kit opens, recovers and
//! judges them ([`Subject::judge`]): all of them up to a bound ([`Settings::exhaustive`]), beyond it a sample. It makes
//! an image lazily, choosing the content of a line only when the line is read, and never copies one.
//!
//! | file | idea |
//! |---|---|
//! | `torture` | the kit in one call |
//! | `log` | the stores, persists and operations of a run |
//! | `model` | the memory model: which images a crash may leave |
//! | `media` | the media that records, and makes images as they are read |
//! | `choose` | which version of each line an image has |
//! | `explore` | crash points, images, second crashes |
//! | `explore::shrink` | makes a failure smaller, as long as it still fails |
//! | `schedule`, `point` | logical threads under a deterministic scheduler; the points at which they may be switched |
//! | `meetings` | the words that threads share, and the orders in which they have met there |
//! | `expect`, `dirty` | durable linearizability; dirty reads |
//! | `subject` | the structure under test |
//! | `history` | the operations of a test |
//! | `killed` | pools as a killed process leaves them, for structures that have files beside their pool |
//! | `disk` | a disk that records every change, and the contents that a power cut or a kill may leave |
//! | `words` | any map from words to words as a subject, and its tests by one macro |
//! | `on_heap`, `blobs` | common parts of subjects on a heap; the heap alone as a subject |
//! | `mutate`, `mutant`, `forgiven` | omitted persists, and those whose absence need not be detected |
//! | `coverage` | the changes that the histories have reached |
//! | `report` | the statistics and the failures |
//!
//! Start with [`torture`] and the tutorial, `docs/crash-tutorial.md`, whose program is `tests/tutorial.rs`.
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
pub use model::{MemoryModel, Mode};
pub use mutant::{Lacks, Mutant};
pub use mutate::{Fate, Hunted};
pub use report::{Failure, Missing, Report};
pub use subject::{Depth, Subject, Verdict};
pub use torture::{Torture, torture};
