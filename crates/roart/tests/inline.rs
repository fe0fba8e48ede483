//! Inline leaf arrays: their costs, their conversions, and their state after a crash.

use art::{Kind, Tagged};
use heap::Heap;
use index::Index;
use index::conformance::{Entries, IndexInFile, Random, settled};
use pmem::{Counting, Hardware, Link, Media, Pool, PoolOptions};
use std::ops::{Bound, ControlFlow};
use wollemi_roart::{Full, Roart, Streaming, Variant, tracer};

const VALUE: &[u8; 8] = b"8 bytes!";

/// Write-backs, non-temporal stores and fences.
type Cost = (u64, u64, u64);

type InFile = Roart<Hardware, Full>;

struct Rig<V: Variant> {
    media: Counting,
    index: Roart<Counting, V>,
}

impl<V: Variant> Rig<V> {
    fn new() -> Self {
        let media = Counting::new(Hardware::detect());
        let options = PoolOptions {
            max_size: 1 << 30,
            ..PoolOptions::default()
        };
        let heap = Heap::new(Pool::anonymous(&options, media.clone()).expect("memory")).expect("a heap");
        let index = Roart::create(&heap, b"test").expect("room");
        Rig { media, index }
    }

    fn cost(&self, operation: impl FnOnce(&Roart<Counting, V>) -> Result<bool, index::Error>) -> Cost {
        let before = self.media.counts();
        assert!(operation(&self.index).expect("no error"), "nothing was changed");
        let counts = self.media.counts() - before;
        (counts.node.write_backs, counts.non_temporal, counts.node.fences)
    }

    fn insert(&self, key: &[u8]) -> Cost {
        self.cost(|index| index.insert(key, VALUE))
    }
}

/// A pair with room costs one line and one fence; the first two of an array, and an array that grows, cost its lines,
/// the slot's, and two fences.
#[test]
fn pairs_cost_a_line_and_a_fence() {
    let rig = Rig::<Full>::new();
    assert_eq!(rig.insert(b"ka"), (2, 0, 2), "a leaf");
    assert_eq!(rig.insert(b"kb"), (2, 0, 2), "an array of a line");
    assert_eq!(rig.insert(b"kc"), (1, 0, 1));
    assert_eq!(rig.insert(b"kd"), (3, 0, 2), "two lines");
    assert_eq!(rig.insert(b"ke"), (1, 0, 1));
    let (lines, _, fences) = rig.cost(|index| index.update(b"ka", b"otherwise"));
    assert!(
        lines <= 5 + 1 + 1 && fences == 2,
        "five leaves, a leaf array, the slot"
    );
    let rig = Rig::<Full>::new();
    for key in [b"ka", b"kb", b"kc", b"kd"] {
        rig.insert(key);
    }
    assert_eq!(rig.cost(|index| index.update(b"ka", b"another!")), (1, 0, 1));
    let swap = |index: &Roart<Counting, Full>| index.compare_and_swap(b"ka", Some(b"another!"), Some(VALUE));
    assert_eq!(rig.cost(swap), (1, 0, 1));
    assert_eq!(rig.cost(|index| index.remove(b"ka")), (1, 0, 1));
    assert_eq!(rig.insert(b"ka"), (1, 0, 1), "into the entry of its own");
    for key in [b"ka", b"kb", b"kc"] {
        assert_eq!(rig.cost(|index| index.remove(key)), (1, 0, 1));
    }
    assert_eq!(rig.cost(|index| index.remove(b"kd")), (1, 0, 1), "the slot");
    let before = rig.media.counts();
    let guard = heap::pin();
    assert_eq!(rig.index.get(b"kd", &guard).unwrap(), None);
    assert!(!rig.index.remove(b"kd").unwrap());
    assert_eq!(rig.media.counts(), before);
}

/// Without marks nothing may be visible before it is durable: the value is stored first, then the key.
#[test]
fn without_marks_the_value_has_a_fence_of_its_own() {
    let rig = Rig::<Streaming>::new();
    rig.insert(b"ka");
    assert_eq!(rig.insert(b"kb"), (1, 1, 2));
    assert_eq!(rig.insert(b"kc"), (0, 2, 2));
    assert_eq!(rig.cost(|index| index.update(b"ka", b"another!")), (0, 1, 1));
    assert_eq!(rig.cost(|index| index.remove(b"ka")), (0, 1, 1));
}

/// Random keys: nearly every insert costs one line and one fence, and a key takes far less space than a line.
#[test]
fn random_keys_are_cheap_and_small() {
    for text in [false, true] {
        let rig = Rig::<Full>::new();
        let mut random = Random::new(7);
        let before = (rig.media.counts(), settled(rig.index.heap()).used);
        let mut keys = 0;
        for _ in 0..100_000 {
            // Below four slots of the root, as if there were many more keys.
            let mut key = (random.number()).to_be_bytes();
            if text {
                key = key.map(|byte| b'!' + byte % 94);
            }
            key[0] = key[0] % 4 + 64;
            let (_, _, fences) = rig.insert(&key);
            assert!(fences <= 2, "however the array is replaced");
            keys += 1;
        }
        let counts = rig.media.counts() - before.0;
        let used = settled(rig.index.heap()).used - before.1;
        assert!(counts.node.fences < keys * 13 / 10, "{counts:?} for {keys} keys");
        assert!(used < keys * 48, "{used} bytes for {keys} keys");
    }
}

/// Ascending keys, which are inserted at one end of an array, stay pairs: not many more fences, and no leaves.
#[test]
fn ascending_keys_are_cheap_and_small() {
    for bytes in [4, 8] {
        let rig = Rig::<Full>::new();
        let before = (rig.media.counts(), settled(rig.index.heap()).used);
        let keys = 20_000u64;
        for i in 0..keys {
            rig.insert(&i.to_be_bytes()[8 - bytes..]);
        }
        let counts = rig.media.counts() - before.0;
        let used = settled(rig.index.heap()).used - before.1;
        assert!(counts.node.fences < keys * 12 / 10, "{counts:?} for {keys} keys");
        assert!(used < keys * 48, "{used} bytes for {keys} keys");
    }
}

fn keys_of(shape: &str, random: &mut Random) -> Vec<u8> {
    let number = random.number();
    let bytes = number.to_be_bytes();
    match shape {
        "random" => bytes.to_vec(),
        "dense" => (number % 3000).to_be_bytes().to_vec(),
        "sparse" => (number % 3000 * 0x1_0001_0001).to_be_bytes().to_vec(),
        "digits" => format!("{:07}", number % 4000).into_bytes(),
        "prefixes" => vec![b'p' + bytes[0] % 2; bytes[1] as usize % 10 + 1],
        "words" => bytes[..random.below(8) + 1]
            .iter()
            .map(|byte| b'a' + byte % 3)
            .collect(),
        _ => {
            // Some longer than a pair's maximum.
            let len = *random.pick(&[3, 7, 8, 8, 8, 9, 12]);
            [&[b'm'][..], &bytes, &bytes].concat()[..len].to_vec()
        }
    }
}

/// For keys of every shape: inserts, updates, removes and re-inserts, with values of eight bytes and sometimes
/// others, down to nothing again, with restarts.
#[test]
fn all_shapes_of_keys_agree_with_the_model() {
    let mut random = Random::new(11);
    for shape in [
        "random", "dense", "sparse", "digits", "prefixes", "words", "mixed",
    ] {
        for odd in [0, 40, 4] {
            let mut store = IndexInFile::<InFile>::create();
            let mut model = Entries::new();
            for turn in 0..6000 {
                let key = keys_of(shape, &mut random);
                let len = if odd > 0 && random.below(odd) == 0 {
                    random.below(20)
                } else {
                    8
                };
                // First mostly inserts, then mostly removes.
                if random.below(6000) > turn {
                    store.put(&mut model, &key, &random.bytes(len));
                } else {
                    let key = model
                        .range(key.clone()..)
                        .next()
                        .map_or(key, |(key, _)| key.clone());
                    store.remove(&mut model, &key);
                }
                if turn % 2000 == 1999 {
                    store.compare(&model);
                    store = if turn == 1999 {
                        store.crashed()
                    } else {
                        store.reopen()
                    };
                    store.compare(&model);
                }
            }
            for key in model.clone().keys() {
                store.remove(&mut model, key);
            }
            store.compare(&model);
        }
    }
}

/// Scans between any bounds, including those too long for a pair, in both directions, return the model's entries.
#[test]
fn scans_keep_to_their_bounds() {
    let mut random = Random::new(13);
    for shape in ["random", "digits", "prefixes", "words", "mixed"] {
        let store = IndexInFile::<InFile>::create();
        let mut model = Entries::new();
        for _ in 0..1500 {
            let mut key = keys_of(shape, &mut random);
            if shape == "random" {
                key[0] = 1 + key[0] % 2;
            }
            store.put(&mut model, &key, VALUE);
        }
        let guard = heap::pin();
        for _ in 0..400 {
            let bound = |random: &mut Random| {
                let mut key = keys_of(shape, random);
                if random.below(3) == 0 {
                    key.extend(random.bytes(1));
                }
                key.truncate(1 + random.below(12));
                match random.below(5) {
                    0 => Bound::Unbounded,
                    1 | 2 => Bound::Included(key),
                    _ => Bound::Excluded(key),
                }
            };
            let (lower, upper) = (bound(&mut random), bound(&mut random));
            let (low, high) = (
                lower.as_ref().map(Vec::as_slice),
                upper.as_ref().map(Vec::as_slice),
            );
            let inside = |key: &&Vec<u8>| {
                use std::ops::RangeBounds;
                (low, high).contains(&key[..])
            };
            let expected: Vec<&Vec<u8>> = model.keys().filter(inside).collect();
            let range = || {
                store
                    .index()
                    .range(low, high, &guard)
                    .map(|entry| entry.unwrap().0)
            };
            assert!(range().eq(expected.iter().copied()), "{lower:?} {upper:?}");
            assert!(
                range().rev().eq(expected.iter().rev().copied()),
                "{lower:?} {upper:?}"
            );
        }
    }
}

/// Keys that are not text go into an array of text, and bounds that are not text work on one.
#[test]
fn text_and_what_is_none_share_an_array() {
    let mut random = Random::new(7);
    let mut model = Entries::new();
    let store = IndexInFile::<InFile>::create();
    while model.len() < 300 {
        let key: Vec<u8> = (0..7).map(|_| 32 + random.below(96) as u8).collect();
        store.put(&mut model, &[b"k", &key[..]].concat(), VALUE);
    }
    let odd: Vec<Vec<u8>> = [0, 10, 31, 32, 127, 128, 195, 240, 255]
        .iter()
        .flat_map(|&a| [0, 31, 32, 100, 127, 128, 169, 200, 255].map(|b| vec![b'k', a, b]))
        .chain([vec![b'k', 240], vec![b'k', 10]])
        .collect();
    for with_them in [false, true] {
        if with_them {
            for key in &odd {
                store.put(&mut model, key, VALUE);
            }
        }
        store.compare(&model);
        for key in &odd {
            let guard = heap::pin();
            let below: Vec<_> = model
                .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&key[..])))
                .collect();
            let from: Vec<_> = model
                .range::<[u8], _>((Bound::Included(&key[..]), Bound::Unbounded))
                .collect();
            let keys = |lower, upper| {
                store
                    .index()
                    .range(lower, upper, &guard)
                    .map(|entry| entry.expect("no error").0)
            };
            let included = Bound::Included(&key[..]);
            assert!(
                keys(included, Bound::Unbounded).eq(from.iter().map(|(key, _)| &key[..])),
                "from {key:x?}"
            );
            let excluded = Bound::Excluded(&key[..]);
            assert!(
                keys(Bound::Unbounded, excluded)
                    .rev()
                    .eq(below.iter().rev().map(|(key, _)| &key[..])),
                "down from {key:x?}"
            );
        }
    }
}

/// Keys that come and go take no room for long: entries of removed keys are dropped when the array is next replaced.
#[test]
fn removed_keys_give_their_room_back() {
    let store = IndexInFile::<InFile>::create();
    let mut random = Random::new(17);
    let mut keys: Vec<[u8; 8]> = Vec::new();
    let mut max = 0;
    for turn in 0..60_000 {
        if keys.len() == 150 {
            let key = keys.swap_remove(random.below(150));
            assert!(store.index().remove(&key).unwrap());
        }
        let mut key = random.number().to_be_bytes();
        key[..2].copy_from_slice(b"ab");
        if store.index().insert(&key, VALUE).unwrap() {
            keys.push(key);
        }
        if turn % 1000 == 999 {
            max = max.max(settled(store.index().heap()).used);
        }
    }
    assert!(max < 1 << 20, "{max} bytes for 150 keys");
    assert_eq!(store.index().check().unwrap().found, [""; 0]);
}

/// The places of an index's inline leaf arrays in its file, with their lengths.
fn arrays<M: Media>(heap: &Heap<M>) -> Vec<(u64, u64)> {
    let mut stack = vec![heap.root(b"test").expect("no error").expect("the root").link];
    let mut found = Vec::new();
    // SAFETY: no thread writes.
    let heap = unsafe { heap.access() };
    while let Some(link) = stack.pop() {
        let mut children: Vec<Link> = Vec::new();
        let len = tracer().trace(heap, link, &mut children).expect("sound");
        if link.kind() == Kind::Inline {
            found.push((link.offset().expect("not null").get(), len));
        }
        stack.append(&mut children);
    }
    found
}

/// Changes the key words in the index's file by `change`, which receives each one's number, and opens the result.
fn with_words(
    store: IndexInFile<InFile>,
    media: Counting,
    change: impl Fn(usize, u64) -> u64,
) -> IndexInFile<Roart<Counting>> {
    let arrays = arrays(store.index().heap());
    let folder = store.close();
    let path = folder.path().join("pool");
    let mut bytes = std::fs::read(&path).expect("read");
    for (at, len) in arrays {
        for (i, at) in (at + 16..at + len).step_by(16).enumerate() {
            let word = &mut bytes[at as usize..][..8];
            let old = u64::from_le_bytes((&*word).try_into().expect("eight bytes"));
            word.copy_from_slice(&change(i, old).to_le_bytes());
        }
    }
    std::fs::write(&path, bytes).expect("written");
    IndexInFile::open_in(folder, media)
}

/// A mark left by a crash: every reader persists the line until the first write, in whatever generation.
#[test]
fn marks_of_a_crash_are_heeded_until_they_are_settled() {
    let store = IndexInFile::<InFile>::create();
    let mut model = Entries::new();
    for i in 0..20u8 {
        store.put(&mut model, &[b'k', i * 12], VALUE);
    }
    store.remove(&mut model, &[b'k', 12]);
    let media = Counting::new(Hardware::detect());
    let mut store = with_words(
        store,
        media.clone(),
        |_, word| if word == 0 { 0 } else { word | 1 },
    );
    for _ in 0..2 {
        let guard = heap::pin();
        for (key, present) in [([b'k', 0], true), ([b'k', 12], false), ([b'k', 36], true)] {
            let before = media.counts();
            let found = store.index().get(&key, &guard).unwrap();
            assert_eq!(found.is_some(), present);
            let cost = media.counts() - before;
            assert_eq!((cost.node.write_backs, cost.node.fences), (1, 1));
        }
        drop(guard);
        store = IndexInFile::open_in(store.close(), media.clone());
    }
    store.compare(&model);
    // The first holder of the lock settles them all.
    store.put(&mut model, &[b'k', 0], b"another!");
    let before = media.counts();
    store.compare(&model);
    assert_eq!(media.counts(), before);
}

/// The check finds each fault of an array, and no operation that meets it hangs or panics.
#[test]
fn wrong_entries_are_found() {
    let faults = |change: &dyn Fn(usize, u64) -> u64| {
        let store = IndexInFile::<InFile>::create();
        for i in 0..100u64 {
            let key = [b"kk", &i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[..6]].concat();
            assert!(store.index().insert(&key, VALUE).unwrap());
        }
        let store = with_words(store, Counting::new(Hardware::detect()), change);
        let found = store.index().check().unwrap().found;
        let guard = heap::pin();
        let all = &mut |_: &[u8], _: index::Value<'_>| ControlFlow::Continue(());
        for direction in [index::Direction::Forward, index::Direction::Reverse] {
            let _ = store
                .index()
                .scan(Bound::Unbounded, Bound::Unbounded, direction, &guard, all);
        }
        drop(guard);
        for i in 0..50u8 {
            let _ = store.index().insert(&[b'k', b'k', i * 5, 1], VALUE);
        }
        found
    };
    assert_eq!(faults(&|_, word| word), [""; 0]);
    let all = |what: &str, change: &dyn Fn(usize, u64) -> u64| {
        let found = faults(change);
        assert!(
            found.iter().any(|fault| fault.contains(what)),
            "{what}: {found:?}"
        );
    };
    all("unused bits set", &|_, word| word | 1 << 4);
    let flipped = std::cell::Cell::new(false);
    all("parity", &|_, word| {
        if word != 0 && !flipped.replace(true) {
            word ^ 1 << 9
        } else {
            word
        }
    });
    all("without keys", &|_, word| {
        if word & 4 == 0 { word } else { word ^ 12 }
    });
    // A key word in an entry too far from home.
    let first = std::cell::Cell::new(0);
    all("outside the lines where readers look", &|i, word| {
        if first.get() == 0 {
            first.set(word);
        }
        if i == 100 { first.get() } else { word }
    });
}
