//! The slow log: the last slow commands of both protocols, as Redis's `SLOWLOG` shows them.

use crate::net::clients::Client;
use crate::net::dialect::Dialect;
use crate::ops::config::Config;
use crate::ops::latency::Command;
use crate::ops::rate_limit::RateLimit;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of words of a command that the log keeps, and of bytes of each.
const MAX_WORDS: usize = 32;
const MAX_BYTES: usize = 128;

/// A slow command.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Ids ascend from 0 and are never reused.
    pub id: u64,
    pub protocol: &'static Dialect,
    /// The time in seconds since 1970 at which it was done.
    pub time: u64,
    pub took: Duration,
    /// Its name and its arguments, as far as the log keeps them.
    pub words: Vec<Vec<u8>>,
    /// The client's address, and the name that it has given itself.
    pub peer: String,
    pub name: String,
}

/// The slow log.
#[derive(Debug)]
pub struct SlowLog {
    /// Commands that take this many microseconds or more are slow; negative: none is.
    threshold: AtomicI64,
    length: AtomicUsize,
    kept: Mutex<Kept>,
    warnings: RateLimit,
}

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    /// The newest is the first.
    slow: VecDeque<Slow>,
}

impl SlowLog {
    /// Creates an empty log, set up as the configuration says.
    pub fn new(config: &Config) -> SlowLog {
        let log = SlowLog {
            threshold: AtomicI64::new(-1),
            length: AtomicUsize::new(0),
            kept: Mutex::default(),
            warnings: RateLimit::new(),
        };
        log.take(config);
        log
    }

    /// Takes over the configuration.
    pub fn take(&self, config: &Config) {
        self.set_threshold(config.slow_threshold);
        self.set_length(config.slow_length);
    }

    /// Returns the microseconds from which on a command is slow; negative: none is.
    pub fn threshold(&self) -> i64 {
        self.threshold.load(Ordering::Relaxed)
    }

    /// Changes the threshold, in microseconds.
    pub fn set_threshold(&self, micros: i64) {
        self.threshold.store(micros, Ordering::Relaxed);
    }

    /// Returns the maximum number of commands in the log.
    pub fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Changes the maximum number of commands, from the next slow one on.
    pub fn set_length(&self, max: usize) {
        self.length.store(max, Ordering::Relaxed);
    }

    /// Returns whether this duration is slow.
    #[inline]
    pub fn is_slow(&self, took: Duration) -> bool {
        let threshold = self.threshold();
        threshold >= 0 && took.as_micros() >= threshold as u128
    }

    /// Adds a slow command.
    pub fn note<'w>(
        &self,
        command: Command,
        took: Duration,
        now: u64,
        client: &Client,
        words: impl ExactSizeIterator<Item = &'w [u8]>,
    ) {
        let protocol = command.protocol;
        if let Some(left_out) = self.warnings.may_log(now / 1000) {
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

    /// Returns up to `max` of the newest commands, the newest first.
    pub fn newest(&self, max: usize) -> Vec<Slow> {
        self.lock().slow.iter().take(max).cloned().collect()
    }

    /// Returns the number of commands in the log.
    pub fn count(&self) -> usize {
        self.lock().slow.len()
    }

    /// Removes all commands. Ids continue.
    pub fn reset(&self) {
        self.lock().slow.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // An entry is complete before it is pushed, so the log is valid also after a panic.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shortens a command's words as Redis does.
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

    /// The log shortens long commands, and says how much is missing.
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
