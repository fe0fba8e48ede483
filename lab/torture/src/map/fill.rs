//! The thorough judge: it validates the index, fills it until every node has split or grown, and empties it.
//!
//! Sorted keys show where any radix tree has its nodes: where neighbours diverge, and where keys end. The judge adds
//! enough bytes at each such place to bring a node there to the next kind, or a leaf array above its capacity. A few
//! further rounds fill objects that, according to the heap, have not changed yet.

use super::judge::{difference, scan};
use super::{Bytes, LiveIndex, Map, OfIndex};
use crashkit::Random;
use crashkit::coverage::Shape;
use crashkit::on_heap::{audit, shape};
use index::Direction;
use std::collections::BTreeSet;
use std::ops::Bound;

/// The maximum number of rounds of filling.
const ROUNDS: usize = 4;

/// The maximum number of keys that filling adds.
const MAX_KEYS: usize = 2500;

/// The maximum number of children of each kind of node that can still grow.
const BRINKS: [usize; 3] = [4, 16, 48];

impl OfIndex {
    /// Validates the index, inserts until every node has split or grown, and removes all keys.
    pub(super) fn fill_and_empty(
        &self,
        live: &LiveIndex,
        mut map: Map,
        random: &mut Random,
    ) -> Result<(), String> {
        self.validate(live, &map, "after recovery")?;
        self.fill(live, &mut map, random)?;
        self.validate(live, &map, "when filled after recovery")?;
        let mut keys: Vec<Bytes> = map.keys().cloned().collect();
        while !keys.is_empty() {
            let key = keys.swap_remove(random.below(keys.len() as u64) as usize);
            let removed = live.index.remove(&key);
            if !removed.map_err(|error| format!("emptying failed: {error}"))? {
                return Err(format!(
                    "when emptied after recovery, {} is missing",
                    super::shown(&key)
                ));
            }
            map.remove(&key);
        }
        self.validate(live, &map, "when emptied after recovery")?;
        // The pool has room again.
        live.heap.wait_for_room();
        let put = live.index.upsert(b"one more", &[1; 8]);
        put.map_err(|error| format!("when emptied after recovery, an insert failed: {error}"))
    }

    /// Inserts, within bounds, until every object that can change has been replaced or is gone. Returns the names of
    /// those that have not.
    fn fill(&self, live: &LiveIndex, map: &mut Map, random: &mut Random) -> Result<Vec<String>, String> {
        // The guard prevents the reuse of retired chunks, so an offset identifies an object.
        let _guard = self.name_object.map(|_| heap::pin());
        let before = self.objects(live)?;
        let (places, max) = (places(map), map.len() + MAX_KEYS);
        // Keys that diverge within the first bytes, so that the upper nodes get new children too.
        for byte in 0..=255 {
            let key: Bytes = match map.keys().nth(random.below(map.len() as u64) as usize) {
                Some(key) => key.clone(),
                None => [].into(),
            };
            let mut other = key[..random.below(3).min(key.len() as u64) as usize].to_vec();
            other.push(byte);
            put(live, &other, map, random)?;
        }
        let mut same = Vec::new();
        for _ in 0..ROUNDS {
            'round: for place in &places {
                let bytes = bytes_after(place, map);
                let Some(brink) = BRINKS.iter().find(|&&brink| bytes.len() <= brink) else {
                    continue;
                };
                let first = random.below(256) as u8;
                let free = (0..=255_u8).map(|i| first.wrapping_add(i));
                let free = free.filter(|byte| !bytes.contains(byte));
                for byte in free.take(brink + 1 - bytes.len()) {
                    if map.len() >= max {
                        break 'round;
                    }
                    let mut key = place.to_vec();
                    key.push(byte);
                    put(live, &key, map, random)?;
                }
            }
            same = unchanged(&before, &self.objects(live)?);
            if same.is_empty() || map.len() >= max {
                break;
            }
        }
        Ok(same)
    }

    fn objects(&self, live: &LiveIndex) -> Result<Shape, String> {
        let Some(name_object) = self.name_object else {
            return Ok(Shape::default());
        };
        shape(&live.heap, &self.tracers, name_object).map_err(|error| error.to_string())
    }

    fn validate(&self, live: &LiveIndex, map: &Map, when: &str) -> Result<(), String> {
        let faults = live
            .index
            .check()
            .map_err(|error| format!("{when}, the check failed: {error}"))?;
        if let Some(fault) = faults.found.first() {
            return Err(format!(
                "{when}, the check found {} faults: {fault}",
                faults.found.len()
            ));
        }
        let guard = heap::pin();
        let found = scan(&*live.index, Direction::Forward, &guard, map.len())?;
        let same = found.len() == map.len()
            && found
                .iter()
                .zip(map)
                .all(|((key, value), (other, expected))| **key == **other && value[..] == expected[..]);
        if !same {
            return Err(format!("{when}: {}", difference(&found, &[map])));
        }
        drop(found);
        drop(guard);
        audit(&live.heap, &self.tracers).map_err(|wrong| format!("{when}, {wrong}"))
    }
}

/// Upserts a random value of the key, and notes it in `map` unless the pool is full.
fn put(live: &LiveIndex, key: &[u8], map: &mut Map, random: &mut Random) -> Result<(), String> {
    let value = random.next().to_le_bytes();
    let value = &value[..8 - random.below(2) as usize];
    let done = live.unless_full(live.index.upsert(key, value));
    if done
        .map_err(|error| format!("filling failed: {error}"))?
        .is_some()
    {
        map.insert(key.into(), value.into());
    }
    Ok(())
}

/// Returns the prefixes at which neighbouring keys diverge, and the keys themselves.
fn places(map: &Map) -> BTreeSet<Bytes> {
    let pairs = map.keys().zip(map.keys().skip(1));
    let shared = |(key, next): (&Bytes, &Bytes)| {
        let shared = key.iter().zip(&**next).take_while(|(a, b)| a == b).count();
        key[..shared].into()
    };
    pairs.map(shared).chain(map.keys().cloned()).collect()
}

/// Returns the bytes that follow this prefix in the keys.
fn bytes_after(place: &[u8], map: &Map) -> BTreeSet<u8> {
    let from = map.range::<[u8], _>((Bound::Included(place), Bound::Unbounded));
    let below = from.map(|(key, _)| key).take_while(|key| key.starts_with(place));
    below.filter_map(|key| key.get(place.len()).copied()).collect()
}

/// Returns the names of unchanged objects, except for nodes of the largest kind.
fn unchanged(before: &Shape, after: &Shape) -> Vec<String> {
    let objects = before.objects.iter();
    let same = objects.filter(|(at, (name, _))| {
        name != "N256" && after.objects.get(*at).is_some_and(|(other, _)| other == name)
    });
    same.map(|(_, (name, _))| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{SCENES, of_map};
    use crashkit::{Crash, Subject};
    use index::Index;
    use pmem::{Memory, PoolOptions};
    use wollemi::indexes::{IndexKind, WithIndex};

    struct Boxed;

    impl WithIndex for Boxed {
        type Out = Box<dyn Index>;
        fn with<I: Index + 'static>(self, index: I) -> Self::Out {
            Box::new(index)
        }
    }

    /// After any history, filling changes every node and leaf array. (WORT is left out: its nodes are all of one kind.)
    #[test]
    fn everything_splits_or_grows() {
        for kind in [
            IndexKind::Roart,
            IndexKind::RoartWithoutInline,
            IndexKind::Part,
            IndexKind::Woart,
            IndexKind::ArtCow,
        ] {
            let subject = OfIndex::new(
                kind.name(),
                move |heap| kind.create(heap, b"test", Boxed),
                move |heap| kind.open(heap, b"test", Boxed),
                IndexKind::tracers(),
            );
            let subject = subject.named_by(IndexKind::name_object);
            for seed in 0..SCENES as u64 {
                let media = Crash::new(Memory::new(64 << 20).expect("memory"));
                let options = PoolOptions {
                    page_size: 64 << 10,
                    ..PoolOptions::default()
                };
                let pool = pmem::Pool::create_in(media.memory(), &options, media.clone()).expect("a pool");
                let live = subject.create(pool).expect("an index");
                let mut map = Map::new();
                for op in of_map(seed, 30, 1).ops {
                    subject.apply(&live, &op).expect("room");
                    subject.specify(&mut map, &op);
                }
                let same = subject.fill(&live, &mut map, &mut Random(seed)).expect("room");
                assert!(
                    same.is_empty(),
                    "{kind}, seed {seed}, {} keys: {same:?}",
                    map.len()
                );
            }
        }
    }
}
