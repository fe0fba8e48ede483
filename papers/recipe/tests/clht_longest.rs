//! The longest insert: P-CLHT rehashes one table at a time, so no insert waits for more than the copy of one table.

use heap::Heap;
use index::conformance::Random;
use index::{Index, OnHeap};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Memory, Pool, PoolOptions, Purpose, Watched};
use std::cell::Cell;
use wollemi_recipe::Clht;

/// What an insert does to persistent words and their lines, without the heap's own work.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    loads: u32,
    write_backs: u32,
    fences: u32,
}

thread_local! {
    static DONE: Cell<Work> = const { Cell::new(Work { loads: 0, write_backs: 0, fences: 0 }) };
}

/// Counts the work of each thread.
#[derive(Clone, Copy, Debug)]
struct Counter;

impl Observer for Counter {
    fn after(&self, step: &ObservedStep) {
        let mut done = DONE.get();
        match step.what {
            StepKind::Load | StepKind::Peek => done.loads += 1,
            StepKind::WriteBack(Purpose::Node) | StepKind::WriteBackJoined(Purpose::Node) => {
                done.write_backs += 1
            }
            StepKind::StoreNt => done.write_backs += 1,
            StepKind::Fence(Purpose::Node) => done.fences += 1,
            _ => return,
        }
        DONE.set(done);
    }
}

/// Buckets of a table of the largest size when it is copied: those of the table, and as many overflow buckets.
const BUCKETS: u32 = 2 * 383;

/// Write-backs of an insert of random keys that copies such a table into a directory of tables.
const WRITE_BACKS: u32 = 1500;

impl Work {
    /// The larger of each count.
    fn max(self, other: Work) -> Work {
        Work {
            loads: self.loads.max(other.loads),
            write_backs: self.write_backs.max(other.write_backs),
            fences: self.fences.max(other.fences),
        }
    }
}

type Table = Clht<Watched<Counter>>;

/// Inserts a random key; returns the work.
fn insert(table: &Table, random: &mut Random) -> Work {
    let key = random.number().to_le_bytes();
    DONE.set(Work::default());
    assert!(table.insert(&key, b"12345678").expect("room"));
    DONE.get()
}

/// At any number of keys, an insert loads at most the seven words of each bucket of one table, beside those on its own
/// way; it writes back at most the copy of that table; and it fences four times: for its overflow bucket, the word that
/// leads there, the copy, and the slot.
#[test]
fn no_insert_copies_more_than_a_table() {
    let options = PoolOptions {
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Watched::machine(Counter)).expect("a pool");
    let table = Table::create(&Heap::new(pool).expect("a heap"), b"table").expect("room");
    let mut random = Random::new(13);
    let mut longest = Work::default();
    for number in 1..=500_000_u32 {
        longest = longest.max(insert(&table, &mut random));
        if number.is_power_of_two() || number == 500_000 {
            eprintln!("{number} keys: {longest:?}");
        }
    }
    assert!(longest.loads <= 7 * BUCKETS + 100, "{longest:?}");
    assert!(longest.write_backs <= WRITE_BACKS, "{longest:?}");
    assert_eq!(longest.fences, 4, "{longest:?}");
}

/// Nor if the pool is opened again and again: an insert that needs the number of a table's overflow buckets after an
/// opening counts them, by one word of each, and the table is copied as soon as without the opening. (The first to lock
/// a chain after an opening also looks at the word of each of its buckets, twice.)
#[test]
fn openings_make_no_copy_larger() {
    for every in [5000, 1000] {
        let memory = Memory::new(256 << 20).expect("memory");
        let pool = Pool::create_in(&memory, &PoolOptions::default(), Watched::machine(Counter));
        let mut table =
            Table::create(&Heap::new(pool.expect("a pool")).expect("a heap"), b"table").expect("room");
        let mut random = Random::new(13);
        let mut longest = Work::default();
        for number in 1..=100_000_u32 {
            if number % every == 0 {
                drop(table);
                let pool = Pool::open_in(&memory, Watched::machine(Counter)).expect("the pool");
                let heap = Heap::new(pool).expect("a heap");
                heap.recover_now(&vec![Table::tracer()]);
                table = Table::open(&heap, b"table").expect("sound").expect("the table");
            }
            longest = longest.max(insert(&table, &mut random));
        }
        eprintln!("opened every {every} keys: {longest:?}");
        assert!(longest.loads <= 10 * BUCKETS + 100, "{longest:?}");
        assert!(longest.write_backs <= WRITE_BACKS, "{longest:?}");
    }
}
