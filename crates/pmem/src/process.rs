//! The process that made a value.
//!
//! A forked child has copies of all values and only one thread. Locks that the parent's other threads held at the fork
//! stay held in the child for ever, and the child cannot wait for threads of the parent. So a drop that would release a
//! file lock, take a lock, or join a thread asks first whether its process made the value.

/// The process that made a value: what a forked child must leave to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The process that calls.
    pub fn current() -> Process {
        Process(std::process::id())
    }

    /// Whether it is the process that calls, and not one that the caller was forked from.
    pub fn is_current(self) -> bool {
        self == Process::current()
    }
}
