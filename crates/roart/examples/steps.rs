//! Reads and writes of random pairs: the program whose instructions `docs/performance.md` counts.
//!
//! ```text
//! cargo build --profile profiling -p wollemi-roart --example steps
//! valgrind --tool=callgrind --branch-sim=yes --callgrind-out-file=steps.out --toggle-collect='steps::get_all' \
//!     target/profiling/examples/steps str
//! callgrind_annotate --inclusive=yes steps.out
//! ```
//!
//! Instead of `get_all`, `multi_get_all`, `insert_all`, `load_all` (inserts of 32 at once), `update_all`,
//! `update_many_all` and `remove_all` can be counted; the keys can be `u64` or `dense` (ascending numbers of eight
//! bytes) instead of `str` (keys of 4 to 128 printable bytes). With `durable` after the kind of keys, write-backs and
//! fences are issued; with `counted`, their number is printed instead of times. A final number sets how many keys exist
//! before the measurement. Inserts, loads and updates take turns, several rounds of them.

use heap::Heap;
use index::{Action, Edit, Edits, Index, Upsert};
use pmem::{Counting, Hardware, Media, Pool, PoolOptions};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::Instant;
use wollemi_roart::Roart;

const KEYS: u64 = 300_000;
const OPERATIONS: u64 = 100_000;
const ROUNDS: u64 = 3;
const GROUP: usize = 32;

/// Distinct pseudo-random numbers.
fn scrambled(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The kind of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Str,
    U64,
    Dense,
}

fn key(keys: Keys, number: u64) -> Vec<u8> {
    let mut state = scrambled(number);
    match keys {
        Keys::Dense => return number.to_be_bytes().to_vec(),
        Keys::U64 => return state.to_be_bytes().to_vec(),
        Keys::Str => {}
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
fn get_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.get(key, &heap::pin())?.ok_or("a key is missing")?;
    }
    Ok(())
}

#[inline(never)]
fn multi_get_all(index: &dyn Index, keys: &[&[u8]]) -> Outcome {
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
fn insert_all(index: &dyn Index, keys: &[Vec<u8>]) -> Outcome {
    for key in keys {
        index.upsert(key, b"8 bytes.")?;
    }
    Ok(())
}

/// Puts the same value for each key of a group.
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

fn put_many(index: &dyn Index, keys: &[&[u8]], value: &'static [u8]) -> Outcome {
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
fn load_all(index: &dyn Index, keys: &[&[u8]]) -> Outcome {
    put_many(index, keys, b"8 bytes.")
}

#[inline(never)]
fn update_many_all(index: &dyn Index, keys: &[&[u8]]) -> Outcome {
    put_many(index, keys, b"8 others")
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

/// Processor time of this thread, since other programs compete for the processor; elapsed time if the system does not
/// report it.
fn nanoseconds() -> u64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let scheduled = std::fs::read_to_string("/proc/thread-self/schedstat");
    let had = scheduled
        .ok()
        .and_then(|line| line.split(' ').next()?.parse().ok());
    had.unwrap_or_else(|| BEGIN.elapsed().as_nanos() as u64)
}

/// Prints the cost per operation: nanoseconds, or write-backs and fences.
struct Meter<'m> {
    counts: Option<&'m Counting>,
}

impl Meter<'_> {
    fn measure(&self, name: &str, operations: impl FnOnce() -> Outcome) -> Outcome {
        let persists = || self.counts.map(|media| media.counts().total());
        let (before, begin) = (persists(), nanoseconds());
        operations()?;
        let nanoseconds = (nanoseconds() - begin) as f64 / OPERATIONS as f64;
        match (persists(), before) {
            (Some(after), Some(before)) => {
                let each = |count: u64| count as f64 / OPERATIONS as f64;
                let done = after - before;
                let (write_backs, fences) = (each(done.write_backs), each(done.fences));
                println!("{name}: {write_backs:.3} write-backs and {fences:.3} fences each");
            }
            _ => println!("{name}: {nanoseconds:.0} ns each"),
        }
        Ok(())
    }
}

fn run<M: Media>(media: M, keys_are: Keys, there: u64, meter: &Meter<'_>) -> Outcome {
    let heap = Heap::new(Pool::anonymous(&PoolOptions::default(), media)?)?;
    let index = Roart::<M>::create(&heap, b"steps")?;
    for number in 0..there {
        index.upsert(&key(keys_are, number), b"8 bytes.")?;
    }
    let keys = |from: u64| -> Vec<Vec<u8>> {
        (from..from + OPERATIONS)
            .map(|number| key(keys_are, number))
            .collect()
    };
    fn borrowed(keys: &[Vec<u8>]) -> Vec<&[u8]> {
        keys.iter().map(Vec::as_slice).collect()
    }
    let known = keys(there - OPERATIONS);
    meter.measure("get", || get_all(&index, &known))?;
    meter.measure("multi_get", || multi_get_all(&index, &borrowed(&known)))?;
    for round in 0..ROUNDS {
        let from = there + 2 * round * OPERATIONS;
        let [new, newer] = [keys(from), keys(from + OPERATIONS)];
        let newer = borrowed(&newer);
        meter.measure("insert", || insert_all(&index, &new))?;
        meter.measure("load", || load_all(&index, &newer))?;
        meter.measure("update", || update_all(&index, &known))?;
        meter.measure("update_many", || update_many_all(&index, &borrowed(&known)))?;
    }
    meter.measure("remove", || remove_all(&index, &known))
}

fn main() -> Outcome {
    const USAGE: &str = "usage: steps str|u64|dense [durable|counted] [KEYS]";
    let mut arguments = std::env::args().skip(1).peekable();
    let keys = match arguments.next().as_deref() {
        Some("str") => Keys::Str,
        Some("u64") => Keys::U64,
        Some("dense") => Keys::Dense,
        _ => return Err(USAGE.into()),
    };
    let how = arguments.next_if(|word| word.parse::<u64>().is_err());
    let there = arguments.next().map_or(Ok(KEYS), |word| word.parse())?;
    if there < OPERATIONS {
        return Err(format!("{there} keys: at least {OPERATIONS} are needed").into());
    }
    let meter = Meter { counts: None };
    match how.as_deref() {
        None => run(Hardware::detect(), keys, there, &meter),
        Some("durable") => run(Hardware::as_persistent(), keys, there, &meter),
        Some("counted") => {
            let media = Counting::new(Hardware::detect());
            let counts = Some(&media);
            run(media.clone(), keys, there, &Meter { counts })
        }
        Some(_) => Err(USAGE.into()),
    }
}
