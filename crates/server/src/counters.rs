//! What `stats` counts. Each worker counts for itself; `stats` adds up.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($name:ident $text:literal),* $(,)?) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug)]
        pub enum Counter { $($name),* }

        /// The names `stats` gives, in the order of [`Counter`].
        pub const NAMES: &[&str] = &[$($text),*];
    };
}

counters! {
    Connections "total_connections",
    Gets "cmd_get",
    Sets "cmd_set",
    Flushes "cmd_flush",
    Touches "cmd_touch",
    GetHits "get_hits",
    GetMisses "get_misses",
    GetDead "get_expired",
    DeleteMisses "delete_misses",
    DeleteHits "delete_hits",
    IncrMisses "incr_misses",
    IncrHits "incr_hits",
    DecrMisses "decr_misses",
    DecrHits "decr_hits",
    CasMisses "cas_misses",
    CasHits "cas_hits",
    CasBadValue "cas_badval",
    TouchHits "touch_hits",
    TouchMisses "touch_misses",
    TooLarge "store_too_large",
    Failures "server_errors",
    Commands "redis_commands",
    IdleKicks "idle_kicks",
    BytesRead "bytes_read",
    BytesWritten "bytes_written",
}

const COUNT: usize = NAMES.len();

/// One worker's counts, in lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters([AtomicU64; COUNT]);

impl Counters {
    /// Counts `by` more.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        self.0[counter as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Begins anew.
    pub fn reset(&self) {
        for counter in &self.0 {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// The sums over all workers, each with its name.
pub fn sums<'c>(all: impl Iterator<Item = &'c Counters>) -> [(&'static str, u64); COUNT] {
    let mut sums = [("", 0); COUNT];
    for (sum, name) in sums.iter_mut().zip(NAMES) {
        sum.0 = name;
    }
    for counters in all {
        for (sum, counter) in sums.iter_mut().zip(&counters.0) {
            sum.1 += counter.load(Ordering::Relaxed);
        }
    }
    sums
}
