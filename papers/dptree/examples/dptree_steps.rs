//! Reads and writes of random pairs: the program whose instructions `docs/performance.md` counts.
//!
//! ```text
//! cargo build --profile profiling -p wollemi-dptree --example dptree_steps
//! valgrind --tool=callgrind --branch-sim=yes --callgrind-out-file=dptree_steps.out \
//!     --toggle-collect='dptree_steps::get_all' target/profiling/examples/dptree_steps u64
//! callgrind_annotate --inclusive=yes dptree_steps.out
//! ```
//!
//! Instead of `get_all`, `absent_all`, `multi_get_all`, `insert_all`, `buffered_all` (gets of the inserted pairs),
//! `merge_all`, `update_all` and `remove_all` can be counted, or all of them with `dptree_steps::*_all`; the keys can be
//! `str` (4 to 128 printable bytes) instead of `u64`. With `counted` after the kind of keys, the number of write-backs
//! and fences is printed. Of what is counted, only `merge_all` merges, namely what `insert_all` has inserted. The
//! updated and removed pairs are in the base tree.

use heap::Heap;
use index::Index;
use pmem::{Counting, Hardware, Media, Pool, PoolOptions};
use std::error::Error;
use std::time::Instant;
use wollemi_dptree::{DpTree, DpTreeOptions};

/// Pairs in the base tree before the measurement.
const KEYS: u64 = 300_000;
/// Operations of each kind.
const OPERATIONS: u64 = 30_000;
const GROUP: usize = 32;

type Outcome = Result<(), Box<dyn Error>>;

/// Distinct pseudo-random numbers.
fn scrambled(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn key(as_strings: bool, number: u64) -> Vec<u8> {
    let mut state = scrambled(number);
    if !as_strings {
        return state.to_be_bytes().to_vec();
    }
    let len = 4 + state % 125;
    let next = |_| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        b' ' + (state >> 33) as u8 % 95
    };
    (0..len).map(next).collect()
}

#[inline(never)]
fn get_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.get(key, &heap::pin())?.ok_or("a key is missing")?;
    }
    Ok(())
}

#[inline(never)]
fn buffered_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index
            .get(key, &heap::pin())?
            .ok_or("an inserted key is missing")?;
    }
    Ok(())
}

#[inline(never)]
fn absent_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        if index.get(key, &heap::pin())?.is_some() {
            return Err("an absent key has a value".into());
        }
    }
    Ok(())
}

#[inline(never)]
fn multi_get_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut found = 0;
    for keys in keys.chunks(GROUP) {
        index.multi_get(keys, &heap::pin(), &mut |_, value| {
            found += usize::from(value.is_some())
        })?;
    }
    if found < keys.len() {
        return Err("a key is missing".into());
    }
    Ok(())
}

#[inline(never)]
fn insert_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.upsert(key, b"8 bytes.")?;
    }
    Ok(())
}

#[inline(never)]
fn merge_all(index: &dyn Index) -> Outcome {
    Ok(index.settle()?)
}

#[inline(never)]
fn update_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.upsert(key, b"8 more..")?;
    }
    Ok(())
}

#[inline(never)]
fn remove_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.remove(key)?;
    }
    Ok(())
}

/// Prints the cost per operation: nanoseconds, or write-backs and fences.
struct Meter<'m> {
    counts: Option<&'m Counting>,
}

impl Meter<'_> {
    fn measure(&self, name: &str, operations: impl FnOnce() -> Outcome) -> Outcome {
        let persists = || self.counts.map(|media| media.counts().total());
        let (before, begin) = (persists(), Instant::now());
        operations()?;
        let each = |count: u64| count as f64 / OPERATIONS as f64;
        match (persists(), before) {
            (Some(after), Some(before)) => {
                let done = after - before;
                let (write_backs, fences) = (each(done.write_backs), each(done.fences));
                println!("{name}: {write_backs:.3} write-backs and {fences:.3} fences each");
            }
            _ => println!("{name}: {:.0} ns each", each(begin.elapsed().as_nanos() as u64)),
        }
        Ok(())
    }
}

fn run<M: Media>(media: M, as_strings: bool, meter: &Meter<'_>) -> Outcome {
    let heap = Heap::new(Pool::anonymous(&PoolOptions::default(), media)?)?;
    let merged_as_asked = DpTreeOptions {
        workers: 0,
        merge_threshold: 1.0,
        merge_floor: KEYS as usize,
        ..DpTreeOptions::default()
    };
    let index = &DpTree::create_with(&heap, b"steps", merged_as_asked)?;
    let keys = |from: u64| -> Vec<Vec<u8>> {
        (from..from + OPERATIONS)
            .map(|number| key(as_strings, number))
            .collect()
    };
    for from in (0..KEYS).step_by(OPERATIONS as usize) {
        insert_before(index, &keys(from))?;
    }
    let (known, new) = (keys(KEYS / 3), keys(KEYS));
    meter.measure("get", || get_all(index, &known))?;
    meter.measure("get of an absent key", || absent_all(index, &new))?;
    meter.measure("multi_get", || multi_get_all(index, &known))?;
    meter.measure("insert", || insert_all(index, &new))?;
    meter.measure("get from the front", || buffered_all(index, &new))?;
    meter.measure("merge", || merge_all(index))?;
    meter.measure("update", || update_all(index, &known))?;
    meter.measure("remove", || remove_all(index, &known))
}

/// Inserts and merges.
fn insert_before(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.upsert(key, b"8 before")?;
    }
    Ok(index.settle()?)
}

fn main() -> Outcome {
    const USAGE: &str = "usage: steps str|u64 [counted]";
    let mut arguments = std::env::args().skip(1);
    let as_strings = match arguments.next().as_deref() {
        Some("str") => true,
        Some("u64") => false,
        _ => return Err(USAGE.into()),
    };
    match arguments.next().as_deref() {
        None => run(Hardware::detect(), as_strings, &Meter { counts: None }),
        Some("counted") => {
            let media = Counting::new(Hardware::detect());
            let counts = Some(&media);
            run(media.clone(), as_strings, &Meter { counts })
        }
        Some(_) => Err(USAGE.into()),
    }
}
