//! Statistics of an index's background merges.

use serde::Serialize;

/// The merge state of an index that buffers durable writes and later merges them into its main structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merges {
    /// Approximate number of writes buffered since the last merge began.
    pub gathered: u64,
    /// The number of buffered writes that starts a merge.
    pub threshold: u64,
    /// Approximate number of writes in the running merge; 0 if there is none.
    pub merging: u64,
    /// The phase of the running merge; `idle` if there is none.
    pub phase: &'static str,
    /// Number of parts of the running merge's first phase; 0 if no merge runs.
    pub parts: u64,
    /// Number of completed parts.
    pub parts_done: u64,
    /// Merges since the index was opened.
    pub merges: u64,
    /// Why the last attempt failed, if it did. The buffered writes stay, and the merge will be retried.
    pub failed: Option<String>,
}
