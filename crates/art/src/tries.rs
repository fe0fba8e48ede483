//! Bounded retries of a writer whose target other writers move.

use pmem::{GenerationLock, Media};

/// Why an attempt to find something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It was not where it should be: another thread has moved it since, or the pool is damaged.
    Lost,
    /// A thread that holds a lock is about to publish it elsewhere.
    Held,
    /// Another writer has changed it first, and so made progress.
    Overtaken,
}

impl Missed {
    /// Why something was missed that a change under `lock` may have moved.
    pub fn beside<M: Media>(lock: &GenerationLock, media: &M, generation: u32) -> Missed {
        match lock.is_locked(media, generation) {
            true => Missed::Held,
            false => Missed::Lost,
        }
    }
}

/// Counts the misses, and decides when they mean damage.
#[derive(Debug, Default)]
pub struct Tries {
    turn: u32,
    lost: u32,
}

impl Tries {
    /// Maximum number of misses. In a sound pool each means that another thread has made a change between a walk and
    /// its lock, which are about a microsecond apart. In a damaged pool all tries take a fraction of a second.
    const MAX_LOST: u32 = 20_000;

    /// Waits before the next try; returns `false` if there should be none. A lock's holder is awaited indefinitely:
    /// the system may deschedule it for any time. And without locks, other writers may be faster again and again.
    pub fn go_on<M: Media>(&mut self, missed: Missed, media: &M) -> bool {
        self.turn = self.turn.saturating_add(1);
        media.wait(self.turn);
        self.lost += u32::from(missed == Missed::Lost);
        self.lost < Self::MAX_LOST
    }
}
