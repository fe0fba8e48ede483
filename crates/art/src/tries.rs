//! How long a writer goes on looking for what other writers move.

use pmem::Media;
use std::time::{Duration, Instant};

/// Why a try to find something failed.
#[derive(Debug)]
pub enum Missed {
    /// It was not where it should be: it has just been moved, or the pool is damaged.
    Lost,
    /// It is where another thread is about to publish what it has built.
    Busy,
}

/// How often something was missed, and when that is taken for damage.
#[derive(Debug, Default)]
pub struct Tries {
    lost: u32,
    busy: u32,
    /// Since when a thread has slept for what is busy.
    asleep: Option<Instant>,
}

impl Tries {
    /// Each time something is lost in a sound pool, another thread has changed it since the time before.
    const MOST_LOST: u32 = 20_000;
    /// By the clock: by then another thread has done what takes microseconds, however long the machine kept it from it.
    const LONGEST_BUSY: Duration = Duration::from_secs(90);
    /// Times after which a thread sleeps for what is busy.
    const AWAKE: u32 = 1_000;

    /// Waits before the next try; `false` if there should be none.
    pub fn go_on<M: Media>(&mut self, missed: &Missed, media: &M) -> bool {
        match missed {
            Missed::Lost => {
                self.lost += 1;
                media.wait(self.lost);
                self.lost < Self::MOST_LOST
            }
            Missed::Busy if self.busy < Self::AWAKE => {
                self.busy += 1;
                media.wait(self.busy);
                true
            }
            Missed::Busy => {
                let asleep = self.asleep.get_or_insert_with(Instant::now);
                std::thread::sleep(Duration::from_micros(100));
                asleep.elapsed() < Self::LONGEST_BUSY
            }
        }
    }
}
