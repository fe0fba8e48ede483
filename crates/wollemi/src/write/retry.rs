//! The retry policy: the number of attempts of a transaction, and the pauses between them.

use crate::write::store::Store;
use crate::{Error, Media};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Shorter pauses spin: the system's shortest sleep is some fifty microseconds.
const MAX_SPIN: Duration = Duration::from_micros(20);

/// The number of attempts that [`Db::transact_with`](crate::Db::transact_with) makes at a transaction that meets
/// conflicts, and the pauses between them.
///
/// Before each retry it pauses for a random time: at most `pause` before the second attempt, twice as long before each
/// further one, up to `longest_pause`. So transactions that change the same keys do not collide again and again.
///
/// ```
/// use std::time::Duration;
/// use wollemi::{Db, Error, Retry};
///
/// let db = Db::anonymous()?;
/// let map = db.map("m")?;
/// let once = Retry::new().tries(1).pause(Duration::ZERO);
/// let conflict = db.transact_with(&once, |tx| {
///     tx.get(&map, "key")?;
///     map.upsert("key", "changed by another writer")?;
///     Ok::<_, Error>(())
/// });
/// assert!(matches!(conflict, Err(Error::Conflict { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Retry {
    tries: u32,
    pause: Duration,
    longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            tries: 100,
            pause: Duration::from_micros(2),
            longest_pause: Duration::from_millis(5),
        }
    }
}

impl Retry {
    /// Returns the default: a hundred attempts, with pauses of at most 2 µs at first and at most 5 ms later.
    pub fn new() -> Retry {
        Retry::default()
    }

    /// Sets the total number of attempts; 0 counts as 1.
    pub fn tries(mut self, tries: u32) -> Retry {
        self.tries = tries;
        self
    }

    /// Sets the maximum pause before the second attempt.
    pub fn pause(mut self, pause: Duration) -> Retry {
        self.pause = pause;
        self
    }

    /// Sets the maximum pause before any attempt.
    pub fn longest_pause(mut self, pause: Duration) -> Retry {
        self.longest_pause = pause;
        self
    }

    /// Starts the attempts of one call.
    pub(super) fn start(&self) -> Tries<'_> {
        Tries { retry: self, made: 0 }
    }
}

/// The attempts of one call.
pub(super) struct Tries<'r> {
    retry: &'r Retry,
    made: u32,
}

impl Tries<'_> {
    /// Pauses before the next attempt; returns `false` if there is none left.
    pub fn wait<M: Media>(&mut self, media: &M) -> bool {
        self.made += 1;
        if self.made >= self.retry.tries {
            return false;
        }
        if M::TAKES_TURNS {
            media.wait(self.made);
            return true;
        }
        let doubled = self.retry.pause.saturating_mul(1 << (self.made - 1).min(30));
        let pause = doubled.min(self.retry.longest_pause).mul_f64(random());
        if pause < MAX_SPIN {
            let until = std::time::Instant::now() + pause;
            while std::time::Instant::now() < until {
                std::hint::spin_loop();
            }
        } else {
            std::thread::sleep(pause);
        }
        true
    }
}

/// Returns a random number from 0 up to 1.
fn random() -> f64 {
    // The standard library seeds these hashers differently each time.
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

impl<M: Media> Store<M> {
    /// Runs attempts until one ends without a conflict, as `retry` says. The closure receives whether an earlier
    /// attempt met a conflict. It returns the commit's result and the caller's result, or its own error.
    pub fn retry<R, E: From<Error>>(
        &self,
        retry: &Retry,
        mut attempt: impl FnMut(bool) -> (Result<(), Error>, Result<R, E>),
    ) -> Result<R, E> {
        let mut tries = retry.start();
        loop {
            match attempt(tries.made > 0) {
                (Err(Error::Conflict { map, key }), _) => {
                    self.heap.media().comes_to("transaction: conflict");
                    if !tries.wait(self.heap.media()) {
                        return Err(Error::Conflict { map, key }.into());
                    }
                }
                (Err(error), Ok(_)) => return Err(error.into()),
                (_, result) => return result,
            }
        }
    }
}
