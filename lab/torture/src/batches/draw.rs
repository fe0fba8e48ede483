//! Random histories of the database.

use super::live::{EXPIRING, TEMPORARY};
use super::{Life, Op, Place, PlacedValue, Restoration};
use crashkit::{History, Random};
use std::collections::BTreeMap;

/// Which reads a history makes outside of transactions and snapshots. During a batch such a read may see part of its
/// changes, and a scan shows entries of different moments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// All reads: there is one thread.
    All,
    /// Reads of one key: each batch and each transaction changes one key.
    OfKeys,
    /// None.
    None,
}

/// The number of keys that share eleven bytes.
const LONG_KEYS: u64 = 20;

/// The number of those keys that nearly fills a border node of P-Masstree.
const NEARLY_FULL: u64 = 12;

pub(super) fn place(random: &mut Random) -> Place {
    let len = random.below(3) as usize;
    let key = match random.below(4) {
        0 => long(random.below(LONG_KEYS)),
        _ => vec![random.below(5) as u8; len],
    };
    (random.below(2) as u8, key)
}

fn long(number: u64) -> Vec<u8> {
    [b"of one stem".as_slice(), &[number as u8]].concat()
}

fn entry(random: &mut Random) -> PlacedValue {
    let place = place(random);
    let len = match random.below(10) {
        0..3 => return (place, None),
        3..7 => 8,
        _ => random.below(40) as usize,
    };
    (place, Some(vec![random.below(256) as u8; len]))
}

pub(super) fn entries(random: &mut Random) -> Vec<PlacedValue> {
    (0..1 + random.below(5)).map(|_| entry(random)).collect()
}

fn changes(random: &mut Random, reads: Reads) -> Vec<PlacedValue> {
    match reads {
        Reads::OfKeys => vec![entry(random)],
        Reads::All | Reads::None => entries(random),
    }
}

fn transaction(random: &mut Random, reads: Reads) -> Op {
    let places = (0..random.below(3)).map(|_| place(random)).collect();
    let range = (random.below(3) == 0).then(|| (place(random), random.below(2) == 0));
    let changes = match random.below(4) {
        0 => Vec::new(),
        _ => changes(random, reads),
    };
    Op::Transaction(places, range, changes)
}

pub(super) fn op(random: &mut Random, reads: Reads) -> Op {
    match random.below(20) {
        0 => {
            let entry = entry(random);
            let expected = match random.below(3) {
                0 => None,
                _ => self::entry(random).1,
            };
            Op::Swap(entry, expected)
        }
        1 if reads != Reads::None => Op::Get(place(random)),
        11..14 if reads == Reads::OfKeys => Op::Get(place(random)),
        1 | 2 => Op::Write(entry(random)),
        3 => Op::Batch(changes(random, reads), Some((place(random), None))),
        4 => of_temporary(random),
        5 => of_expiring(random),
        6 => of_all_maps(random),
        7..11 => transaction(random, reads),
        16..19 => single(random, reads),
        19 => loaded(random),
        _ => Op::Batch(changes(random, reads), None),
    }
}

/// Draws an operation on one key, or on an end of a map.
fn single(random: &mut Random, reads: Reads) -> Op {
    let (place, value) = entry(random);
    match (random.below(9), value) {
        (0, Some(value)) => Op::Insert(place, value),
        (1, Some(value)) => Op::Update(place, value),
        (2, value) => Op::Watched((place, value)),
        (3 | 4, _) => Op::Pop(place.0, random.below(2) == 0),
        (5, _) if reads == Reads::All => Op::Range(place, random.below(2) == 0),
        (6, _) if reads == Reads::All => Op::Ends(place.0),
        (7, _) => random.pick(&[Op::Recover, Op::GiveBack]).clone(),
        _ => Op::Edit(place),
    }
}

/// Draws a load, which may be joined with others.
fn loaded(random: &mut Random) -> Op {
    let (place, value) = entry(random);
    Op::Load(place, value.unwrap_or_default())
}

/// Draws a snapshot, a backup, or an operation on the restored map.
fn of_all_maps(random: &mut Random) -> Op {
    match random.below(6) {
        0 => Op::Backup,
        1 => restored(random),
        2 => Op::Discard,
        _ => Op::Snapshot,
    }
}

/// Draws the restoration of a map of at least one entry.
fn restored(random: &mut Random) -> Op {
    let entries = entries(random).into_iter();
    let entries = entries.map(|((_, key), value)| (key, value.unwrap_or_default()));
    let entries = entries.collect::<BTreeMap<_, _>>().into_iter().collect();
    let how = Restoration {
        kind: random.below(3) as usize,
        copied: random.below(2) == 0,
    };
    Op::Restore(entries, how)
}

/// Draws an operation on the temporary map.
fn of_temporary(random: &mut Random) -> Op {
    let ((_, key), value) = entry(random);
    let place = (TEMPORARY, key);
    match random.below(7) {
        0 => Op::Drop,
        6 => Op::Make(random.below(3) as usize),
        1 => Op::Get(place),
        _ => Op::Write((place, value)),
    }
}

/// Draws an operation on the expiring map.
fn of_expiring(random: &mut Random) -> Op {
    let ((_, key), value) = entry(random);
    let life = *random.pick(&[Life::Over, Life::Long, Life::Endless]);
    match (random.below(6), value) {
        (0, _) => Op::Get((EXPIRING, key)),
        (1, _) => Op::Touch(key, life),
        (2, _) => Op::Sweep,
        (3, value) => Op::Write(((EXPIRING, key), value)),
        (4, Some(value)) => Op::Add(key, value, life),
        (_, value) => Op::Put(key, value.unwrap_or_default(), life),
    }
}

/// The bound of the number of keys prepared in the temporary map for a history that reopens the database.
const KEYS: u64 = 40;

/// The minimum size in bytes of a small pool, which is soon full.
const MIN_ROOM: u64 = 14 << 16;

/// The bound of the random number of additional 64 KiB pages of a small pool.
const EXTRA_PAGES: u64 = 12;

/// Returns a history of `ops` operations by `threads` threads.
///
/// With several threads, one history in four reads single keys of the maps of the batches, and then each batch changes
/// one key. The others read these maps only in transactions and snapshots.
///
/// One history in three reopens the database before its operations, and drops the temporary map during recovery. One in
/// four begins with enough keys of one stem to fill nodes. One in five runs in a small pool.
pub fn history(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    let reads = match threads {
        1 => Reads::All,
        _ if random.below(4) == 0 => Reads::OfKeys,
        _ => Reads::None,
    };
    let reopened = seed % 3 == 2;
    let mut all = Vec::new();
    if reopened {
        let keys = random.below(KEYS);
        all.extend((0..keys).map(|number| {
            let place = (TEMPORARY, vec![number as u8; 1 + number as usize % 3]);
            let value = entry(&mut random).1.unwrap_or_else(|| vec![1; 20]);
            Op::Write((place, Some(value)))
        }));
        all.extend((0..random.below(10)).map(|_| op(&mut random, Reads::All)));
    }
    if random.below(4) == 0 {
        let entry = |number| ((number as u8 % 2, long(number / 2)), Some(vec![2; 8]));
        all.push(Op::Batch((0..2 * NEARLY_FULL).map(entry).collect(), None));
    }
    let prepared = all.len();
    all.extend((0..ops).map(|_| op(&mut random, reads)));
    if reopened {
        let at = prepared + random.below(6) as usize;
        all.insert(at.min(all.len()), Op::Drop);
    }
    History {
        seed,
        ops: all,
        prepared: prepared as u32,
        threads,
        reopened,
        legs: None,
        room: match seed % 5 {
            3 => MIN_ROOM + (random.below(EXTRA_PAGES) << 16),
            _ => u64::MAX,
        },
    }
}
