//! P-ART, P-CLHT, P-HOT, P-Masstree and P-BwTree: the five indexes that RECIPE converts for persistent memory (SOSP
//! 2019).
//!
//! RECIPE takes a concurrent index in DRAM whose reads tolerate half-done writes, and makes it crash-consistent: each
//! store that other threads can see is made durable before the next, and if a write takes several such stores, a
//! later writer that finds the write interrupted by a crash completes it. `docs/papers.md` maps the paper's sections
//! to these files, `docs/recipe.md` shows the additions to each store of the index in DRAM, and `docs/deviations.md`
//! lists deviations and their reasons.

pub mod bwtree;
pub mod clht;
pub mod hot;
pub mod masstree;
pub mod part;

pub use bwtree::BwTree;
pub use clht::Clht;
pub use hot::Hot;
pub use masstree::Masstree;
pub use part::Part;
