//! The slow log: the last commands that took long, of both protocols, as Redis's `SLOWLOG` shows them.

use crate::net::clients::Client;
use crate::net::dialect::Dialect;
use crate::ops::config::Config;
use crate::ops::latency::Command;
use crate::ops::rate_limit::RateLimit;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is kept of a command: its first words, and the first bytes of each.
const MAX_WORDS: usize = 32;
const MAX_BYTES: usize = 128;

/// A command that took long.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Given once, in order, from 0.
    pub id: u64,
    pub protocol: &'static Dialect,
    /// The second since 1970 at which it was done.
    pub time: u64,
    pub took: Duration,
    /// Its name and what follows it, as far as that is kept.
    pub words: Vec<Vec<u8>>,
    /// The client's address, and the name that it has given itself.
    pub peer: String,
    pub name: String,
}

/// The log.
#[derive(Debug)]
pub struct SlowLog {
    /// Microseconds from which on a command is slow; below zero: none is.
    threshold: AtomicI64,
    length: AtomicUsize,
    kept: Mutex<Kept>,
    told: RateLimit,
}

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    /// The newest is the first.
    slow: VecDeque<Slow>,
}

impl SlowLog {
    /// An empty log, set up as the configuration says.
    pub fn new(config: &Config) -> SlowLog {
        let log = SlowLog {
            threshold: AtomicI64::new(-1),
            length: AtomicUsize::new(0),
            kept: Mutex::default(),
            told: RateLimit::new(),
        };
        log.take(config);
        log
    }

    /// Takes over what the configuration says.
    pub fn take(&self, config: &Config) {
        self.set_threshold(config.slow_threshold);
        self.set_length(config.slow_length);
    }

    /// The microseconds from which on a command is slow; below zero: none is.
    pub fn threshold(&self) -> i64 {
        self.threshold.load(Ordering::Relaxed)
    }

    /// Changes from when on a command is slow.
    pub fn set_threshold(&self, micros: i64) {
        self.threshold.store(micros, Ordering::Relaxed);
    }

    /// Maximum number of commands that are kept.
    pub fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Changes how many are kept, from the next slow command on.
    pub fn set_length(&self, max: usize) {
        self.length.store(max, Ordering::Relaxed);
    }

    /// Whether this is slow.
    #[inline]
    pub fn is_slow(&self, took: Duration) -> bool {
        let threshold = self.threshold();
        threshold >= 0 && took.as_micros() >= threshold as u128
    }

    /// Notes a slow command.
    pub fn note<'w>(
        &self,
        command: Command,
        took: Duration,
        now: u64,
        client: &Client,
        words: impl ExactSizeIterator<Item = &'w [u8]>,
    ) {
        let protocol = command.protocol;
        if let Some(left_out) = self.told.may_log(now / 1000) {
            tracing::warn!(
                protocol = protocol.name,
                command = command.name(),
                micros = took.as_micros() as u64,
                client = client.peer,
                left_out,
                "slow command"
            );
        }
        let words = shorten(words);
        let (peer, name) = (client.peer.clone(), client.known().name);
        let max = self.length();
        let mut kept = self.lock();
        let id = kept.next;
        kept.next += 1;
        kept.slow.push_front(Slow {
            id,
            protocol,
            time: now / 1000,
            took,
            words,
            peer,
            name,
        });
        kept.slow.truncate(max);
    }

    /// Up to `max` of the newest, the newest first.
    pub fn newest(&self, max: usize) -> Vec<Slow> {
        self.lock().slow.iter().take(max).cloned().collect()
    }

    /// How many are kept.
    pub fn count(&self) -> usize {
        self.lock().slow.len()
    }

    /// Forgets all. Ids go on.
    pub fn reset(&self) {
        self.lock().slow.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // An entry is whole before it is pushed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept of a command's words, in Redis's way.
fn shorten<'w>(words: impl ExactSizeIterator<Item = &'w [u8]>) -> Vec<Vec<u8>> {
    let count = words.len();
    let room = if count > MAX_WORDS { MAX_WORDS - 1 } else { count };
    let shortened = |word: &[u8]| match word.len().checked_sub(MAX_BYTES) {
        None | Some(0) => word.to_vec(),
        Some(more) => {
            let mut short = word[..MAX_BYTES].to_vec();
            short.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
            short
        }
    };
    let mut kept: Vec<_> = words.take(room).map(shortened).collect();
    if count > room {
        kept.push(format!("... ({} more arguments)", count - room).into_bytes());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long commands are kept in part, with what is missing.
    #[test]
    fn long_commands_are_shortened() {
        let long = [b'x'; 130];
        let words = vec![&long[..]; 40];
        let kept = shorten(words.into_iter());
        assert_eq!(kept.len(), MAX_WORDS);
        assert!(kept[30].ends_with(b"xx... (2 more bytes)"));
        assert_eq!(kept[31], b"... (9 more arguments)");
        assert_eq!(
            shorten([&long[..128]; 32].into_iter()),
            vec![long[..128].to_vec(); 32]
        );
    }
}
