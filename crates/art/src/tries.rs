//! Bounded retries of a writer whose target other writers move.

use pmem::{GenerationLock, Media};

/// Why a try to find something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It was not where it should be: another thread has moved it since, or the pool is damaged.
    Lost,
    /// A thread that holds a lock is about to publish it elsewhere.
    Held,
    /// Another writer has changed it first, and so got further.
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

/// How often something was missed, and when that is taken for damage.
#[derive(Debug, Default)]
pub struct Tries {
    turn: u32,
    lost: u32,
}

impl Tries {
    /// Each time something is lost in a sound pool, another thread has changed it between a walk and its lock, which
    /// are about a microsecond apart. A damaged pool uses up the tries within a fraction of a second.
    const MAX_LOST: u32 = 20_000;

    /// Waits before the next try; `false` if there should be none. A holder is waited for however long it takes: it may
    /// be off its processor for as long as the system likes. And where there are no locks, other writers may be faster
    /// again and again.
    pub fn go_on<M: Media>(&mut self, missed: Missed, media: &M) -> bool {
        self.turn = self.turn.saturating_add(1);
        media.wait(self.turn);
        self.lost += u32::from(missed == Missed::Lost);
        self.lost < Self::MAX_LOST
    }
}
