//! Pools whose bytes were changed behind the program's back: whatever they contain, they are refused, or every
//! operation ends, with a result or with an error that says where the damage is.
//!
//! Images are made from a closed pool in memory, by a seed that is printed. `DAMAGE_SEED` replays one, and
//! `DAMAGE_IMAGES` makes more of them.

use heap::Heap;
use index::conformance::{Random, clear, finds_damage, folder};
use index::{Direction, Index};
use pmem::{Hardware, Offset, PWord, Pool, PoolOptions};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use wollemi_dptree::{DpTree, DpTreeOptions, tracer};

/// Bytes of the pool's header, which detects its own damage (`pmem`).
const HEADER: usize = 4096;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text}: not a number")),
    )
}

fn pool_options() -> PoolOptions {
    PoolOptions {
        max_size: 1 << 30,
        page_size: 64 << 10,
        ..PoolOptions::default()
    }
}

fn options() -> DpTreeOptions {
    DpTreeOptions {
        merge_floor: 150,
        leaf_capacity: 64,
        partitions: 2,
        log_page: 512,
        workers: 0,
        merge_partition: 3,
        ..DpTreeOptions::default()
    }
}

/// A closed pool: a base tree of several leaves, log records, pairs in place and separate records.
fn original() -> (Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>) {
    let folder = folder();
    let path = folder.path().join("pool");
    let pool = Pool::create(&path, &pool_options(), Hardware::detect()).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    let index = DpTree::create_with(&heap, b"test", options()).expect("an index");
    let mut model = BTreeMap::new();
    for i in 0..640_u64 {
        let key = match i % 4 {
            0 => format!("a key, and by no means a short one, {i}").into_bytes(),
            _ => i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
        };
        let value = vec![i as u8; if i % 8 == 3 { 40 } else { 8 }];
        index.upsert(&key, &value).expect("room");
        model.insert(key, value);
    }
    assert!(index.stats().leaves > 5 && index.stats().front > 20);
    drop((index, heap));
    (std::fs::read(path).expect("read"), model)
}

/// Opens an image; `None`, with a clear error, if it is refused.
fn open(path: &Path) -> Option<DpTree> {
    let pool = clear(Pool::open(path, &pool_options(), Hardware::detect()))?;
    let heap = clear(Heap::new(pool))?;
    let index = clear(DpTree::open_with(&heap, b"test", options()))??;
    heap.recover(vec![tracer()], 1).expect("a thread");
    Some(index)
}

/// Calls every operation of an index. Results may be anything.
fn exercise(index: &DpTree, keys: &[&[u8]], random: &mut Random) {
    {
        let guard = heap::pin();
        for key in keys {
            clear(index.get(key, &guard));
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            let (one, other) = (*random.pick(keys), *random.pick(keys));
            let bounds = (Bound::Excluded(one.min(other)), Bound::Included(one.max(other)));
            for (low, high) in [(Bound::Unbounded, Bound::Unbounded), bounds] {
                let visit = &mut |_: &[u8], _: index::Value<'_>| ControlFlow::Continue(());
                clear(index.scan(low, high, direction, &guard, visit));
            }
        }
        let all = || index.range(Bound::Unbounded, Bound::Unbounded, &guard);
        all().for_each(|entry| _ = clear(entry));
        all().rev().for_each(|entry| _ = clear(entry));
    }
    for _ in 0..400 {
        let key = *random.pick(keys);
        let new = [&key[..random.below(key.len() + 1)], &random.bytes(1), b"~new"].concat();
        let _ = match random.below(5) {
            0 => clear(index.insert(&new, b"8 bytes.")),
            1 => clear(index.insert(&new, b"a value of some other length")),
            2 => clear(index.upsert(key, b"8 bytes!")).map(|()| true),
            3 => clear(index.upsert(key, b"another")).map(|()| true),
            _ => clear(index.remove(key)),
        };
    }
    clear(index.settle());
}

#[test]
fn damaged_pools_are_survived() {
    let seed = variable("DAMAGE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    eprintln!("DAMAGE_SEED={seed}");
    let mut random = Random::new(seed);
    let images = variable("DAMAGE_IMAGES").unwrap_or(800);
    let (bytes, model) = original();
    let keys: Vec<&[u8]> = model.keys().map(Vec::as_slice).collect();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let words: Vec<usize> = (HEADER..bytes.len())
        .step_by(8)
        .filter(|&at| word(at) != 0)
        .collect();
    // Words that may be links: an offset inside the pool, under some tag.
    let is_link = |&&at: &&usize| {
        let offset = word(at) & 0xffff_ffff_fff0;
        (HEADER as u64..bytes.len() as u64).contains(&offset)
    };
    let links: Vec<usize> = words.iter().filter(is_link).copied().collect();
    let folder = folder();
    let path = folder.path().join("pool");
    let mut opened = 0;
    for _ in 0..images {
        let mut image = bytes.clone();
        for _ in 0..*random.pick(&[1, 1, 1, 2, 5, 20]) {
            let at = match random.below(4) {
                0 => HEADER + random.below(bytes.len() - HEADER) / 8 * 8,
                1 => *random.pick(&links),
                _ => *random.pick(&words),
            };
            let new = match random.below(6) {
                0 => 0,
                1 => random.number(),
                2 => word(*random.pick(&links)),
                3 => word(at).wrapping_add_signed(*random.pick(&[-1, 1, 16, 64, 1 << 48])),
                _ => word(at) ^ 1 << random.below(64),
            };
            image[at..at + 8].copy_from_slice(&new.to_le_bytes());
        }
        std::fs::write(&path, image).expect("written");
        if let Some(index) = open(&path) {
            opened += 1;
            exercise(&index, &keys, &mut random);
            finds_damage(&index);
        }
    }
    assert!(opened > images / 4, "{opened} of {images} images were opened");
}

/// Without damage everything is sound.
#[test]
fn the_original_is_sound() {
    let (bytes, model) = original();
    let folder = folder();
    let path = folder.path().join("pool");
    std::fs::write(&path, bytes).expect("written");
    let index = open(&path).expect("opens");
    assert!(!finds_damage(&index));
    let guard = heap::pin();
    let entries = index.range(Bound::Unbounded, Bound::Unbounded, &guard);
    assert_eq!(entries.count(), model.len());
}

/// A merge that has switched to the new leaves has succeeded: of the records to which nothing leads any more, a
/// damaged one is merely not freed, and the others are.
#[test]
fn a_merge_succeeds_beside_a_damaged_record_that_it_replaces() {
    let pool = Pool::anonymous(&pool_options(), Hardware::detect()).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let index = DpTree::create_with(&heap, b"test", options()).expect("an index");
    let keys = ["a key, and no short one", "another key, and no short one"];
    for key in keys {
        index.upsert(key.as_bytes(), b"superseded value").expect("room");
        index
            .upsert(key.as_bytes(), b"the value that stays")
            .expect("room");
    }
    let before = index::conformance::settled(&heap).objects;
    // The first record: its header comes two words before its key.
    let len = heap.pool().len() as usize;
    let start = Offset::new(HEADER as u64).expect("not null");
    let text = [keys[0], "superseded value"].concat();
    // SAFETY: no thread writes, and the test damages only a word.
    let access = unsafe { heap.access() };
    let bytes = access.bytes(start, len - HEADER).expect("inside");
    let at = bytes
        .windows(text.len())
        .position(|bytes| bytes == text.as_bytes());
    let header = Offset::new((HEADER + at.expect("the record") - 16) as u64).expect("not null");
    let header = access.at::<PWord>(header).expect("inside");
    header.store_unpersisted(u64::MAX, heap.media());

    let merged = index.settle().map_err(|error| error.to_string());
    assert_eq!(merged, Ok(()));
    assert_eq!(index.stats().failed, None);
    for key in keys {
        let guard = heap::pin();
        let value = index.get(key.as_bytes(), &guard).expect("no error");
        assert_eq!(value.as_deref(), Some(&b"the value that stays"[..]));
    }
    // The other record, and the log's pages, are free; one leaf was added.
    assert!(index::conformance::settled(&heap).objects < before);
}
