//! Pools whose bytes were changed behind the program's back: whatever they contain, every operation ends, with a
//! result or with an error that says what is wrong.
//!
//! Images are made from a closed pool, with random damage from the plan's seed.

use super::store::{Entries, IndexInFile, ROOT, folder, options};
use super::{Plan, Random};
use crate::{Direction, OnHeap};
use heap::{Heap, RecoveryStage};
use pmem::{Hardware, Pool};
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of the pool's header, which detects its own damage (`pmem`).
const HEADER: usize = 4096;

/// Objects of every kind: nodes of all sizes, leaves with values of eight bytes and with others, deep nodes, and nodes
/// whose links skip bytes.
pub fn every_kind_of_object() -> Entries {
    let mut model = Entries::new();
    for (first, children) in [(b'a', 3), (b'b', 12), (b'c', 40), (b'd', 66)] {
        for i in 0..66u8 {
            let key = [&[first, b'-', 33 + i % children][..], &[b'x'; 3], &[b'A' + i]].concat();
            let value = match i % 3 {
                0 => b"8 bytes!".to_vec(),
                1 => vec![b'v'; usize::from(i)],
                _ => vec![i; 100],
            };
            model.insert(key, value);
        }
    }
    for i in 0..66u8 {
        // Skips of more bytes than a node keeps, and keys that end at nodes.
        let key = [&[b'e'; 300][..], &[b'0' + i % 5], &vec![b'y'; usize::from(i)]].concat();
        model.insert(key, vec![i; 9]);
        model.insert(vec![b'f'; usize::from(i)], b"a chain".to_vec());
        model.insert(
            (u64::from(i) << 40 | 7).to_be_bytes().to_vec(),
            b"12345678".to_vec(),
        );
    }
    model
}

/// A closed pool, and the places of its contents.
struct Original {
    bytes: Vec<u8>,
    model: Entries,
    /// Places of words that hold links.
    links: Vec<usize>,
    /// Objects with children.
    nodes: Vec<usize>,
    /// Places of words that are not zero.
    words: Vec<usize>,
}

impl Original {
    fn new<I: OnHeap<Media = Hardware>>() -> Original {
        let store = IndexInFile::<I>::create();
        let model = every_kind_of_object();
        for (key, value) in &model {
            store.put(&mut Entries::new(), key, value);
        }
        let (mut links, mut nodes) = (Vec::new(), Vec::new());
        // SAFETY: no thread writes any more.
        let heap = unsafe { store.index().heap().access() };
        let root = heap.root(ROOT).expect("no error").expect("the root").link;
        let mut stack = vec![root];
        let mut children = Vec::new();
        while let Some(link) = stack.pop() {
            let at = link.offset().expect("not null");
            let len = I::tracer().trace(heap, link, &mut children).expect("sound") as usize;
            if children.is_empty() {
                continue;
            }
            let place = at.get() as usize;
            nodes.push(place);
            let bits: BTreeSet<u64> = children.iter().map(|link| link.bits()).collect();
            let object = heap.bytes(at, len).expect("inside");
            for (i, word) in object.chunks(8).enumerate() {
                if bits.contains(&u64::from_le_bytes(word.try_into().expect("eight bytes"))) {
                    links.push(place + i * 8);
                }
            }
            stack.append(&mut children);
        }
        // Some indexes hold short pairs without a link.
        assert!(links.len() * 2 >= model.len());
        let folder = store.close();
        let bytes = std::fs::read(folder.path().join("pool")).expect("read");
        let words = (HEADER..bytes.len())
            .step_by(8)
            .filter(|&at| bytes[at..at + 8] != [0; 8])
            .collect();
        Original {
            bytes,
            model,
            links,
            nodes,
            words,
        }
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Makes one or a few random changes.
    fn damage(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for _ in 0..*random.pick(&[1, 1, 1, 2, 5, 20]) {
            let at = match random.below(8) {
                0 => HEADER + random.below(self.bytes.len() - HEADER) / 8 * 8,
                1 => *random.pick(&self.nodes) + random.below(8) * 8,
                2..4 => *random.pick(&self.links),
                _ => *random.pick(&self.words),
            };
            let word = self.word(at);
            let word = match random.below(6) {
                0 => 0,
                1 => random.number(),
                2 => self.word(*random.pick(&self.links)),
                3 => word.wrapping_add_signed(*random.pick(&[-1, 1, 16, 64, 1 << 48])),
                _ => word ^ 1 << random.below(64),
            };
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Ends the process if there is no progress for ten minutes: a hanging test reports nothing.
struct Watchdog(Arc<AtomicU64>);

impl Watchdog {
    fn new() -> Watchdog {
        let turns = Arc::new(AtomicU64::new(0));
        let seen = Arc::downgrade(&turns);
        std::thread::spawn(move || {
            let mut last = 0;
            while let Some(turns) = seen.upgrade() {
                let now = turns.load(Relaxed);
                drop(turns);
                if now == last && now > 0 {
                    eprintln!("image {now}: an operation does not end");
                    std::process::abort();
                }
                last = now;
                std::thread::sleep(Duration::from_secs(600));
            }
        });
        Watchdog(turns)
    }
}

/// Checks that an error has a one-line message.
pub fn clear<T>(result: Result<T, impl std::fmt::Display>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() > 10 && !text.contains('\n'), "not clear: {text:?}");
            None
        }
    }
}

/// Opens an image; `None`, with a clear error, if it is refused.
fn open<I: OnHeap<Media = Hardware>>(path: &Path) -> Option<I> {
    let pool = clear(Pool::open(path, &options(), Hardware::detect()))?;
    let heap = clear(Heap::new(pool))?;
    let index = clear(I::open(&heap, ROOT))??;
    heap.recover(vec![I::tracer()], 1).expect("a thread");
    Some(index)
}

/// Calls every operation of an index. Results may be anything.
fn exercise<I: OnHeap>(index: &I, model: &Entries, random: &mut Random) {
    use crate::Index;
    let keys: Vec<&[u8]> = model.keys().map(Vec::as_slice).collect();
    {
        let guard = heap::pin();
        for key in &keys {
            clear(index.get(key, &guard));
        }
        clear(index.multi_get(&keys, &guard, &mut |_, _| {}));
        for direction in [Direction::Forward, Direction::Reverse] {
            let (one, other) = (*random.pick(&keys), *random.pick(&keys));
            let between = (Bound::Excluded(one.min(other)), Bound::Included(one.max(other)));
            for (lower, upper) in [(Bound::Unbounded, Bound::Unbounded), between] {
                clear(super::visit(
                    index,
                    (lower, upper),
                    direction,
                    &guard,
                    &mut |_, _| ControlFlow::Continue(()),
                ));
            }
        }
        let all = || index.range(Bound::Unbounded, Bound::Unbounded, &guard);
        all().for_each(|entry| _ = clear(entry));
        all().rev().for_each(|entry| _ = clear(entry));
        index.prefix(b"a-", &guard).for_each(|entry| _ = clear(entry));
    }
    for _ in 0..60 {
        let key = *random.pick(&keys);
        let new = [&key[..random.below(key.len() + 1)], &random.bytes(1), b"~new"].concat();
        let _ = match random.below(5) {
            0 => clear(index.insert(&new, b"8 bytes.")),
            1 => clear(index.insert(&new, b"a value of some other length")),
            2 => clear(index.upsert(key, b"another")).map(|()| true),
            _ => clear(index.remove(key)),
        };
    }
}

/// Checks everything; returns `true` if it finds a fault.
pub fn finds_damage<I: OnHeap>(index: &I) -> bool {
    let mut found = clear(crate::Index::check(index)).is_none_or(|faults| !faults.found.is_empty());
    let state = index.heap().wait_recovered();
    if let RecoveryStage::Failed(why) = &state {
        assert!(!why.contains("panicked"), "{why}");
    }
    if state == RecoveryStage::Done {
        let audit = clear(index.heap().audit(&vec![I::tracer()], 1));
        found |= audit.is_none_or(|audit| !audit.is_clean());
    }
    index.heap().stats();
    found || state != RecoveryStage::Done
}

/// However a pool is damaged, it is refused, or every operation on it ends with a result or a clear error.
pub fn damaged_pools_are_survived<I: OnHeap<Media = Hardware>>() {
    let plan = Plan::from_env();
    let mut random = plan.random("damaged_pools_are_survived");
    let original = Original::new::<I>();
    let folder = folder();
    let path = folder.path().join("pool");
    let watchdog = Watchdog::new();
    let images = plan.sized(800);
    let mut opened = 0;
    for _ in 0..images {
        watchdog.0.fetch_add(1, Relaxed);
        std::fs::write(&path, original.damage(&mut random)).expect("written");
        let Some(index) = open::<I>(&path) else {
            continue;
        };
        opened += 1;
        exercise(&index, &original.model, &mut random);
        finds_damage(&index);
    }
    assert!(opened > images / 2, "{opened} images were opened");
}

/// The check finds a flipped bit of a link, unless the link then leads to a former copy of the object, or past nodes
/// whose absence looks like a write interrupted by a crash: one flip in a hundred does.
pub fn checks_find_damage<I: OnHeap<Media = Hardware>>() {
    let mut random = Plan::from_env().random("checks_find_damage");
    let original = Original::new::<I>();
    let folder = folder();
    let path = folder.path().join("pool");
    std::fs::write(&path, &original.bytes).expect("written");
    let index = open::<I>(&path).expect("opens");
    assert!(!finds_damage(&index), "without damage everything is sound");
    drop(index);
    let images = 200;
    let mut missed = Vec::new();
    for _ in 0..images {
        let mut bytes = original.bytes.clone();
        let at = *random.pick(&original.links);
        // Not the lowest bit: that is the mark, and a link with it is sound.
        let bit = 1 + random.below(63);
        bytes[at + bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).expect("written");
        if !open::<I>(&path).is_none_or(|index| finds_damage(&index)) {
            missed.push((at, bit));
        }
    }
    // A bound far above the usual number, so that no seed fails by chance.
    assert!(missed.len() <= images / 10, "missed: {missed:x?}");
}
