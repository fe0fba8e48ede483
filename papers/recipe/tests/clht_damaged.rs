//! A damaged P-CLHT: a chain of buckets that leads back into itself, of which every operation notices soon; and a link
//! with a wrong number of buckets.

use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use index::conformance::{Entries, IndexInFile};
use index::{Direction, Index, OnHeap};
use pmem::Link;
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::FileExt;
use std::path::Path;
use wollemi_recipe::Clht;

type Store = IndexInFile<Clht<Stepping>>;

/// Number of keys of the chain.
const KEYS: usize = 20;

/// Maximum number of loads of an operation: those of a few turns.
const LOADS: usize = 2000;

/// The place of the next bucket in a bucket's word, and that of the word.
const NEXT: u64 = 0xffff_ffff_fff0;
const WORD: u64 = 8;

/// Keys of the first bucket of small tables: those with the smallest hashes of many.
fn keys_of_one_bucket() -> impl Iterator<Item = [u8; 8]> {
    let keys = (0_u64..).map(u64::to_le_bytes);
    keys.filter(|key| index::codec::checksum(key) < u64::MAX / 64)
}

/// A table with a chain, and the places of the chain's overflow buckets.
fn chain() -> (Store, Vec<u64>) {
    let store = Store::create_on(Stepping::machine(Steps));
    let mut model = Entries::new();
    for key in keys_of_one_bucket().take(KEYS) {
        store.put(&mut model, &key, b"8 bytes!");
    }
    let tracer = Clht::<Stepping>::tracer();
    // SAFETY: no thread writes.
    let heap = unsafe { store.index().heap().access() };
    let roots = heap.roots().expect("sound");
    let mut below: Vec<Link> = vec![roots[0].1.link];
    let mut all = Vec::new();
    while let Some(link) = below.pop() {
        tracer.trace(heap, link, &mut below).expect("sound");
        all.push(link.offset().expect("not null").get());
    }
    // The root and the table come first.
    (store, all.split_off(2))
}

/// Changes the word at this place of a pool's file, which may be open.
fn change_word(pool: &Path, at: u64, change: impl FnOnce(u64) -> u64) {
    let file = std::fs::File::options().read(true).write(true).open(pool);
    let file = file.expect("a file");
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at).expect("read");
    let word = change(u64::from_le_bytes(word)).to_le_bytes();
    file.write_all_at(&word, at).expect("written");
}

/// Opens a copy of the pool in which the word at this place is another one.
fn changed(store: &Store, at: u64, change: impl FnOnce(u64) -> u64) -> Store {
    let image = store.image();
    change_word(&image.path().join("pool"), at, change);
    Store::open_in(image, Stepping::machine(Steps))
}

/// Runs an operation, and panics if it loads more than [`LOADS`] words.
fn soon<R>(operation: impl FnOnce() -> R) -> R {
    let mut left = LOADS;
    let hook = move |step| {
        if step == ThreadStep::Load {
            left = left.checked_sub(1).expect("it ends soon");
        }
    };
    with_hook(hook, operation)
}

#[test]
fn cycles_are_found_soon() {
    let (store, buckets) = chain();
    assert!(buckets.len() > 4, "{} overflow buckets", buckets.len());
    let absent = keys_of_one_bucket().nth(KEYS).expect("some");
    let last = *buckets.last().expect("some");
    for &next in &buckets {
        let damaged = changed(&store, last + WORD, |word| word & !NEXT | next);
        let index = damaged.index();
        let is_found = |found: Result<bool, index::Error>| {
            let error = found.expect_err("a cycle").to_string();
            assert!(error.contains("cycle"), "{error}");
        };
        let guard = heap::pin();
        is_found(soon(|| index.get(&absent, &guard).map(|value| value.is_some())));
        for direction in [Direction::Forward, Direction::Reverse] {
            let (all, visit) = (Bound::Unbounded, &mut |_: &[u8], _: index::Value<'_>| {
                ControlFlow::Continue(())
            });
            is_found(soon(|| {
                index.walk(all, all, direction, &guard, visit).map(|()| false)
            }));
        }
        is_found(soon(|| index.insert(&absent, b"8 bytes!")));
        let faults = soon(|| index.check()).expect("no error");
        assert!(
            faults.found.iter().any(|fault| fault.contains("cycle")),
            "{faults:?}"
        );
    }
}

/// The place of a table's number of buckets in the link to it.
const BUCKETS: u32 = 48;

/// The link to the table in the root, and its place.
fn table(store: &Store) -> (u64, u64) {
    let tracer = Clht::<Stepping>::tracer();
    // SAFETY: no thread writes.
    let heap = unsafe { store.index().heap().access() };
    let root = heap.roots().expect("sound")[0].1.link;
    let mut below = Vec::new();
    tracer.trace(heap, root, &mut below).expect("sound");
    let link = below
        .into_iter()
        .find(|link| !link.is_null())
        .expect("a table")
        .bits();
    let root = root.offset().expect("not null").get();
    let pool = std::fs::read(store.image().path().join("pool")).expect("a file");
    let mut places = (root..).step_by(8);
    let is_link = |at: &u64| pool[*at as usize..][..8] == link.to_le_bytes();
    (link, places.find(is_link).expect("a slot of the root"))
}

/// Whatever number of buckets a link states, the first write of a process to a bucket compares it with the table's, and
/// stores nothing if it is wrong; reads notice numbers that no table has.
#[test]
fn a_wrong_number_of_buckets_is_noticed() {
    let (store, _) = chain();
    let (link, place) = table(&store);
    let buckets = link >> BUCKETS;
    let sizes: Vec<u64> = (0..8)
        .flat_map(|n| [2 << n, 3 << n])
        .map(|lines| lines - 1)
        .collect();
    assert!(sizes.contains(&buckets), "{buckets} buckets");
    let first = keys_of_one_bucket().next().expect("some");
    let last = (0_u64..)
        .map(u64::to_le_bytes)
        .find(|key| index::codec::checksum(key) > u64::MAX / 256 * 255);
    let keys = [first, last.expect("some")];
    for bit in 0..16 {
        let damaged = changed(&store, place, |link| link ^ 1 << bit << BUCKETS);
        let before = damaged.image();
        let index = damaged.index();
        for key in keys {
            assert!(soon(|| index.upsert(&key, b"8 bytes.")).is_err(), "bit {bit}");
            assert!(soon(|| index.remove(&key)).is_err(), "bit {bit}");
            let read = soon(|| index.get(&key, &heap::pin()).map(|_| ()));
            assert_eq!(read.is_ok(), sizes.contains(&(buckets ^ 1 << bit)), "bit {bit}");
        }
        let bytes = |image: &Path| std::fs::read(image.join("pool")).expect("a file");
        let changed = bytes(before.path()) != bytes(damaged.image().path());
        assert!(!changed, "bit {bit}: the pool has changed");
    }
}

/// The replacement of a table compares the number of buckets before it locks them all, even if the process has written
/// to the bucket that made it necessary.
#[test]
fn a_replacement_compares_the_number_of_buckets() {
    let (store, _) = chain();
    let (_, place) = table(&store);
    // Another number that some table has.
    change_word(&store.path(), place, |link| link ^ 2 << BUCKETS);
    for key in keys_of_one_bucket().skip(KEYS).take(10 * KEYS) {
        // An insert reports no failure of the replacement that follows.
        let _ = store.index().insert(&key, b"8 bytes!");
    }
    let faults = store.index().check().expect("no error").found;
    let is_mismatch = |fault: &String| fault.contains("does not match its link");
    assert!(faults.iter().any(is_mismatch), "{faults:?}");
}
