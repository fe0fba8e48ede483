//! Allocation: which pages and chunks are free, and who may hand them out. All of it is DRAM; it knows no guard, and
//! neither the pool nor its media.
//!
//! | module | what it holds |
//! |---|---|
//! | `class` | size classes |
//! | `page` | a page's state, with the bitmap of its chunks; the table of all pages |
//! | `free_runs` | free runs of pages |
//! | `reservation` | pages reserved for one thread |
//! | `cache`, `thread_cache` | chunks claimed by a thread; finding them, and giving them back when the thread ends |
//! | `quarantine` | retired objects that recovery keeps from being reused |
//! | `reuse` | the order of reuse under media that reuse memory at once |
//! | `arena` | all of a heap's pages: open and nearly full pages of each class, claims and frees |

pub(crate) mod arena;
pub(crate) mod cache;
pub(crate) mod class;
pub(crate) mod free_runs;
pub(crate) mod page;
pub(crate) mod quarantine;
pub(crate) mod reservation;
pub(crate) mod reuse;
pub(crate) mod thread_cache;
