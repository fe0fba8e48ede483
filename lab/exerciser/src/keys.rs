//! The keys that threads use.
//!
//! Each thread owns its keys: the last byte's low three bits name the owner. Keys of different threads are neighbours
//! in the index, so threads share nodes and leaf arrays, and yet each thread knows the values of its own keys.

use crate::random::Random;

/// Maximum number of threads: an owner has three bits.
pub(crate) const MAX_THREADS: usize = 8;

/// The form of a map's keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Eight bytes, close together.
    Dense,
    /// Eight random bytes.
    Scattered,
    /// Text of 13 to 91 bytes with long common prefixes.
    Paths,
    /// Each key is a prefix of the next.
    Chain,
    /// All of these.
    Mixed,
}

impl Shape {
    pub const ALL: [Shape; 5] = [
        Shape::Dense,
        Shape::Scattered,
        Shape::Paths,
        Shape::Chain,
        Shape::Mixed,
    ];

    /// Returns about `count` keys of a thread, in order; chains have at most 100.
    pub fn keys(self, thread: usize, count: usize, random: &mut Random) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = match self {
            Shape::Dense => (0..count).map(|n| dense(n, thread)).collect(),
            Shape::Scattered => (0..count).map(|_| scattered(thread, random)).collect(),
            Shape::Paths => (0..count).map(|n| path(n, thread, random)).collect(),
            Shape::Chain => (0..count.min(100)).map(|n| chain(n, thread)).collect(),
            Shape::Mixed => {
                let kinds = [Shape::Dense, Shape::Scattered, Shape::Paths, Shape::Chain];
                kinds
                    .iter()
                    .flat_map(|kind| kind.keys(thread, count / 4 + 1, random))
                    .collect()
            }
        };
        keys.sort();
        keys.dedup();
        keys
    }
}

/// Returns the thread that owns a key.
pub(crate) fn owner(key: &[u8]) -> Option<usize> {
    key.last().map(|last| usize::from(last & 7))
}

fn dense(n: usize, thread: usize) -> Vec<u8> {
    ((n as u64) << 3 | thread as u64).to_be_bytes().to_vec()
}

fn scattered(thread: usize, random: &mut Random) -> Vec<u8> {
    (random.next() & !7 | thread as u64).to_be_bytes().to_vec()
}

fn path(n: usize, thread: usize, random: &mut Random) -> Vec<u8> {
    let mut key = format!("/srv/{}/", ["data", "users", "users/archive", "u"][n % 4]).into_bytes();
    key.extend(format!("{:05}", n / 4).bytes());
    for _ in 0..random.below(3) {
        key.extend(b"/a directory that many keys share");
    }
    key.push(0x20 | thread as u8);
    key
}

fn chain(n: usize, thread: usize) -> Vec<u8> {
    vec![0x40 | thread as u8; n + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys name their owner and ascend, and no two threads share one.
    #[test]
    fn keys_name_their_owner() {
        for shape in Shape::ALL {
            let mut all = Vec::new();
            for thread in 0..MAX_THREADS {
                let keys = shape.keys(thread, 500, &mut Random::new(1, thread as u64));
                assert!(keys.is_sorted_by(|a, b| a < b));
                assert!(keys.iter().all(|key| owner(key) == Some(thread)));
                all.extend(keys);
            }
            let count = all.len();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), count, "{shape:?}");
        }
    }
}
