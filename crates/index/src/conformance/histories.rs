//! Random histories of one thread, over each key family.

use super::oracle::Oracle;
use super::{Family, Plan, Reopen, TestedIndex, assert_emptied, keys};
use crate::Direction;

const ROUNDS: usize = 3;

/// Makes the index grow, stay about level, and shrink, several times to nothing, and compares it with a `BTreeMap` at
/// every step; closes and reopens it in between.
fn history<S: TestedIndex>(plan: &Plan, name: &str, family: Family, count: usize) {
    let mut random = plan.random(name);
    let mut subject = S::create();
    let start = subject.used();
    let mut oracle = Oracle::default();
    for round in 0..ROUNDS {
        // Other keys each round, so that other keys fill the emptied places.
        let keys = family(&mut random, plan.sized(count));
        for removing in [2, 8, 13] {
            for _ in 0..keys.len() * 3 {
                oracle.step(subject.index(), &keys, removing, &mut random);
                if random.one_in(100) {
                    oracle.read_ranges(subject.index(), &keys, &mut random);
                }
            }
            oracle.compare(subject.index());
            if random.one_in(2) {
                subject = subject.reopen(*random.pick(&[Reopen::Clean, Reopen::Crash]));
                // Sometimes a write comes first, sometimes a read.
                if random.one_in(2) {
                    oracle.step(subject.index(), &keys, removing, &mut random);
                }
                oracle.compare(subject.index());
            }
        }
        match round {
            0 => oracle.empty_by_scan(subject.index(), Direction::Forward),
            1 => oracle.empty_by_scan(subject.index(), Direction::Reverse),
            _ => {
                let mut rest: Vec<_> = oracle.map.keys().cloned().collect();
                random.shuffle(&mut rest);
                for key in &rest {
                    oracle.remove(subject.index(), key);
                }
            }
        }
        oracle.compare(subject.index());
        assert_emptied(&subject, start);
    }
}

macro_rules! histories {
    ($($(#[$doc:meta])* $name:ident: $count:literal of $family:ident;)+) => {$(
        $(#[$doc])*
        pub fn $name<S: TestedIndex>(plan: &Plan) {
            history::<S>(plan, stringify!($name), keys::$family, $count);
        }
    )+};
}

histories! {
    /// Random bytes of random length.
    random_bytes: 5000 of random_bytes;
    /// All 256 byte values at every position of a key.
    every_byte_everywhere: 3000 of every_byte;
    /// Keys of zeros and of 0xff, the empty key among them.
    zeros_and_ones: 2000 of zeros_and_ones;
    /// Thousands of keys, each a prefix of the next.
    chains_of_prefixes: 3000 of chain;
    /// Keys of up to 64 KiB.
    long_keys: 200 of long;
    /// Paths.
    shared_prefixes: 5000 of paths;
    /// Consecutive numbers.
    dense_numbers: 6000 of dense;
    /// Random numbers.
    random_numbers: 6000 of numbers;
    /// An alphabet of three bytes.
    few_distinct_bytes: 5000 of few_bytes;
    /// Nodes of 256 children.
    wide_nodes: 5000 of fans;
    /// Keys of all these families.
    mixed_keys: 6000 of mixed;
}
