//! Changes some operations of a new history into scans, and joins some into one call.
//!
//! These changes use random numbers of their own, so the other operations of the history stay the same.

use crate::map::{Bytes, Op, Scan};
use crashkit::Random;
use std::collections::VecDeque;

/// The number of keys that calls of several writes share.
const SHARED_KEYS: usize = 3;

/// Marks all puts, and half of the removes, to be executed in one call with the marked operations next to them. Each
/// put becomes an insert, an update or an upsert at random.
///
/// Histories whose seed is 7 modulo 8 are gathered. In half of them many writes are to [`SHARED_KEYS`] keys, so that
/// one call writes a key several times; in a quarter all values need a leaf.
pub(super) fn gather(seed: u64, ops: &mut [Op]) {
    let mut random = Random(!seed);
    let of_few = seed % 16 == 7;
    let of_leaves = seed % 32 == 15;
    let few: Vec<Bytes> = ops
        .iter()
        .rev()
        .filter_map(|op| op.key().cloned())
        .take(SHARED_KEYS)
        .collect();
    for op in ops {
        let Some(mut key) = op.key().cloned() else {
            continue;
        };
        if of_few && random.below(2) == 0 {
            key = random.pick(&few).clone();
        }
        *op = match op {
            Op::Insert(_, value) | Op::Update(_, value) | Op::Upsert(_, value) => {
                let mut value = value.to_vec();
                // Values of eight bytes need no leaf, or keep their leaf.
                if of_leaves && value.len() == 8 {
                    value.push(9);
                }
                let value: Bytes = value.into();
                let write = match random.below(4) {
                    0 => Op::Insert(key, value),
                    1 => Op::Update(key, value),
                    _ => Op::Upsert(key, value),
                };
                write.together()
            }
            Op::Remove(_) if random.below(2) == 0 => Op::Remove(key).together(),
            _ => continue,
        };
    }
}

/// Replaces a third of the reads by scans. With `scanner_of`, one of that many threads only scans, and the other
/// threads execute the first of the planned operations.
pub(super) fn add_scans(seed: u64, ops: &mut [Op], keys: &[Bytes], scanner_of: Option<u32>) {
    let mut random = Random(seed.rotate_left(7));
    if let Some(threads) = scanner_of {
        occupy_a_thread(ops, threads, || Op::Scan(Scan::around(keys, &mut random)));
    }
    for op in ops {
        if matches!(op, Op::Get(_)) && random.below(3) == 0 {
            *op = Op::Scan(Scan::around(keys, &mut random));
        }
    }
}

/// Makes one of `threads` threads only read one key, to which about a third of the other threads' operations write.
/// [`add_scans`], which follows, turns a third of these reads into scans too.
pub(super) fn add_gets(seed: u64, ops: &mut [Op], threads: u32) {
    let mut random = Random(seed.rotate_left(11));
    let keys: Vec<Bytes> = ops.iter().filter_map(|op| op.key().cloned()).collect();
    if keys.is_empty() {
        return;
    }
    let key = random.pick(&keys).clone();
    for op in &mut *ops {
        if random.below(3) == 0 {
            *op = Op::Upsert(key.clone(), random.next().to_le_bytes().as_slice().into());
        }
    }
    occupy_a_thread(ops, threads, || Op::Get(key.clone()));
}

/// Fills all turns of one of `threads` threads from `with`, and those of the others with the planned operations, in
/// order. The last of these are dropped: the history stays as long as it was.
fn occupy_a_thread(ops: &mut [Op], threads: u32, mut with: impl FnMut() -> Op) {
    let mut planned: VecDeque<Op> = ops.to_vec().into();
    for (number, op) in ops.iter_mut().enumerate() {
        let is_its_turn = number.is_multiple_of(threads as usize);
        let planned = if is_its_turn { None } else { planned.pop_front() };
        *op = planned.unwrap_or_else(&mut with);
    }
}
