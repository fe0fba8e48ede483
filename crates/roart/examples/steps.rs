//! Inserts and gets of random pairs: what `docs/performance.md` counts the instructions of.
//!
//! ```text
//! cargo build --profile profiling -p wollemi-roart --example steps
//! valgrind --tool=callgrind --branch-sim=yes --callgrind-out-file=steps.out --toggle-collect='steps::get_all' \
//!     target/profiling/examples/steps str
//! callgrind_annotate --inclusive=yes steps.out
//! ```
//!
//! Instead of `get_all`, `multi_get_all` and `insert_all` can be counted; instead of `str` (keys of 4 to 128 printable
//! bytes), `u64`.

use heap::Heap;
use index::Index;
use pmem::{Hardware, Pool, PoolOptions};
use std::error::Error;
use std::time::Instant;
use wollemi_roart::Roart;

const KEYS: u64 = 300_000;
const OPERATIONS: u64 = 100_000;
const GROUP: usize = 32;

/// Numbers without order, none twice.
fn scrambled(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn key(is_long: bool, number: u64) -> Vec<u8> {
    let mut state = scrambled(number);
    if !is_long {
        return state.to_be_bytes().to_vec();
    }
    let len = 4 + state % 125;
    let mut next = |_| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        b' ' + (state >> 33) as u8 % 95
    };
    (0..len).map(&mut next).collect()
}

type Outcome = Result<(), Box<dyn Error>>;

#[inline(never)]
fn get_all(index: &Roart, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.get(key, &heap::pin())?.ok_or("a key is missing")?;
    }
    Ok(())
}

#[inline(never)]
fn multi_get_all(index: &Roart, keys: &[&[u8]]) -> Outcome {
    let mut found = 0;
    for keys in keys.chunks(GROUP) {
        index.multi_get(keys, &heap::pin(), &mut |_, value| {
            found += usize::from(value.is_some())
        })?;
    }
    if found == keys.len() {
        Ok(())
    } else {
        Err("a key is missing".into())
    }
}

#[inline(never)]
fn insert_all(index: &Roart, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.upsert(key, b"8 bytes.")?;
    }
    Ok(())
}

fn timed(name: &str, operations: impl FnOnce() -> Outcome) -> Outcome {
    let begin = Instant::now();
    operations()?;
    println!(
        "{name}: {} ns each",
        begin.elapsed().as_nanos() as u64 / OPERATIONS
    );
    Ok(())
}

fn main() -> Outcome {
    let is_long = match std::env::args().nth(1).as_deref() {
        Some("str") => true,
        Some("u64") => false,
        _ => return Err("usage: steps str|u64".into()),
    };
    let options = PoolOptions::default();
    let heap = Heap::new(Pool::anonymous(&options, Hardware::detect())?)?;
    let index = Roart::create(&heap, b"steps")?;
    for number in 0..KEYS {
        index.upsert(&key(is_long, number), b"8 bytes.")?;
    }
    let keys = |from: u64| -> Vec<Vec<u8>> {
        (from..from + OPERATIONS)
            .map(|number| key(is_long, number))
            .collect()
    };
    let known: Vec<Vec<u8>> = keys(KEYS - OPERATIONS);
    let borrowed: Vec<&[u8]> = known.iter().map(Vec::as_slice).collect();
    let new = keys(KEYS);
    timed("get", || get_all(&index, &known))?;
    timed("multi_get", || multi_get_all(&index, &borrowed))?;
    timed("insert", || insert_all(&index, &new))
}
