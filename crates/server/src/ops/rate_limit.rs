//! Rate-limits log messages that any request can trigger, so that a flood of failing requests neither fills the log nor
//! keeps the workers busy with writing it.
//!
//! The server answers a client's own mistake, and logs it at the debug level only.

use crate::clock;
use crate::items::store::Failure;
use std::sync::{Mutex, PoisonError};

/// Maximum number of messages of one kind per second.
const MAX_PER_SECOND: u32 = 10;

/// The limit of one kind of message.
#[derive(Debug)]
pub struct RateLimit(Mutex<Logged>);

#[derive(Debug)]
struct Logged {
    second: u64,
    /// Messages logged in this second.
    logged: u32,
    /// Messages left out since the last logged one.
    left_out: u64,
}

impl RateLimit {
    pub const fn new() -> RateLimit {
        RateLimit(Mutex::new(Logged {
            second: 0,
            logged: 0,
            left_out: 0,
        }))
    }

    /// Asks to log a message in this second. Returns `None` if the message must be left out, else how many were left
    /// out since the last logged one.
    pub fn may_log(&self, second: u64) -> Option<u64> {
        // After a panic the numbers are still valid.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.second != second {
            (all.second, all.logged) = (second, 0);
        }
        if all.logged == MAX_PER_SECOND {
            all.left_out += 1;
            return None;
        }
        all.logged += 1;
        Some(std::mem::take(&mut all.left_out))
    }
}

/// Logs a failed request.
pub fn failed(protocol: &str, why: &Failure) {
    static FAILED: RateLimit = RateLimit::new();
    if is_of_the_client(why) {
        tracing::debug!(protocol, %why, "request refused");
    } else if let Some(left_out) = FAILED.may_log(clock::now() / 1000) {
        tracing::error!(protocol, %why, left_out, "request failed");
    }
}

/// Returns whether the failure is the client's mistake, and the server is in order.
fn is_of_the_client(why: &Failure) -> bool {
    match why {
        Failure::NoRoom => true,
        Failure::Index(error) => {
            use index::Error::{KeyTooLong, Unordered, ValueTooLong};
            matches!(error, KeyTooLong(_) | ValueTooLong(_) | Unordered)
        }
        Failure::Foreign => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that no server could fulfil is no failure of the server, and is not logged as one.
    #[test]
    fn requests_that_cannot_be_had_are_the_clients() {
        for error in [index::Error::KeyTooLong(70_000), index::Error::Unordered] {
            assert!(is_of_the_client(&Failure::Index(error)));
        }
        let damaged = heap::Error::Damaged {
            what: "a node",
            offset: 0,
        };
        assert!(!is_of_the_client(&Failure::Index(damaged.into())));
    }

    /// In a flood the first messages of a second are logged, then none, and the first of the next second has the number
    /// of those left out.
    #[test]
    fn floods_are_limited() {
        let limit = RateLimit::new();
        let logged = (0..1000).filter(|_| limit.may_log(7) == Some(0)).count();
        assert_eq!(logged, MAX_PER_SECOND as usize);
        assert_eq!(limit.may_log(8), Some(1000 - u64::from(MAX_PER_SECOND)));
        assert_eq!(limit.may_log(8), Some(0));
    }
}
