//! Changes to the operations of a new history: some become scans, and some are joined into one call.
//!
//! Neither consumes random numbers of the other operations: a history without these changes is the same as before they
//! existed.

use crate::map::{Bytes, Op, Scan};
use crashkit::Random;
use std::collections::VecDeque;

/// Number of keys that calls of several writes share.
const SHARED_KEYS: usize = 3;

/// Lets writes go together with those behind them. In half of these histories many are of a few keys, so that calls
/// have several of one key; in a quarter all values need a leaf.
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
                // Eight bytes need no leaf, or keep theirs.
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

/// Makes a share of the reads scans. `scanner_of`: one of this many threads does nothing but scans, and what was
/// planned is left to the others.
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

/// Makes all that one of `threads` threads does gets of one key, to which every third write gives a value; what was
/// planned is left to the other threads.
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

/// Gives all turns of one of `threads` threads to `with`, and what was planned to the others.
fn occupy_a_thread(ops: &mut [Op], threads: u32, mut with: impl FnMut() -> Op) {
    let mut planned: VecDeque<Op> = ops.to_vec().into();
    for (number, op) in ops.iter_mut().enumerate() {
        let is_its_turn = number.is_multiple_of(threads as usize);
        let planned = if is_its_turn { None } else { planned.pop_front() };
        *op = planned.unwrap_or_else(&mut with);
    }
}
