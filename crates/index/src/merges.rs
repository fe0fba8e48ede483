//! Statistics of an index's background merges.

use serde::Serialize;

/// How an index stands that gathers writes, which are durable, and later merges them into where they belong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merges {
    /// Writes gathered since the last merge began, about.
    pub gathered: u64,
    /// The number of writes that begins a merge.
    pub threshold: u64,
    /// Writes that the merge under way takes in, about; 0 if there is none.
    pub merging: u64,
    /// The phase of the merge under way; `idle` if there is none.
    pub phase: &'static str,
    /// Parts into which its first phase is divided; 0 if there is none.
    pub parts: u64,
    /// How many of these are done.
    pub parts_done: u64,
    /// Merges since the index was opened.
    pub merges: u64,
    /// Why the last attempt failed, if it did. The gathered writes stay, and the merge will be tried again.
    pub failed: Option<String>,
}
