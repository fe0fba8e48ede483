//! Growing and shrinking: every size of node and leaf array, in both directions.

use super::oracle::{Oracle, value};
use super::{Family, Plan, Random, Reopen, TestedIndex, assert_emptied, keys};

/// Sizes around every capacity of a node or a leaf array.
const SIZES: [usize; 22] = [
    1, 2, 3, 4, 5, 6, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 130, 256,
];

/// The order in which keys come and go.
#[derive(Clone, Copy, Debug)]
enum Order {
    Up,
    Down,
    Random,
}

impl Order {
    const ALL: [Order; 3] = [Order::Up, Order::Down, Order::Random];

    fn arrange(self, keys: &mut [Vec<u8>], random: &mut Random) {
        match self {
            Order::Up => keys.sort_unstable(),
            Order::Down => keys.sort_unstable_by(|a, b| b.cmp(a)),
            Order::Random => random.shuffle(keys),
        }
    }
}

/// Nodes of each size, checked as a whole after each insert or remove near a size at which they change.
pub fn grows_and_empties_key_by_key<S: TestedIndex>(plan: &Plan) {
    // One key below each child of a node; a key that ends where the child is, and one that continues; three keys below
    // each child.
    const TAILS: [&[&[u8]]; 3] = [&[b""], &[b"", b"tail"], &[b"1", b"2", b"3"]];
    let mut random = plan.random("grows_and_empties_key_by_key");
    let mut subject = S::create();
    let start = subject.used();
    let mut oracle = Oracle::default();
    for (i, size) in SIZES.into_iter().enumerate() {
        let mut bytes: Vec<u8> = (0..=255).collect();
        random.shuffle(&mut bytes);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for byte in &bytes[..size] {
            keys.extend(
                TAILS[i % 3]
                    .iter()
                    .map(|tail| [&b"stem"[..], &[*byte], tail].concat()),
            );
        }
        keys.push(b"stem".to_vec());
        let [up, down] = [(); 2].map(|()| *random.pick(&Order::ALL));
        up.arrange(&mut keys, &mut random);
        let telling = |left: usize| SIZES.iter().any(|size| left.abs_diff(*size) <= 1);
        for key in &keys {
            oracle.insert(subject.index(), key, &value(&mut random));
            if telling(oracle.map.len()) {
                oracle.compare(subject.index());
            }
        }
        if random.one_in(2) {
            subject = subject.reopen(*random.pick(&[Reopen::Clean, Reopen::Crash]));
        }
        down.arrange(&mut keys, &mut random);
        for key in &keys {
            oracle.remove(subject.index(), key);
            if telling(oracle.map.len()) {
                oracle.compare(subject.index());
            }
        }
        assert_emptied(&subject, start);
    }
}

/// Many keys come, and all go again, in every order.
pub fn grows_and_empties_all_at_once<S: TestedIndex>(plan: &Plan) {
    let families: [Family; 5] = [
        keys::dense,
        keys::numbers,
        keys::few_bytes,
        keys::fans,
        keys::paths,
    ];
    let mut random = plan.random("grows_and_empties_all_at_once");
    let mut subject = S::create();
    let start = subject.used();
    let mut oracle = Oracle::default();
    for family in families {
        for order in Order::ALL {
            let mut keys = family(&mut random, plan.sized(5000));
            order.arrange(&mut keys, &mut random);
            for key in &keys {
                oracle.insert(subject.index(), key, &key[..key.len().min(8)]);
            }
            oracle.compare(subject.index());
            subject = subject.reopen(*random.pick(&[Reopen::Clean, Reopen::Crash]));
            random.pick(&Order::ALL).arrange(&mut keys, &mut random);
            let half = keys.len() / 2;
            for (i, key) in keys.iter().enumerate() {
                if i == half {
                    oracle.compare(subject.index());
                }
                oracle.remove(subject.index(), key);
            }
            assert_emptied(&subject, start);
        }
    }
}

/// Values are overwritten, and keys removed and reinserted, many times over; their space is given back.
pub fn overwrites_leak_nothing<S: TestedIndex>(plan: &Plan) {
    let mut random = plan.random("overwrites_leak_nothing");
    let subject = S::create();
    let start = subject.used();
    let mut oracle = Oracle::default();
    let keys = keys::numbers(&mut random, 100);
    for _ in 0..plan.sized(60_000) {
        let key = random.pick(&keys);
        match random.below(10) {
            0 => oracle.remove(subject.index(), key),
            _ => oracle.upsert(subject.index(), key, &value(&mut random)),
        }
    }
    oracle.compare(subject.index());
    for key in &keys {
        oracle.remove(subject.index(), key);
    }
    assert_emptied(&subject, start);
}
