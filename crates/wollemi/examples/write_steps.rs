//! Upserts of new and of present keys at levels `process` and `disk`, to count their instructions (`docs/disk.md`).
//!
//! ```text
//! cargo build --profile profiling -p wollemi --features disks --example write_steps
//! for level in process disk; do
//!     valgrind --tool=callgrind --callgrind-out-file=write_steps.$level --toggle-collect='write_steps::upsert_all' \
//!         target/profiling/examples/write_steps $level DIRECTORY
//! done
//! callgrind_annotate --inclusive=yes write_steps.disk
//! ```
//!
//! `--toggle-collect='write_steps::insert_all'` counts the upserts of new keys.
//!
//! The pool is in memory, because pools in files do not work under valgrind. The log is in the directory, on a disk.
//! The program prints how long the upserts took.

use log::Directory;
use pmem::{Hardware, Pool, PoolOptions};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use wollemi::{Db, Durability, Map, OnDisk, Options};

const KEYS: u64 = 100_000;
const OPERATIONS: u64 = 50_000;

/// Returns distinct numbers in no order.
fn scrambled(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&scrambled(number).to_be_bytes());
    key[8..].copy_from_slice(&scrambled(!number).to_be_bytes());
    key
}

fn upsert(map: &Map, number: u64) -> Result<(), wollemi::Error> {
    let mut value = [0; 100];
    value[..8].copy_from_slice(&number.to_le_bytes());
    map.upsert(key(number), value)
}

#[inline(never)]
fn insert_all(map: &Map) -> Result<(), wollemi::Error> {
    (0..KEYS).try_for_each(|number| upsert(map, number))
}

#[inline(never)]
fn upsert_all(map: &Map) -> Result<(), wollemi::Error> {
    (0..OPERATIONS).try_for_each(|number| upsert(map, scrambled(number) % KEYS))
}

fn open(level: &str, directory: &std::path::Path) -> Result<Db, Box<dyn Error>> {
    let options = PoolOptions {
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Hardware::detect())?;
    let options = Options::new().durability(Durability::Eventual);
    match level {
        "process" => Ok(options.open_pool(pool)?),
        "disk" => {
            let disk = Arc::new(Directory::open(directory.join("log"))?);
            Ok(OnDisk::new(options).open(pool, disk)?)
        }
        _ => Err(USAGE.into()),
    }
}

const USAGE: &str = "steps process|disk DIRECTORY";

fn main() -> Result<(), Box<dyn Error>> {
    let [level, place] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err(USAGE.into());
    };
    let directory = tempfile::tempdir_in(place)?;
    let db = open(level, directory.path())?;
    let map = db.map("bench")?;
    insert_all(&map)?;
    let begin = Instant::now();
    upsert_all(&map)?;
    let nanos = begin.elapsed().as_nanos() as u64 / OPERATIONS;
    println!("{OPERATIONS} upserts over {KEYS} keys: {nanos} ns each");
    Ok(())
}
