//! The lines on a lookup's path, and which of them are cold.
//!
//! A line is cold if it is not among the most recently touched lines, as many as the second-level cache holds; outer
//! caches are shared with other work. Lines not accessed through the media (an index's volatile parts, the requested
//! keys) are not counted.

use crate::engine::{Engine, Ours};
use crate::keys::Part;
use crate::{Error, machine};
use pmem::{LINE, Tracing};
use serde::Serialize;
use std::collections::HashSet;

/// The mean numbers of lines of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Distinct lines touched.
    pub lines: f64,
    /// Cold lines among them.
    pub cold: f64,
}

/// The most recently touched lines, to within a factor of two: a young half that becomes the old half when it is full.
#[derive(Debug)]
pub struct Cache {
    half: usize,
    young: HashSet<usize>,
    old: HashSet<usize>,
}

impl Cache {
    /// Creates a cache that holds `bytes`.
    pub fn of(bytes: usize) -> Cache {
        Cache {
            half: (bytes / LINE / 2).max(1),
            young: HashSet::new(),
            old: HashSet::new(),
        }
    }

    /// Creates a cache as large as this machine's second-level cache; 1 MiB if the size is unknown.
    pub fn second_level() -> Cache {
        Cache::of(machine::cache(2).map_or(1 << 20, |bytes| bytes as usize))
    }

    /// Touches a line, and returns whether it was cold.
    pub fn touch(&mut self, line: usize) -> bool {
        if self.young.contains(&line) {
            return false;
        }
        let cold = !self.old.contains(&line);
        if self.young.len() == self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(line);
        cold
    }
}

impl Path {
    /// Looks up the keys: the first half warms the cache, the second half is counted.
    pub fn of(engine: &Ours<'_>, keys: Part<'_>, media: &Tracing, cache: &mut Cache) -> Result<Path, Error> {
        let counted = keys.len().div_ceil(2);
        let (mut lines, mut cold) = (0usize, 0usize);
        for (i, (key, _)) in keys.iter().enumerate() {
            media.begin();
            engine.get(key)?;
            let mut touched = media.take();
            touched.sort_unstable();
            touched.dedup();
            let count_it = i >= keys.len() - counted;
            for line in touched {
                let missed = cache.touch(line);
                lines += usize::from(count_it);
                cold += usize::from(count_it && missed);
            }
        }
        let mean = |sum: usize| sum as f64 / counted.max(1) as f64;
        Ok(Path {
            lines: mean(lines),
            cold: mean(cold),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyKind, Keys};
    use crate::store::Place;
    use pmem::{Hardware, Observed};

    /// Recently touched lines are warm; lines touched long ago are cold again.
    #[test]
    fn caches_forget() {
        let mut cache = Cache::of(8 * LINE);
        assert!((0..4).all(|line| cache.touch(line)));
        assert!((0..4).all(|line| !cache.touch(line)));
        assert!((10..14).all(|line| cache.touch(line)));
        assert!(!cache.touch(0));
        assert!((20..30).all(|line| cache.touch(line)));
        assert!(cache.touch(1));
    }

    /// WORT's lookups read exactly the root, the header's line and the slot's line of each node on the path, and the
    /// leaf. Of 2^15 dense keys, the last one hangs from the topmost node, which stands for the fourth half-byte from
    /// the end, and all others from a node for the last half-byte. On a second lookup nothing is cold in a cache that
    /// holds everything.
    #[test]
    fn lines_are_those_on_the_way() {
        const KEYS: u64 = 1 << 15;
        // A node begins at or in the middle of a line, its children follow after two words, and its last line may hold
        // the beginning of another node. The slots of these half-bytes are certain to lie in the header's line, or in a
        // separate one.
        let (beside_header, elsewhere) = (0..=1, 6..=13);
        let heap = &Place::Anonymous
            .create(Observed::Tracing(Tracing::new(Hardware::detect())))
            .unwrap();
        let Observed::Tracing(tracing) = heap.media() else {
            unreachable!("the heap has the tracing media")
        };
        let index = crate::store::create("wort".parse().unwrap(), heap).unwrap();
        let engine = &Ours(&*index);
        let keys = Keys::generate(KeyKind::Dense, KEYS as usize, 1);
        crate::pass::load(engine, keys.all(), 1).unwrap();

        let (mut chosen, mut lines) = (Vec::new(), 0);
        for (key, number) in keys.all().iter() {
            let word = u64::from_be_bytes(key.try_into().unwrap());
            let nodes = if word == KEYS { 1 } else { 4 };
            let on_the_way: Vec<u64> = (0..nodes).map(|node| word >> (12 - 4 * node) & 15).collect();
            let there = |digit| beside_header.contains(digit) || elsewhere.contains(digit);
            if on_the_way.iter().all(there) {
                let own_lines = on_the_way.iter().filter(|digit| elsewhere.contains(digit));
                let (root, leaf) = (1, 1);
                lines += root + nodes as usize + own_lines.count() + leaf;
                chosen.push(number as u32);
            }
        }
        assert_eq!(chosen.len(), 4 * 10 * 10 * 10);
        let mean = lines as f64 / chosen.len() as f64;
        let twice = keys.chosen(&chosen.repeat(2));
        let path = Path::of(engine, twice.all(), tracing, &mut Cache::of(1 << 30)).unwrap();
        assert_eq!((path.lines, path.cold), (mean, 0.0));
    }
}
