//! How long a writer goes on looking for what other writers move.

use pmem::Media;
use std::time::Duration;

/// Why a try to find something failed.
#[derive(Debug)]
pub enum Missed {
    /// It was not where it should be: it has just been moved, or the pool is damaged.
    Lost,
    /// It is where another thread is about to publish what it has built; or the next walk will come to it another way.
    Busy,
}

/// How often something was missed, and when that is taken for damage.
#[derive(Debug, Default)]
pub struct Tries {
    lost: u32,
    busy: u32,
}

impl Tries {
    /// Each time something is lost in a sound pool, another thread has changed it since the time before.
    const MOST_LOST: u32 = 20_000;
    /// Many seconds: by then another thread has done what takes microseconds.
    const MOST_BUSY: u32 = 50_000;
    /// Times after which a thread sleeps for what is busy.
    const AWAKE: u32 = 1_000;

    /// Waits before the next try; `false` if there should be none.
    pub fn go_on<M: Media>(&mut self, missed: &Missed, media: &M) -> bool {
        match missed {
            Missed::Lost => {
                self.lost += 1;
                media.wait(self.lost);
            }
            Missed::Busy => {
                self.busy += 1;
                if self.busy < Self::AWAKE {
                    media.wait(self.busy);
                } else {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        }
        self.lost < Self::MOST_LOST && self.busy < Self::MOST_BUSY
    }
}
