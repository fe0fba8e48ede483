//! The operations that are compared.

use serde::Serialize;

/// An operation that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Inserts of all keys into an empty map; ours are durable when they return.
    Load,
    /// Single reads.
    Get,
    /// Reads of 32 keys at once.
    MultiGet,
    /// Reads of the values of 100 keys.
    Scan100,
    /// New values for present keys.
    Update,
    /// Half reads, half updates, mostly of popular keys.
    YcsbA,
    /// Inserts of absent keys among those loaded.
    Insert,
    /// Removals of present keys.
    Remove,
}

impl Operation {
    /// Returns its display name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Load => "load",
            Operation::Get => "get",
            Operation::MultiGet => "multi_get",
            Operation::Scan100 => "scan100",
            Operation::Update => "update",
            Operation::YcsbA => "ycsb_a",
            Operation::Insert => "insert",
            Operation::Remove => "remove",
        }
    }

    /// Returns whether all engines must read the same values. Batches read other keys than the single gets measured
    /// with them, and threads that update keys read by others may expose the old value or the new.
    pub fn agrees(self) -> bool {
        !matches!(self, Operation::MultiGet | Operation::YcsbA)
    }
}
