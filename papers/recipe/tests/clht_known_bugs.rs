//! Bugs of published hash tables for persistent memory, and possible ones of this table.
//!
//! The crash kit and `clht_steps` test crashes during operations.

use heap::Heap;
use index::codec::checksum;
use index::conformance::{IndexInFile, Random, settled};
use index::{Direction, Index, OnHeap, Order};
use pmem::{Hardware, Pool, PoolOptions};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use wollemi_recipe::Clht;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

fn in_memory(max_size: u64) -> Clht {
    let options = PoolOptions {
        max_size,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Hardware::detect()).expect("a pool");
    Clht::create(&Heap::new(pool).expect("a heap"), b"table").expect("room")
}

/// Different keys of 16 bytes with one hash: the second word reverts what the first has made of it.
fn colliding(count: u64) -> Vec<[u8; 16]> {
    let mix = |word: u64| {
        let product = u128::from(word) * u128::from(MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    let key = |first: u64| {
        let second = mix(16 ^ MULTIPLIER ^ first) ^ 0x1234;
        let mut key = [0; 16];
        key[..8].copy_from_slice(&first.to_le_bytes());
        key[8..].copy_from_slice(&second.to_le_bytes());
        key
    };
    let keys: Vec<_> = (0..count).map(key).collect();
    assert!(keys.iter().all(|key| checksum(key) == checksum(&keys[0])));
    keys
}

fn walked(table: &Clht, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let guard = heap::pin();
    let mut found = Vec::new();
    let all = Bound::Unbounded;
    table
        .walk(all, all, direction, &guard, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .expect("sound");
    found
}

/// "Key value 0 used as empty": zeros are keys and values like any others, whatever their length, and so is the empty
/// string.
#[test]
fn zeros_are_keys() {
    let table = in_memory(1 << 26);
    let zeros = [0; 20];
    for len in 0..=20 {
        assert!(table.insert(&zeros[..len], &zeros[..8]).expect("room"));
        assert!(!table.insert(&zeros[..len], b"other").expect("room"));
    }
    for len in 0..=20 {
        let guard = heap::pin();
        let found = table.get(&zeros[..len], &guard).expect("sound");
        assert_eq!(found.as_deref(), Some(&zeros[..8]));
    }
    // The empty key comes first in every order.
    assert_eq!(walked(&table, Direction::Forward)[0].0, b"");
    for len in 0..=20 {
        assert!(table.remove(&zeros[..len]).expect("room"));
    }
    assert_eq!(table.check().expect("sound").keys, 0);
}

/// "An update path without unlock": whatever an edit does to a pair, the next one in its bucket succeeds; and no
/// "snapshot read is broken by an upsert", from one form of a pair to the other and back.
#[test]
fn pairs_change_their_form() {
    let table = in_memory(1 << 26);
    let mut random = Random::new(3);
    let keys: Vec<Vec<u8>> = (0..40_u64)
        .map(|i| i.to_le_bytes()[..4 + i as usize % 5].to_vec())
        .collect();
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for _ in 0..20_000 {
        let key = random.pick(&keys).clone();
        match random.below(5) {
            0 => assert_eq!(table.remove(&key).expect("room"), model.remove(&key).is_some()),
            len => {
                let value = random.bytes(6 + len % 3 * 2);
                table.upsert(&key, &value).expect("room");
                model.insert(key, value);
            }
        }
    }
    let faults = table.check().expect("sound");
    assert_eq!(
        (faults.found, faults.keys),
        (Vec::<String>::new(), model.len() as u64)
    );
    let mut found = walked(&table, Direction::Forward);
    found.sort();
    assert!(found.into_iter().eq(model));
}

/// Keys of one hash stay distinct, however many there are: their chain is walked in the order of keys, directories
/// end, and all of it is removed with the keys.
#[test]
fn keys_of_one_hash() {
    let store = IndexInFile::<Clht>::create();
    let table = store.index();
    let before = table.heap().stats().objects;
    let mut keys = colliding(4000);
    for key in &keys {
        assert!(table.insert(key, b"12345678").expect("room"));
    }
    keys.sort_unstable();
    for direction in [Direction::Forward, Direction::Reverse] {
        let found = walked(table, direction).into_iter().map(|(key, _)| key);
        match direction {
            Direction::Forward => assert!(found.eq(keys.iter().map(|key| key.to_vec()))),
            Direction::Reverse => assert!(found.eq(keys.iter().rev().map(|key| key.to_vec()))),
        }
    }
    let faults = table.check().expect("sound");
    assert_eq!((faults.found, faults.keys), (Vec::<String>::new(), 4000));
    for key in &keys {
        assert!(table.remove(key).expect("room"));
    }
    assert_eq!(settled(table.heap()).objects, before);
}

/// A slot that is emptied and filled repeatedly: the word's versions are used up again and again, and the bucket
/// remains usable.
#[test]
fn versions_are_renewed() {
    let table = in_memory(1 << 26);
    assert!(table.insert(b"stays...", b"12345678").expect("room"));
    for i in 0..50_000_u64 {
        assert!(table.insert(b"comes...", &i.to_le_bytes()).expect("room"));
        let guard = heap::pin();
        let found = table.get(b"comes...", &guard).expect("sound");
        assert_eq!(found.as_deref(), Some(&i.to_le_bytes()[..]));
        drop(guard);
        assert!(table.remove(b"comes...").expect("room"));
    }
    let faults = table.check().expect("sound");
    assert_eq!((faults.found, faults.keys), (Vec::<String>::new(), 1));
    // Not a chain of used-up buckets.
    assert!(faults.objects < 6, "{} objects", faults.objects);
}

/// A pair alone in an overflow bucket changes its form until the versions of that bucket are used up, once or twice:
/// no empty bucket stays in the chain, and nothing is left when the keys are removed.
#[test]
fn changes_of_form_leave_no_empty_bucket() {
    for turns in [10_000, 20_000] {
        let table = in_memory(1 << 26);
        let before = settled(table.heap()).objects;
        let keys = (0_u64..).map(u64::to_le_bytes);
        let of_one_bucket = keys.filter(|key| checksum(key) < u64::MAX / 64);
        let keys: Vec<_> = of_one_bucket.take(4).collect();
        for key in &keys {
            assert!(table.insert(key, b"8 bytes!").expect("room"));
        }
        for turn in 0..turns {
            let value: &[u8] = match turn % 2 {
                0 => b"a longer value",
                _ => b"8 bytes!",
            };
            table.upsert(&keys[3], value).expect("room");
        }
        let faults = table.check().expect("sound");
        assert_eq!((faults.found, faults.keys), (Vec::<String>::new(), 4));
        for key in &keys {
            assert!(table.remove(key).expect("no error"));
        }
        assert_eq!(settled(table.heap()).objects, before, "after {turns} turns");
    }
}

/// A full pool refuses inserts, and nothing else: acknowledged pairs are found, in chains for which no larger table
/// could be allocated; they can be updated and removed; and the room can be reused.
#[test]
fn a_full_pool_leaves_chains() {
    let table = in_memory(16 << 20);
    let mut random = Random::new(5);
    let mut keys = Vec::new();
    loop {
        let key = random.number().to_le_bytes();
        match table.insert(&key, &key) {
            Ok(inserted) => assert!(inserted),
            Err(error) => break assert!(error.to_string().contains("full"), "{error}"),
        }
        keys.push(key);
    }
    assert!(keys.len() > 50_000, "{} keys", keys.len());
    for key in &keys {
        assert!(table.update(key, b"updated!").expect("in place"));
    }
    assert_eq!(table.check().expect("sound").keys, keys.len() as u64);
    for key in &keys {
        let guard = heap::pin();
        assert_eq!(
            table.get(key, &guard).expect("sound").as_deref(),
            Some(&b"updated!"[..])
        );
        drop(guard);
        assert!(table.remove(key).expect("a removal needs no memory"));
    }
    for key in &keys[..keys.len() / 2] {
        assert!(table.insert(key, key).expect("there is room again"));
    }
    let faults = table.check().expect("sound");
    assert_eq!(
        (faults.found, faults.keys),
        (Vec::<String>::new(), keys.len() as u64 / 2)
    );
}

/// A walk that stops anywhere continues behind its last key, while tables grow, shrink and disappear between two of
/// its steps: each key that stays is met once.
#[test]
fn walks_go_on_while_tables_change() {
    let table = in_memory(1 << 28);
    let Order::Ranks(_) = Clht::<Hardware>::ORDER else {
        panic!("the index has no key order")
    };
    let stays: Vec<[u8; 8]> = (0..3000_u64).map(|i| (i << 32).to_le_bytes()).collect();
    let others: Vec<[u8; 8]> = (0..60_000_u64).map(|i| (i << 32 | 1).to_le_bytes()).collect();
    for key in &stays {
        assert!(table.insert(key, b"12345678").expect("room"));
    }
    let mut turns = others.chunks(1000).cycle();
    let (mut seen, mut last, mut grows) = (Vec::new(), None::<Vec<u8>>, true);
    loop {
        let (mut step, guard) = (0, heap::pin());
        let from = last.take();
        let behind = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let before = seen.len();
        table
            .walk(
                behind,
                Bound::Unbounded,
                Direction::Forward,
                &guard,
                &mut |key, _| {
                    if key[0] == 0 {
                        seen.push(key.to_vec());
                    }
                    last = Some(key.to_vec());
                    step += 1;
                    if step < 40 {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                },
            )
            .expect("sound");
        drop(guard);
        if step < 40 {
            break;
        }
        grows ^= seen.len() / 500 != before / 500;
        for key in turns.next().expect("a cycle") {
            let _ = match grows {
                true => table.insert(key, b"12345678").expect("room"),
                false => table.remove(key).expect("room"),
            };
        }
    }
    let met = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((seen.len(), met), (stays.len(), stays.len()));
}
