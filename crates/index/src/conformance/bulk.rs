//! Building from sorted pairs.

use super::keys::{self, Family};
use super::store::{Entries, IndexInFile, ROOT, options};
use super::{Random, settled};
use crate::{Bulk, Error, Index, Pair, Pairs, Parts, Sorted};
use heap::Heap;
use pmem::{Hardware, Pool, PoolOptions};
use std::ops::Bound;

const FAMILIES: [Family; 11] = [
    keys::random_bytes,
    keys::every_byte,
    keys::extreme_bytes,
    keys::chain,
    keys::long,
    keys::paths,
    keys::dense,
    keys::numbers,
    keys::few_bytes,
    keys::fans,
    keys::mixed,
];

/// A family, and the number of keys of it that make a test of some milliseconds.
fn family(seed: u64, max: usize) -> (Family, usize) {
    let family = FAMILIES[seed as usize % FAMILIES.len()];
    match std::ptr::fn_addr_eq(family, keys::long as Family) {
        true => (family, max.min(40)),
        false => (family, max),
    }
}

/// The keys of a family, with values of eight bytes, of other lengths, or of both.
fn entries(random: &mut Random, family: Family, count: usize, round: usize) -> Entries {
    let keys = family(random, count).into_iter();
    let entries = keys.map(|key| {
        let words = match round % 3 {
            0 => true,
            1 => false,
            _ => random.one_in(2),
        };
        let len = if words { 8 } else { random.below(40) };
        let len = if !words && random.one_in(50) { 1500 } else { len };
        (key, random.bytes(len))
    });
    entries.collect()
}

/// A source that must not be asked again after its end.
struct AskedOnce<P> {
    pairs: P,
    is_over: bool,
}

impl<P: Pairs> Pairs for AskedOnce<P> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        assert!(!self.is_over, "a source is asked again after its end");
        let next = self.pairs.next()?;
        self.is_over = next.is_none();
        Ok(next)
    }
}

/// Builds an index from some entries, in parts that begin at these keys.
fn build<I: Bulk>(
    heap: &Heap<I::Media>,
    name: &[u8],
    entries: &Entries,
    borders: &[Vec<u8>],
) -> Result<I, Error> {
    let mut borders = borders.to_vec();
    borders.sort();
    borders.dedup();
    let part = |from: Option<usize>| {
        let next = from.map_or(0, |from| from + 1);
        let from = from.map_or(Bound::Unbounded, |from| Bound::Included(&borders[from][..]));
        let until = borders
            .get(next)
            .map_or(Bound::Unbounded, |until| Bound::Excluded(&until[..]));
        AskedOnce {
            pairs: Sorted::new(entries.range::<[u8], _>((from, until))),
            is_over: false,
        }
    };
    let mut first = part(None);
    let mut others: Vec<_> = (0..borders.len()).map(|i| part(Some(i))).collect();
    let parts = borders.iter().zip(&mut others);
    let parts = parts.fold(Parts::new(&mut first), |parts, (from, pairs)| {
        parts.and(from, pairs)
    });
    I::build(heap, name, parts)
}

/// Where parts begin: at keys of the model, at prefixes of them, and at other keys.
fn some_borders(random: &mut Random, entries: &Entries) -> Vec<Vec<u8>> {
    let keys: Vec<_> = entries.keys().collect();
    let count = random.below(5);
    let border = |_| {
        let mut border = random.pick(&keys).to_vec();
        match random.below(3) {
            0 => border.truncate(random.below(border.len() + 1)),
            1 => border.push(random.number() as u8),
            _ => {}
        }
        border.truncate(crate::MAX_KEY);
        border
    };
    (0..count).map(border).collect()
}

/// An index built from sorted pairs, by one thread or several, holds exactly these, is sound, and has no leaks; it
/// stays so when it is reopened, and under ordinary writes.
pub fn an_index_is_built_of_sorted_pairs<I: Bulk<Media = Hardware>>() {
    for seed in 0..44 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (family, count) = family(seed, *random.pick(&[2, 70, 600, 3000]));
        let mut model = entries(&mut random, family, count, seed as usize);
        let borders = match seed / 11 % 2 {
            0 => Vec::new(),
            _ => some_borders(&mut random, &model),
        };
        let make = |heap: &Heap| build::<I>(heap, ROOT, &model, &borders).expect("room");
        let store = IndexInFile::make_on(Hardware::as_persistent(), make);
        store.compare(&model);
        let store = store.crashed();
        store.compare(&model);
        let old: Vec<_> = model.keys().cloned().collect();
        let more = entries(&mut random, family, count / 2 + 8, seed as usize + 1);
        for (key, value) in &more {
            store.put(&mut model, key, value);
            if random.one_in(2) {
                let key: &Vec<u8> = random.pick(&old);
                store.remove(&mut model, key);
            }
        }
        store.compare(&model);
        store.index().settle().expect("room");
        for key in old.into_iter().chain(more.into_keys()) {
            store.remove(&mut model, &key);
        }
        let store = store.reopen();
        store.compare(&model);
        assert!(model.is_empty());
    }
}

/// An index built from no pairs is empty, and accepts writes.
pub fn an_index_is_built_of_nothing<I: Bulk<Media = Hardware>>() {
    for borders in [vec![], vec![b"k".to_vec()]] {
        let store = IndexInFile::make_on(Hardware::as_persistent(), |heap: &Heap| {
            build::<I>(heap, ROOT, &Entries::new(), &borders).expect("room")
        });
        let mut model = Entries::new();
        store.compare(&model);
        store.put(&mut model, b"key", b"value");
        store.compare(&model);
    }
}

/// A source whose `at`-th pair has a fault, or which fails there.
struct Faulty {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    next: usize,
    at: usize,
    fault: fn(&mut Vec<u8>) -> Result<(), Error>,
    key: Vec<u8>,
}

impl Pairs for Faulty {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        let Some((key, value)) = self.pairs.get(self.next) else {
            return Ok(None);
        };
        self.key.clone_from(key);
        if self.next == self.at {
            (self.fault)(&mut self.key)?;
        }
        self.next += 1;
        Ok(Some((&self.key, value)))
    }
}

/// A build that fails, for its keys or its source, or because the name is taken, leaves nothing behind.
pub fn a_build_that_fails_leaves_nothing_behind<I: Bulk<Media = Hardware>>() {
    let heap = Heap::new(Pool::anonymous(&options(), Hardware::detect()).expect("memory")).expect("a heap");
    drop(I::create(&heap, b"taken").expect("room"));
    type Fault = fn(&mut Vec<u8>) -> Result<(), Error>;
    let faults: [Fault; 3] = [
        |key| {
            key.clear();
            Ok(())
        },
        |key| {
            key.resize(crate::MAX_KEY + 1, 7);
            Ok(())
        },
        |_| Err(Error::Stopped),
    ];
    for seed in 0..33 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (family, count) = family(seed, 900);
        let model = entries(&mut random, family, count, seed as usize);
        let before = settled(&heap).objects;
        let fault = seed as usize / 11;
        if fault == 0 && !I::ORDER.is_by_keys() {
            continue;
        }
        let mut source = Faulty {
            at: 1 + random.below(model.len() - 1),
            pairs: model.clone().into_iter().collect(),
            next: 0,
            fault: faults[fault],
            key: Vec::new(),
        };
        let failed = I::build(&heap, ROOT, Parts::new(&mut source)).map(drop);
        match fault {
            0 => assert!(matches!(failed, Err(Error::OutOfOrder)), "{failed:?}"),
            1 => assert!(matches!(failed, Err(Error::KeyTooLong(_))), "{failed:?}"),
            _ => assert!(matches!(failed, Err(Error::Stopped)), "{failed:?}"),
        }
        assert_eq!(settled(&heap).objects, before, "seed {seed}");
        if I::ORDER.is_by_keys() {
            fail_beside_others::<I>(&heap, &model);
            assert_eq!(settled(&heap).objects, before, "seed {seed}");
        }
        let borders = some_borders(&mut random, &model);
        for borders in [&[][..], &borders] {
            let failed = build::<I>(&heap, b"taken", &model, borders).map(drop);
            let taken = matches!(failed, Err(Error::Heap(heap::Error::RootExists(_))));
            assert!(taken, "{failed:?}");
            assert_eq!(settled(&heap).objects, before, "seed {seed}");
        }
    }
    assert!(heap.root(ROOT).expect("sound").is_none());
}

/// A build fails if a part has a key that belongs to another, whatever state the others have reached.
fn fail_beside_others<I: Bulk<Media = Hardware>>(heap: &Heap, model: &Entries) {
    let mut ends = [b"k".to_vec(), b"".to_vec()].map(|key| Sorted::new(std::iter::once((key, b"value"))));
    let [first, second] = &mut ends;
    let mut all = Sorted::new(model);
    let parts = Parts::new(&mut all).and(b"k", first).and(b"l", second);
    let failed = I::build(heap, ROOT, parts).map(drop);
    assert!(matches!(failed, Err(Error::OutOfOrder)), "{failed:?}");
    // The key at which a part begins must not be the last one of the part before.
    let mut both = [(); 2].map(|()| Sorted::new(std::iter::once((b"k", b"value"))));
    let [first, second] = &mut both;
    let failed = I::build(heap, ROOT, Parts::new(first).and(b"k", second)).map(drop);
    assert!(matches!(failed, Err(Error::OutOfOrder)), "{failed:?}");
}

/// A build for which the pool has no room, at whatever point, leaves nothing behind; if there is room, the index is
/// sound.
pub fn a_build_without_memory_leaves_nothing_behind<I: Bulk<Media = Hardware>>() {
    const PAGE: u64 = 64 << 10;
    for seed in 0..22 {
        let mut random = Random::new(seed);
        let (family, count) = family(seed, 4000);
        let model = entries(&mut random, family, count, 1);
        let borders = match seed / 11 {
            0 => Vec::new(),
            _ => some_borders(&mut random, &model),
        };
        let (mut failures, mut pages) = (0, 2_u64);
        loop {
            let options = PoolOptions {
                page_size: PAGE,
                max_size: pages * PAGE,
                ..PoolOptions::default()
            };
            let heap =
                Heap::new(Pool::anonymous(&options, Hardware::detect()).expect("memory")).expect("a heap");
            let before = settled(&heap).objects;
            match build::<I>(&heap, ROOT, &model, &borders) {
                Ok(index) => {
                    let faults = index.check().expect("sound");
                    assert_eq!(
                        (faults.found.len(), faults.keys),
                        (0, model.len() as u64),
                        "{faults:?}"
                    );
                    break;
                }
                Err(Error::Heap(heap::Error::Full { .. })) => failures += 1,
                Err(error) => panic!("{error}"),
            }
            assert_eq!(settled(&heap).objects, before, "seed {seed}, {pages} pages");
            assert!(heap.root(ROOT).expect("sound").is_none());
            // All of the small sizes, and some of the larger ones.
            pages += 1 + random.below(1 + pages as usize / 6) as u64;
        }
        assert!(failures > 0, "seed {seed}: there was always room");
    }
}
