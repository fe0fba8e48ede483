//! Scans of 100 pairs, and gets, among random integers: the program whose instructions `docs/performance.md` counts.
//!
//! ```text
//! cargo build --release -p wollemi-dptree --example scan
//! valgrind --tool=callgrind --callgrind-out-file=scan.out --toggle-collect='*scan_all*' target/release/examples/scan
//! ```
//!
//! Instead of `scan_all`, `get_all` can be counted.

use heap::Heap;
use index::{Direction, Index};
use pmem::{Hardware, Pool, PoolOptions};
use std::error::Error;
use std::ops::{Bound, ControlFlow};
use wollemi_dptree::{DpTree, DpTreeOptions};

const KEYS: u64 = 300_000;
const SCANS: u64 = 1_000;
const GETS: u64 = 100_000;
const PAIRS: usize = 100;

/// Distinct pseudo-random keys.
fn key(number: u64) -> [u8; 8] {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()
}

#[inline(never)]
fn scan_all(index: &DpTree) -> Result<u64, Box<dyn Error>> {
    let mut sum = 0;
    for number in 0..SCANS {
        let (guard, mut left) = (heap::pin(), PAIRS);
        let from = key(number * 77);
        let (from, to) = (Bound::Included(&from[..]), Bound::Unbounded);
        index.scan(from, to, Direction::Forward, &guard, &mut |_, value| {
            sum += u64::from(value[0]);
            left -= 1;
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })?;
    }
    Ok(sum)
}

#[inline(never)]
fn get_all(index: &DpTree) -> Result<u64, Box<dyn Error>> {
    let mut found = 0;
    for number in 0..GETS {
        let number = number * 7 % KEYS;
        found += u64::from(index.get(&key(number), &heap::pin())?.is_some());
    }
    Ok(found)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = PoolOptions::default();
    let heap = Heap::new(Pool::anonymous(&options, Hardware::detect())?)?;
    let merged_by_writers = DpTreeOptions {
        workers: 0,
        ..DpTreeOptions::default()
    };
    let index = DpTree::create_with(&heap, b"scan", merged_by_writers)?;
    for number in 0..KEYS {
        index.insert(&key(number), &number.to_le_bytes())?;
    }
    let stats = index.stats();
    println!(
        "{} pairs in the base tree, {} in the front",
        stats.base, stats.front
    );
    let begin = std::time::Instant::now();
    let sum = scan_all(&index)?;
    println!("{SCANS} scans of {PAIRS}, {:?}, sum {sum}", begin.elapsed());
    let begin = std::time::Instant::now();
    let found = get_all(&index)?;
    println!("{GETS} gets, {:?}, {found} found", begin.elapsed());
    Ok(())
}
