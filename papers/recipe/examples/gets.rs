//! Gets of random keys of eight bytes: the program whose times and instructions `docs/performance.md` states.
//!
//! ```text
//! cargo build --profile profiling -p wollemi-recipe --example gets
//! target/profiling/examples/gets p-clht 10000000
//! valgrind --tool=callgrind --toggle-collect='gets::one_by_one' target/profiling/examples/gets p-clht 300000
//! ```
//!
//! The indexes are `p-art`, `p-clht`, `p-hot`, `p-masstree` and `p-bwtree`. The same keys are got in two ways that
//! touch the same lines: by calls of the contract that pin each time, as a caller with one request at a time does, and
//! by calls of the index under one guard, which take fewer instructions. The pool is on huge pages.

use heap::Heap;
use index::{Index, OnHeap};
use pmem::{Hardware, Pool, PoolOptions};
use std::error::Error;
use std::time::Instant;
use wollemi_recipe::{BwTree, Clht, Hot, Masstree, Part};

const GETS: u64 = 1_000_000;
const ROUNDS: usize = 5;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Distinct pseudo-random keys.
fn key(number: u64) -> [u8; 8] {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32)
        .wrapping_mul(0xd6e8_feb8_6659_fd93)
        .to_be_bytes()
}

#[inline(never)]
fn one_by_one(index: &dyn Index, keys: &[[u8; 8]]) -> Outcome<()> {
    for key in keys {
        index.get(key, &heap::pin())?.ok_or("a key is missing")?;
    }
    Ok(())
}

#[inline(never)]
fn under_one_guard(index: &impl OnHeap, keys: &[[u8; 8]]) -> Outcome<()> {
    let guard = heap::pin();
    for key in keys {
        index.find(key, &guard)?.ok_or("a key is missing")?;
    }
    Ok(())
}

/// Nanoseconds of each get.
fn time(keys: &[[u8; 8]], gets: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let begin = Instant::now();
    gets()?;
    Ok(begin.elapsed().as_nanos() as f64 / keys.len() as f64)
}

fn run<I: OnHeap<Media = Hardware>>(there: u64) -> Outcome<()> {
    let options = PoolOptions {
        huge_pages: true,
        ..PoolOptions::default()
    };
    let heap = Heap::new(Pool::anonymous(&options, Hardware::detect())?)?;
    let index = I::create(&heap, b"gets")?;
    for number in 0..there {
        index.insert(&key(number), b"8 bytes.")?;
    }
    let drawn = (0..GETS).map(|number| u64::from_be_bytes(key(number)) % there);
    let keys: Vec<[u8; 8]> = drawn.map(key).collect();
    for _ in 0..ROUNDS {
        let each = time(&keys, || one_by_one(&index, &keys))?;
        let guarded = time(&keys, || under_one_guard(&index, &keys))?;
        println!("by the contract, pinned each: {each:.0} ns; by the index, pinned once: {guarded:.0} ns");
    }
    Ok(())
}

fn main() -> Outcome<()> {
    const USAGE: &str = "usage: gets p-art|p-clht|p-hot|p-masstree|p-bwtree KEYS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, there] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let there = there.parse()?;
    match name.as_str() {
        "p-art" => run::<Part>(there),
        "p-clht" => run::<Clht>(there),
        "p-hot" => run::<Hot>(there),
        "p-masstree" => run::<Masstree>(there),
        "p-bwtree" => run::<BwTree>(there),
        _ => Err(USAGE.into()),
    }
}
