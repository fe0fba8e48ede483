//! The counters of `stats` and the metrics. Each worker counts for itself; a reader sums them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($name:ident $text:literal $metric:literal $help:literal),* $(,)?) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug)]
        pub enum Counter { $($name),* }

        /// The names `stats` gives, in the order of [`Counter`].
        pub const NAMES: &[&str] = &[$($text),*];

        /// The names the metrics give, and what they mean, in this order.
        pub const METRICS: &[(&str, &str)] = &[$((concat!("wollemi_", $metric, "_total"), $help)),*];
    };
}

counters! {
    Connections "total_connections" "accepted_connections" "Connections that were served.",
    Gets "cmd_get" "gets" "Keys looked up.",
    Sets "cmd_set" "sets" "Storage commands, those whose condition failed included.",
    Flushes "cmd_flush" "flushes" "Flushes of one database or of all.",
    Touches "cmd_touch" "touches" "Keys that memcached's clients touched, found or not.",
    GetHits "get_hits" "get_hits" "Keys looked up and found.",
    GetMisses "get_misses" "get_misses" "Keys looked up and not found.",
    GetDead "get_expired" "get_dead" "Keys that memcached's clients looked up and whose item had expired or was flushed.",
    DeleteMisses "delete_misses" "delete_misses" "Keys to delete that were not there, or whose item was not the expected one.",
    DeleteHits "delete_hits" "delete_hits" "Keys deleted.",
    IncrMisses "incr_misses" "incr_misses" "Increments by memcached's clients of keys that were not there.",
    IncrHits "incr_hits" "incr_hits" "Increments by memcached's clients of keys that were there.",
    DecrMisses "decr_misses" "decr_misses" "Decrements by memcached's clients of keys that were not there.",
    DecrHits "decr_hits" "decr_hits" "Decrements by memcached's clients of keys that were there.",
    CasMisses "cas_misses" "cas_misses" "Compare-and-swaps of keys that were not there.",
    CasHits "cas_hits" "cas_hits" "Compare-and-swaps carried out.",
    CasBadValue "cas_badval" "cas_bad" "Compare-and-swaps whose item had changed.",
    TouchHits "touch_hits" "touch_hits" "Keys that memcached's clients touched and found.",
    TouchMisses "touch_misses" "touch_misses" "Keys that memcached's clients touched and did not find.",
    TooLarge "store_too_large" "too_large" "Values of memcached's clients above the limit.",
    Failures "server_errors" "failures" "Requests of memcached's clients that failed in the pool or found no room.",
    Commands "redis_commands" "redis_commands" "Commands of Redis clients.",
    HttpHangups "http_hangups" "http_hangups" "Connections closed because an HTTP request came.",
    IdleKicks "idle_kicks" "idle_kicks" "Connections closed for being idle.",
    BytesRead "bytes_read" "read_bytes" "Bytes read from clients.",
    BytesWritten "bytes_written" "written_bytes" "Bytes sent to clients.",
}

const COUNT: usize = NAMES.len();

/// One worker's counts, in cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters([AtomicU64; COUNT]);

impl Counters {
    /// Counts `by` more.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        self.0[counter as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        for counter in &self.0 {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Returns the sums over all workers, each with its name.
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
