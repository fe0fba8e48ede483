//! P-HOT built from sorted pairs: its form. What a pair costs is tested in `builds`.

use index::conformance::{Costs, Random};
use index::{Bulk, Index, OnHeap, Parts, Sorted};
use pmem::Counting;
use wollemi_recipe::Hot;

type Rig = Costs<Hot<Counting>>;

const VALUE: &[u8] = b"12345678";

/// Maximum number of entries of a node.
const MAX: usize = 32;

/// Builds an index of these keys.
fn build(heap: &heap::Heap<Counting>, keys: &[Vec<u8>]) -> Hot<Counting> {
    let mut pairs = Sorted::new(keys.iter().map(|key| (key, VALUE)));
    let built = Hot::build(heap, b"built", Parts::new(&mut pairs));
    built.expect("room for ascending keys")
}

/// The first bit at which two keys differ, each byte after a bit that says that it exists.
fn parting(a: &[u8], b: &[u8]) -> usize {
    let bits = |key: &[u8]| -> Vec<bool> {
        let bytes = key.iter();
        let bits =
            bytes.flat_map(|byte| std::iter::once(true).chain((0..8).map(move |i| byte << i & 0x80 != 0)));
        bits.chain([false]).collect()
    };
    let (a, b) = (bits(a), bits(b));
    a.iter().zip(&b).position(|(a, b)| a != b).expect("two keys")
}

/// A binary trie.
struct Trie {
    /// The least height of a cut into nodes.
    height: usize,
    sides: Option<Box<[Trie; 2]>>,
}

impl Trie {
    /// The trie of keys that part from each other at these positions.
    fn of(partings: &[usize]) -> Trie {
        let first = (0..partings.len()).min_by_key(|&i| partings[i]);
        let Some(first) = first else {
            return Trie {
                height: 0,
                sides: None,
            };
        };
        let sides = [Trie::of(&partings[..first]), Trie::of(&partings[first + 1..])];
        let fits = |height: &usize| sides.iter().map(|side| side.entries(*height)).sum::<usize>() <= MAX;
        let least = sides.iter().map(|side| side.height).max().unwrap_or(0).max(1);
        Trie {
            height: (least..).find(fits).expect("some height"),
            sides: Some(Box::new(sides)),
        }
    }

    /// The least number of entries that it takes in a node whose entries must be lower than `height`.
    fn entries(&self, height: usize) -> usize {
        match &self.sides {
            Some(sides) if self.height >= height => sides.iter().map(|side| side.entries(height)).sum(),
            _ => 1,
        }
    }
}

/// Sets of keys that make tries of different forms.
fn families(random: &mut Random, count: usize) -> [Vec<Vec<u8>>; 5] {
    let numbers = |random: &mut Random| random.number().to_be_bytes().to_vec();
    let few_bytes = |random: &mut Random| {
        let len = random.below(12);
        (0..len).map(|_| *random.pick(b"\0ab\xff")).collect()
    };
    let tails = |random: &mut Random| {
        let stem = vec![b's'; random.below(40)];
        let tail = random.below(3);
        [stem, random.bytes(tail)].concat()
    };
    [
        (0..count).map(|_| numbers(random)).collect(),
        (0..count).map(|_| few_bytes(random)).collect(),
        (0..count).map(|_| tails(random)).collect(),
        (0..count as u64).map(|i| i.to_be_bytes().to_vec()).collect(),
        (0..count.min(700)).map(|len| vec![b'a'; len]).collect(),
    ]
}

/// A built tree is as low as its keys allow, and never higher than one made by inserts.
#[test]
fn a_tree_is_as_low_as_it_can_be() {
    for count in [1, 2, 31, 32, 33, 300, 4000] {
        let mut random = Random::new(count as u64);
        for (number, mut keys) in families(&mut random, count).into_iter().enumerate() {
            keys.sort();
            keys.dedup();
            println!("family {number}, {} keys", keys.len());
            let partings: Vec<usize> = keys.windows(2).map(|pair| parting(&pair[0], &pair[1])).collect();
            let rig = Rig::create();
            let built = build(rig.index().heap(), &keys).form().expect("sound");
            assert_eq!(built.height, Trie::of(&partings).height);
            random.shuffle(&mut keys);
            for key in &keys {
                rig.index().upsert(key, VALUE).expect("room");
            }
            let inserted = rig.index().form().expect("sound");
            println!("{built:?}\n{inserted:?}");
            assert!(built.height <= inserted.height);
        }
    }
}
