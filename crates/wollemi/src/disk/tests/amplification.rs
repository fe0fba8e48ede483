//! Write amplification: the bytes of the log and the checkpoints for each byte of the keys and values given.

use super::{folder, settings};
use crate::disk::manifest::Manifest;
use crate::disk::opening::attach;
use crate::disk::settings::Settings;
use crate::disk::sizes::Sizes;
use crate::{Db, Durability};
use log::Directory;
use pmem::{Hardware, Pool};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a value: long ones, so that the overhead of a record hardly counts.
const VALUE: usize = 2000;

/// Bytes by which the log grows between two checkpoints.
const GROWTH: u64 = 256 << 10;

/// Bytes below which each checkpoint is full: the same share of [`GROWTH`] as by default.
const SMALL: u64 = GROWTH / 4;

/// Opens a database whose checkpoints are taken by the test alone.
fn open(path: &Path) -> Db {
    let settings = Settings {
        sizes: Sizes {
            small: SMALL,
            ..Sizes::default()
        },
        durability: Durability::Eventual,
        has_threads: false,
        ..settings(1 << 30)
    };
    let disk = Arc::new(Directory::open(path).expect("a directory"));
    let manifest = Manifest::load(&*disk).expect("sound");
    let pool = Pool::anonymous(&settings.pool, Hardware::detect()).expect("memory");
    attach(pool, disk, manifest, &settings, Instant::now(), None).expect("it opens")
}

/// Puts incompressible values for these keys, with a checkpoint whenever one is due. Returns the bytes written for each
/// byte given.
fn amplification(db: &Db, keys: impl Iterator<Item = u32>) -> f64 {
    let map = db.map("map").expect("room");
    let log = || db.log_stats().expect("a log");
    let (before, mut given, mut last) = (log(), 0, log().appended);
    for (number, key) in keys.enumerate() {
        let words = (0..VALUE / 8).map(|word| xxh3_64(&[number, word].map(usize::to_le_bytes).concat()));
        let value: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        map.upsert(key.to_be_bytes(), &value).expect("room");
        given += (size_of::<u32>() + value.len()) as u64;
        if log().appended - last >= GROWTH {
            db.checkpoint(false).expect("no fault").expect("a log");
            last = log().appended;
        }
    }
    let after = log();
    let checkpoints = after.checkpoint_bytes - before.checkpoint_bytes;
    (after.bytes - before.bytes + checkpoints) as f64 / given as f64
}

/// While the content keeps its size, log, deltas and full checkpoints write each byte at most once each.
#[test]
fn updates_are_written_three_times_at_most() {
    const KEYS: u32 = 1000;
    let files = folder();
    let db = open(files.path());
    amplification(&db, 0..KEYS);
    db.checkpoint(true).expect("no fault");
    let updates = (0..16 * KEYS).map(|number| xxh3_64(&number.to_le_bytes()) as u32 % KEYS);
    let written = amplification(&db, updates);
    println!("{written}");
    assert!((1.5..3.0).contains(&written), "{written}");
}

/// While the content grows, a full checkpoint also writes what came since the one before: at most twice its size.
#[test]
fn inserts_are_written_four_times_at_most() {
    let files = folder();
    let written = amplification(&open(files.path()), 0..8000);
    println!("{written}");
    assert!((1.5..4.0).contains(&written), "{written}");
}
