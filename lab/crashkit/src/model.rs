//! The memory model: which images a crash may leave.
//!
//! For each line of 64 bytes the tracker keeps the stores that are not guaranteed durable, in order; for each thread,
//! which lines it has written back, up to which store, and not fenced yet.
//!
//! I1 Guaranteed stores are in the *base*, and so in every image.
//! I2 An image holds, of each line, the base and a prefix of the pending stores ([`Mode::Power`]), or a prefix for each
//!    word apart ([`Mode::Word`]), and any of the pending non-temporal stores.
//!    Volatile words are exempt: they may hold anything ([`Volatile`]).
//! I3 A write-back guarantees the line's content at the time of its issue, once a fence of the same thread has followed
//!    (or, with [`MemoryModel::locked_completes`], a locked instruction); with [`MemoryModel::clflush`] at once.
//! I4 Other threads see a non-temporal store from its thread's next fence or locked instruction on. The fence makes it
//!    durable, and so does a kill, since it reaches other threads through memory; a locked instruction does so only
//!    with [`MemoryModel::locked_completes`].
//!
//! `line` computes the contents that a line may have, `tracker` follows a log. Not here: the choice among the images
//! (`choose`), and where they are kept (`media`).

mod hash;
mod line;
mod tracker;

pub(crate) use hash::LineHasher;
pub(crate) use line::{Line, Version, Volatile};
pub(crate) use tracker::{Base, Tracker};

/// What a crash may tear apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Power loss with caches lost: lines are independent, stores to one line become durable in order.
    #[default]
    Power,
    /// Stricter than any hardware: words are independent, even those of one line.
    Word,
    /// The process ends and its memory stays: every store is there.
    Process,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Mode::Power => "power",
            Mode::Word => "word",
            Mode::Process => "process",
        })
    }
}

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryModel {
    /// What a crash may tear apart.
    pub mode: Mode,
    /// Whether a write-back is `clflush`, which is ordered with stores and needs no fence.
    pub clflush: bool,
    /// Whether a locked instruction completes the write-backs before it, as on x86-64. By default it does not: a
    /// compare-and-swap that happens to follow a write-back must not stand in for a missing fence.
    pub locked_completes: bool,
}

impl Default for MemoryModel {
    fn default() -> MemoryModel {
        MemoryModel::from(Mode::Power)
    }
}

impl From<Mode> for MemoryModel {
    fn from(mode: Mode) -> MemoryModel {
        MemoryModel {
            mode,
            clflush: false,
            locked_completes: false,
        }
    }
}

/// The eight words of a line.
pub(crate) type Content = [u64; 8];

#[cfg(test)]
mod tests;
