//! The identity of the process that made a value.
//!
//! A forked child has copies of all values but only one thread. Locks that the parent's other threads held at the
//! fork stay held in the child for ever, and the child cannot join threads of the parent. So a drop that would
//! release a file lock, take a lock, or join a thread first checks that its own process made the value.

/// The process that made a value, whose resources a forked child must leave to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The calling process.
    pub fn current() -> Process {
        Process(std::process::id())
    }

    /// Whether it is the calling process, rather than a parent that the caller was forked from.
    pub fn is_current(self) -> bool {
        self == Process::current()
    }
}
