//! The operations that are compared.

use serde::Serialize;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Inserts of keys that are not there; ours are durable when they return.
    Insert,
    /// Single reads.
    Get,
    /// Reads of 32 keys at once.
    MultiGet,
    /// Reads of the values of 100 keys.
    Scan100,
    /// New values for keys that are there.
    Update,
    /// Half reads, half updates, of popular keys most of all.
    YcsbA,
}

impl Operation {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Insert => "insert",
            Operation::Get => "get",
            Operation::MultiGet => "multi_get",
            Operation::Scan100 => "scan100",
            Operation::Update => "update",
            Operation::YcsbA => "ycsb_a",
        }
    }

    /// Whether all engines read the same in it. Batches are of other keys than the single gets beside them, and where
    /// threads update what others read, it may be the old value or the new.
    pub fn agrees(self) -> bool {
        !matches!(self, Operation::MultiGet | Operation::YcsbA)
    }
}
