//! Pools whose index is damaged: operations may fail or miss keys, but end, and do not panic.

use heap::Heap;
use index::{Direction, Index};
use pmem::{Hardware, Pool, PoolOptions};
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use wollemi_roart::{Full, Roart};

const PAGE: u64 = 64 << 10;

fn options() -> PoolOptions {
    PoolOptions {
        page_size: PAGE,
        max_size: 1 << 30,
        ..PoolOptions::default()
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8) % n
    }
}

/// Keys that make nodes of all kinds, leaf arrays, short and long skips, and keys that end at nodes.
fn keys() -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for (stem, fan) in [
        (&b"four"[..], 4),
        (b"some/sixteen", 13),
        (b"forty-eight", 40),
        (b"all", 256),
    ] {
        keys.push(stem.to_vec());
        for a in 0..fan {
            for b in 0..70 / fan + 2 {
                let mut key = stem.to_vec();
                key.extend([a as u8, b"a long way down to the next node"[b % 3], b as u8]);
                keys.push(key);
            }
        }
    }
    for i in 0..100u8 {
        keys.push([&[b'z'; 300][..], &[i]].concat());
    }
    keys
}

fn use_all(path: &Path) {
    let Ok(pool) = Pool::open(path, &options(), Hardware::detect()) else {
        return;
    };
    let Ok(heap) = Heap::new(pool) else { return };
    let Ok(Some(index)) = Roart::<Hardware, Full>::open(&heap, b"test") else {
        return;
    };
    let guard = heap::pin();
    let keys = keys();
    for key in &keys {
        let _ = index.get(key, &guard);
    }
    let all: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let _ = index.multi_get(&all, &guard, &mut |_, _| {});
    for direction in [Direction::Forward, Direction::Reverse] {
        let bounds = [
            Bound::Unbounded,
            Bound::Excluded(all[3]),
            Bound::Included(&b"some/sixteen"[..]),
        ];
        for (lower, upper) in bounds.iter().flat_map(|&a| bounds.map(|b| (a, b))) {
            let mut count = 0;
            let _ = index.scan(lower, upper, direction, &guard, &mut |_, _| {
                count += 1;
                if count < 10_000 {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
        }
    }
    let _ = index.check();
    for (i, key) in keys.iter().enumerate() {
        let written = match i % 3 {
            0 => index.upsert(&[key, &b"x"[..]].concat(), b"another value"),
            1 => index.upsert(key, b"12345678"),
            _ => index.remove(key).map(drop),
        };
        if written.is_err() {
            break;
        }
    }
}

/// Bits of nodes, leaf arrays and leaves are flipped, a few at a time.
#[test]
fn damage_ends_in_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let heap =
        Heap::new(Pool::create(&path, &options(), Hardware::detect()).expect("a pool")).expect("a heap");
    let index: Roart<Hardware, Full> = Roart::create(&heap, b"test").expect("room");
    for key in keys() {
        assert!(index.insert(&key, b"12345678").unwrap());
    }
    let end = heap.pool().allocated().load(heap.media()) as usize;
    drop((index, heap));
    let whole = std::fs::read(&path).expect("the file");
    // Words in use, so that most flips hit something.
    let words: Vec<usize> = (PAGE as usize..end)
        .step_by(8)
        .filter(|&at| whole[at..at + 8] != [0; 8])
        .collect();
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(7);
    println!("seed {seed}");
    let mut random = Random(seed);
    for round in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(8) {
            let at = words[random.below(words.len() as u64) as usize] + random.below(8) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        let path = folder.path().join(format!("{round}"));
        std::fs::write(&path, bytes).expect("a copy");
        use_all(&path);
        std::fs::remove_file(&path).expect("the copy");
    }
}
