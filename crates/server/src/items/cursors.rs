//! The places of unfinished scans. A client's cursor is a number, but a place in a map is a key, so the server keeps
//! the key of each cursor.
//!
//! A scan has one open place, however many pages it has had, unless its client repeats a request. A cursor from which
//! the scan was continued is *spent*; the server keeps it for a while for a client that asks again because the answer
//! was lost.
//!
//! I1 No number is given twice. Numbers begin at a random one below 2^52, so that a number of an earlier server hardly
//!    matches a scan, and stay below 2^53, so that they are exact in clients that hold numbers as floating point.
//! I2 The cursors kept are within [`OPEN`], [`SPENT`] and [`BYTES`]. Spent cursors are dropped before others, and of
//!    either kind the oldest first.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of unfinished scans.
const OPEN: usize = 1 << 14;

/// Maximum number of spent cursors.
const SPENT: usize = 1 << 10;

/// Upper bound on all kept cursors, in bytes of keys.
const BYTES: usize = 16 << 20;

/// The places of scans.
#[derive(Debug, Default)]
pub struct Cursors(Mutex<Places>);

#[derive(Debug)]
struct Places {
    last: u64,
    /// By their numbers; the oldest has the lowest.
    open: BTreeMap<u64, Vec<u8>>,
    /// In the order in which they were spent.
    spent: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            last: RandomState::new().hash_one(()) >> 12,
            open: BTreeMap::new(),
            spent: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl Cursors {
    /// Returns the key behind which a cursor continues.
    pub fn resume_after(&self, cursor: u64) -> Option<Vec<u8>> {
        let places = self.lock();
        let spent = || places.spent.iter().find(|(number, _)| *number == cursor);
        let place = places.open.get(&cursor);
        place.or_else(|| spent().map(|(_, key)| key)).cloned()
    }

    /// Records a page of a scan, which was continued `from` a cursor, or begun if that is 0. The next page begins
    /// behind `key`; without one the scan has ended. Returns the next cursor, or 0 at the end.
    pub fn advance(&self, from: u64, key: Option<Vec<u8>>) -> u64 {
        let mut places = self.lock();
        if let Some(place) = places.open.remove(&from) {
            places.spent.push_back((from, place));
        }
        let next = key.map_or(0, |key| places.give(key));
        places.trim();
        next
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        // After a panic the places are still valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn give(&mut self, key: Vec<u8>) -> u64 {
        self.last += 1;
        self.bytes += key.len();
        self.open.insert(self.last, key);
        self.last
    }

    fn trim(&mut self) {
        while self.spent.len() > SPENT || self.bytes > BYTES {
            let Some((_, key)) = self.spent.pop_front() else {
                break;
            };
            self.bytes -= key.len();
        }
        while self.open.len() > OPEN || self.bytes > BYTES {
            let Some((_, key)) = self.open.pop_first() else {
                break;
            };
            self.bytes -= key.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Vec<u8> {
        number.to_string().into_bytes()
    }

    /// A scan keeps its place however many pages other scans have, and its last cursors for a client that asks again.
    #[test]
    fn scans_count_and_not_pages() {
        let cursors = Cursors::default();
        let waiting = cursors.advance(0, Some(key(7)));
        let mut pages = vec![cursors.advance(0, Some(key(0)))];
        for i in 1..=2 * OPEN {
            let next = cursors.advance(pages[i - 1], Some(key(i)));
            assert!(next > pages[i - 1] && next < 1 << 53);
            pages.push(next);
        }
        assert_eq!(cursors.resume_after(waiting), Some(key(7)));
        let kept = |i: usize| cursors.resume_after(pages[i]) == Some(key(i));
        assert!((0..=2 * OPEN).all(|i| kept(i) == (i + SPENT >= 2 * OPEN)));
        assert_eq!(cursors.advance(pages[2 * OPEN], None), 0);
        assert!(kept(2 * OPEN), "a client that lost the last answer may ask again");
    }

    /// Drops the oldest of the scans that their clients have not continued.
    #[test]
    fn the_last_scans_are_kept() {
        let cursors = Cursors::default();
        let begun: Vec<_> = (0..OPEN + 2).map(|i| cursors.advance(0, Some(key(i)))).collect();
        let kept = begun
            .iter()
            .filter(|cursor| cursors.resume_after(**cursor).is_some());
        assert_eq!(kept.count(), OPEN);
        assert_eq!(cursors.resume_after(begun[1]), None);
        assert_eq!(cursors.resume_after(begun[2]), Some(key(2)));
    }

    /// Keys are bounded in bytes, and spent cursors are dropped first.
    #[test]
    fn bytes_are_bounded() {
        const LONG: usize = 1 << 16;
        let cursors = Cursors::default();
        let first = cursors.advance(0, Some(vec![b'a'; LONG]));
        let second = cursors.advance(0, Some(vec![b'b'; LONG]));
        let third = cursors.advance(second, Some(vec![b'c'; LONG]));
        let fill = |count| {
            for _ in 0..count {
                cursors.advance(0, Some(vec![b'd'; LONG]));
            }
        };
        let kept = || [first, second, third].map(|cursor| cursors.resume_after(cursor).is_some());
        fill(BYTES / LONG - 3);
        assert_eq!(kept(), [true; 3]);
        fill(1);
        assert_eq!(kept(), [true, false, true]);
        fill(1);
        assert_eq!(kept(), [false, false, true]);
        assert_eq!(cursors.lock().bytes, BYTES);
    }
}
