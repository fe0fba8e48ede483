//! Hostile sets of keys.

use crate::conformance::Random;

/// A set of keys; [`Arrival`] gives them an order.
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) keys: fn() -> Vec<Vec<u8>>,
    /// The share of a key's bytes at which keys diverge: upper bound on the nodes of a key's path, per byte of the key.
    pub(super) branching: f64,
}

/// Bytes between adjacent nodes, more than a node can store.
const STRIDE: usize = 24;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "chain: a, aa, aaa, ...",
        keys: || (1..400).map(|len| vec![b'a'; len]).collect(),
        branching: 1.0,
    },
    Shape {
        name: "chain, 24 bytes longer each",
        keys: || (1..160).map(|number| stem(number * STRIDE)).collect(),
        branching: 1.0 / STRIDE as f64,
    },
    Shape {
        name: "comb: teeth below its back",
        keys: || (1..300).map(|len| tooth(vec![b'm'; len], b'a')).rev().collect(),
        branching: 1.0,
    },
    Shape {
        name: "comb: teeth above its back",
        keys: || (1..300).map(|len| tooth(vec![b'm'; len], b'z')).collect(),
        branching: 1.0,
    },
    Shape {
        name: "comb, teeth 24 bytes apart",
        keys: || {
            (1..160)
                .map(|number| tooth(stem(number * STRIDE), 0xff))
                .rev()
                .collect()
        },
        branching: 1.0 / STRIDE as f64,
    },
    Shape {
        name: "stem of 2,000 bytes, dense ends",
        keys: || numbers().map(|end| [stem(2000), end.to_vec()].concat()).collect(),
        branching: 0.01,
    },
    Shape {
        name: "dense numbers",
        keys: || numbers().map(|end| [&[0; 6][..], &end].concat()).collect(),
        branching: 1.0,
    },
];

fn numbers() -> impl Iterator<Item = [u8; 2]> {
    (0..300u16).map(u16::to_be_bytes)
}

/// The beginning of one fixed string.
fn stem(len: usize) -> Vec<u8> {
    let bytes = Random::new(7).bytes(len.max(8));
    bytes[..len].iter().map(|byte| byte & 0x7f).collect()
}

fn tooth(mut back: Vec<u8>, byte: u8) -> Vec<u8> {
    back.push(byte);
    back
}

/// The order in which keys come and go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrival {
    Ascending,
    Descending,
    Shuffled,
}

impl Arrival {
    pub(super) const ALL: [Arrival; 3] = [Arrival::Ascending, Arrival::Descending, Arrival::Shuffled];

    pub(super) fn arrange(self, mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        match self {
            Arrival::Ascending => keys.sort(),
            Arrival::Descending => keys.sort_by(|a, b| b.cmp(a)),
            Arrival::Shuffled => Random::new(3).shuffle(&mut keys),
        }
        keys
    }
}
