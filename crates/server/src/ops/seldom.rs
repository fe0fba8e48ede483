//! What may happen at every request is told seldom: a flood of requests that fail shall neither fill the log nor have
//! the workers do little but write it.
//!
//! What only the client has done wrong, it is told; here it is of the lowest level.

use crate::clock;
use crate::items::store::Failure;
use std::sync::{Mutex, PoisonError};

/// Events of a kind that are told in one second.
const MOST: u32 = 10;

/// How often events of one kind are told.
#[derive(Debug)]
pub struct Seldom(Mutex<Told>);

#[derive(Debug)]
struct Told {
    second: u64,
    /// In this second.
    told: u32,
    /// Since the last that was told.
    left_out: u64,
}

impl Seldom {
    pub const fn new() -> Seldom {
        Seldom(Mutex::new(Told {
            second: 0,
            told: 0,
            left_out: 0,
        }))
    }

    /// Whether an event of this second is told; how many were not since the last one that was.
    pub fn may_tell(&self, second: u64) -> Option<u64> {
        // What a panic leaves are numbers like any others.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.second != second {
            (all.second, all.told) = (second, 0);
        }
        if all.told == MOST {
            all.left_out += 1;
            return None;
        }
        all.told += 1;
        Some(std::mem::take(&mut all.left_out))
    }
}

/// Tells that a request has failed.
pub fn failed(protocol: &str, why: &Failure) {
    static FAILED: Seldom = Seldom::new();
    let of_the_client = match why {
        Failure::NoRoom => true,
        Failure::Index(error) => matches!(error, index::Error::KeyTooLong(_) | index::Error::ValueTooLong(_)),
        Failure::Foreign => false,
    };
    if of_the_client {
        tracing::debug!(protocol, %why, "request refused");
    } else if let Some(left_out) = FAILED.may_tell(clock::now() / 1000) {
        tracing::error!(protocol, %why, left_out, "request failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a flood the first are told, then none in that second, and then how many there were.
    #[test]
    fn floods_are_told_seldom() {
        let seldom = Seldom::new();
        let told = (0..1000).filter(|_| seldom.may_tell(7) == Some(0)).count();
        assert_eq!(told, MOST as usize);
        assert_eq!(seldom.may_tell(8), Some(1000 - u64::from(MOST)));
        assert_eq!(seldom.may_tell(8), Some(0));
    }
}
