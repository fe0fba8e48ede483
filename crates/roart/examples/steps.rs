//! Inserts and gets of random pairs: what `docs/performance.md` counts the instructions of.
//!
//! ```text
//! cargo build --profile profiling -p wollemi-roart --example steps
//! valgrind --tool=callgrind --branch-sim=yes --callgrind-out-file=steps.out --toggle-collect='steps::get_all' \
//!     target/profiling/examples/steps str
//! callgrind_annotate --inclusive=yes steps.out
//! ```
//!
//! Instead of `get_all`, `multi_get_all`, `insert_all`, `load_all` (inserts of 32 at once), `update_all`,
//! `update_many_all` and `remove_all` can be counted; instead of `str` (keys of 4 to 128 printable bytes), `u64`; with
//! `durable` behind that, write-backs and fences are issued.

use heap::Heap;
use index::{Action, Edit, Edits, Index, Upsert};
use pmem::{Hardware, Pool, PoolOptions};
use std::error::Error;
use std::ops::ControlFlow;
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

/// The same value for each key of a group.
struct Puts {
    put: Upsert<'static>,
    done: usize,
}

impl Edits for Puts {
    fn edit(&mut self, _: usize) -> &mut dyn Edit {
        &mut self.put
    }

    fn done(&mut self, _: usize, done: Result<Action, index::Error>) -> ControlFlow<()> {
        self.done += usize::from(done.is_ok());
        ControlFlow::Continue(())
    }
}

fn put_many(index: &Roart, keys: &[&[u8]], value: &'static [u8]) -> Outcome {
    let mut puts = Puts {
        put: Upsert(value),
        done: 0,
    };
    for keys in keys.chunks(GROUP) {
        index.write_many(keys, &mut puts);
    }
    if puts.done == keys.len() {
        Ok(())
    } else {
        Err("a write failed".into())
    }
}

#[inline(never)]
fn load_all(index: &Roart, keys: &[&[u8]]) -> Outcome {
    put_many(index, keys, b"8 bytes.")
}

#[inline(never)]
fn update_many_all(index: &Roart, keys: &[&[u8]]) -> Outcome {
    put_many(index, keys, b"8 others")
}

#[inline(never)]
fn update_all(index: &Roart, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.upsert(key, b"8 more..")?;
    }
    Ok(())
}

#[inline(never)]
fn remove_all(index: &Roart, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.remove(key)?;
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (is_long, media) = match arguments[..] {
        ["str"] => (true, Hardware::detect()),
        ["u64"] => (false, Hardware::detect()),
        ["str", "durable"] => (true, Hardware::as_persistent()),
        ["u64", "durable"] => (false, Hardware::as_persistent()),
        _ => return Err("usage: steps str|u64 [durable]".into()),
    };
    let heap = Heap::new(Pool::anonymous(&PoolOptions::default(), media)?)?;
    let index = Roart::create(&heap, b"steps")?;
    for number in 0..KEYS {
        index.upsert(&key(is_long, number), b"8 bytes.")?;
    }
    let keys = |from: u64| -> Vec<Vec<u8>> {
        (from..from + OPERATIONS)
            .map(|number| key(is_long, number))
            .collect()
    };
    fn borrowed(keys: &[Vec<u8>]) -> Vec<&[u8]> {
        keys.iter().map(Vec::as_slice).collect()
    }
    let known = keys(KEYS - OPERATIONS);
    let [new, newer] = [keys(KEYS), keys(KEYS + OPERATIONS)];
    timed("get", || get_all(&index, &known))?;
    timed("multi_get", || multi_get_all(&index, &borrowed(&known)))?;
    timed("insert", || insert_all(&index, &new))?;
    timed("load", || load_all(&index, &borrowed(&newer)))?;
    timed("update", || update_all(&index, &known))?;
    timed("update_many", || update_many_all(&index, &borrowed(&known)))?;
    timed("remove", || remove_all(&index, &known))
}
