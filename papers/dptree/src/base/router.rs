//! The radix tree in DRAM over the leaves' greatest keys (DPTree §2.2), which finds the leaf for a key.
//!
//! It is built once, from all keys, and never changes. A node branches at the first byte in which its keys differ.
//! Among a few keys, a search compares the words of all (I2), without a conditional jump, and then whole keys only
//! where the words are equal.
//!
//! I1 `nodes[0]`, if there is one, holds all keys; a child holds those with its byte.
//! I2 A key's *word* is its first eight bytes as a number, padded with zeros; so words ascend with the keys.

use crate::search::partition;

/// Maximum number of keys that are searched without a node.
const MAX_WITHOUT_NODE: usize = 8;

const NONE: u32 = u32::MAX;

/// The radix tree.
#[derive(Debug, Default)]
pub(crate) struct Router {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The keys' words, and some more, so that a search can always load as many.
    words: Vec<u64>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    /// Number of keys before the node's first, and before the key after its last.
    low: u32,
    high: u32,
    /// All of the node's keys share this many bytes.
    depth: u32,
    branches: Box<[Branch; 257]>,
}

/// The keys of a node that is to be added.
struct NodeKeys {
    low: usize,
    high: usize,
    /// Number of leading bytes that all of them share, as the node above shows.
    known: usize,
    /// The number of the node above, and the byte of its branch to this one.
    above: Option<(usize, usize)>,
}

/// What a node knows of a byte. (Side by side: a search reads one line.)
#[derive(Clone, Copy, Debug)]
struct Branch {
    /// The first key that has that byte or a greater one at the node's depth.
    start: u32,
    child: u32,
}

impl Router {
    /// Builds a router over ascending keys.
    pub(crate) fn new<K: AsRef<[u8]>>(keys: &[K]) -> Router {
        let mut router = Router::default();
        for key in keys {
            router.bytes.extend_from_slice(key.as_ref());
            router.ends.push(router.bytes.len());
            router.words.push(word(key.as_ref()));
        }
        router.words.extend([0; MAX_WITHOUT_NODE]);
        if keys.len() > MAX_WITHOUT_NODE {
            router.add_nodes();
        }
        router
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key at `i`.
    pub(crate) fn key(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[i]]
    }

    /// Adds the root and all nodes below it, from a list of those to add: a recursion as deep as the keys are long could
    /// exhaust a thread's stack.
    fn add_nodes(&mut self) {
        let mut left = vec![NodeKeys {
            low: 0,
            high: self.len(),
            known: 0,
            above: None,
        }];
        while let Some(keys) = left.pop() {
            let number = self.nodes.len();
            let node = self.node_of(&keys);
            for byte in 0..256 {
                let [low, high] = [0, 1].map(|i| node.branches[byte + i].start as usize);
                // In a damaged pool keys may be in any order, and then share fewer bytes than the first and the last
                // do.
                if high - low > MAX_WITHOUT_NODE && (low, high) != (keys.low, keys.high) {
                    left.push(NodeKeys {
                        low,
                        high,
                        known: node.depth as usize + 1,
                        above: Some((number, byte)),
                    });
                }
            }
            self.nodes.push(node);
            if let Some((above, byte)) = keys.above {
                self.nodes[above].branches[byte].child = number as u32;
            }
        }
    }

    /// Returns the node of some keys, without links to others.
    fn node_of(&self, keys: &NodeKeys) -> Node {
        let &NodeKeys { low, high, known, .. } = keys;
        // In a damaged pool the last key may be shorter.
        let [first, last] = [low, high - 1].map(|i| self.key(i).get(known..).unwrap_or_default());
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b);
        let depth = known + shared.count();
        let none = Branch {
            start: high as u32,
            child: NONE,
        };
        let mut branches = Box::new([none; 257]);
        let mut at = low;
        for byte in 0..256 {
            while at < high && self.key(at).get(depth).is_none_or(|&own| usize::from(own) < byte) {
                at += 1;
            }
            branches[byte].start = at as u32;
        }
        Node {
            low: low as u32,
            high: high as u32,
            depth: depth as u32,
            branches,
        }
    }

    /// The number of keys that are less than `key`: the index of the first that is not.
    #[inline]
    pub(crate) fn rank(&self, key: &[u8]) -> usize {
        let mut at = 0;
        // Number of leading bytes of the key that are known to equal those of the keys below the node.
        let mut known = 0;
        let (mut low, mut high) = (0, self.len());
        while let Some(node) = self.nodes.get(at) {
            let depth = node.depth as usize;
            if depth > known {
                (low, high) = (node.low as usize, node.high as usize);
                let shared = &self.key(low)[known..depth];
                let own = &key[known..depth.min(key.len())];
                #[cfg(test)]
                tests::COMPARED.set(tests::COMPARED.get() + shared.len());
                match own.cmp(shared) {
                    std::cmp::Ordering::Less => return low,
                    std::cmp::Ordering::Greater => return high,
                    std::cmp::Ordering::Equal => {}
                }
            }
            let Some(&byte) = key.get(depth) else {
                return node.low as usize;
            };
            let byte = usize::from(byte);
            known = depth + 1;
            let [branch, next] = [node.branches[byte], node.branches[byte + 1]];
            at = match branch.child {
                NONE => {
                    (low, high) = (branch.start as usize, next.start as usize);
                    break;
                }
                child => child as usize,
            };
        }
        let own = word(key);
        let count = high.saturating_sub(low);
        low += match self.words.get(low..).and_then(<[u64]>::first_chunk) {
            Some::<&[u64; MAX_WITHOUT_NODE]>(words) if count <= MAX_WITHOUT_NODE => {
                partition::<MAX_WITHOUT_NODE>(count, |i| words[i] < own)
            }
            _ => {
                let words = self.words.get(low..high).unwrap_or_default();
                words.partition_point(|word| *word < own)
            }
        };
        let words = self.words.get(low..high).unwrap_or_default();
        let mut size = words.iter().take_while(|word| **word == own).count();
        while size > 0 {
            let half = size / 2;
            if self.key(low + half) < key {
                low += half + 1;
                size -= half + 1;
            } else {
                size = half;
            }
        }
        low
    }
}

/// A key's word (I2).
#[inline]
fn word(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    match key.first_chunk::<8>() {
        Some(first) => bytes = *first,
        None => bytes[..key.len()].copy_from_slice(key),
    }
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::conformance::Random;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    thread_local! {
        /// Bytes that searches of this thread have compared at nodes.
        pub(super) static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// Keys as long as they may be, with a node for every few bytes: the router is built on a thread's usual stack, and
    /// a search compares each byte of the key once.
    #[test]
    fn long_keys_take_no_stack() {
        let levels = 2000;
        let stems = (1..levels).map(|level| vec![b'm'; 2 * level]);
        let keys: Vec<_> = stems
            .flat_map(|stem| (b'a'..b'k').map(move |byte| [&stem[..], &[byte]].concat()))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let router = Router::new(&keys);
        assert!(router.nodes.len() >= levels - 1);
        for (rank, key) in keys
            .iter()
            .enumerate()
            .step_by(997)
            .chain([(keys.len() - 1, &keys[keys.len() - 1])])
        {
            COMPARED.set(0);
            assert_eq!(router.rank(key), rank);
            let compared = COMPARED.get();
            assert!(compared <= key.len(), "{compared} bytes of {}", key.len());
        }
    }

    /// Any key's rank is the number of keys below it, whatever keys there are.
    #[test]
    fn ranks_count() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let max = if random.one_in(2) { 3 } else { 256 };
            let alphabet = 1 + random.below(max);
            let mut key = |longest: usize| -> Vec<u8> {
                let len = random.below(longest + 1);
                (0..len).map(|_| random.below(alphabet) as u8).collect()
            };
            let keys: BTreeSet<Vec<u8>> = (0..seed * 3).map(|_| key(6)).collect();
            let keys: Vec<_> = keys.into_iter().collect();
            let router = Router::new(&keys);
            for _ in 0..200 {
                let wanted = key(7);
                let rank = keys.iter().filter(|key| **key < wanted).count();
                assert_eq!(router.rank(&wanted), rank, "seed {seed}, key {wanted:?}");
            }
        }
    }
}
