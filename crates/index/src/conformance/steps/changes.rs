//! Every kind of change of a radix tree.

use super::super::Entries;
use crate::Index;

/// A change of a radix tree: a name, the entries before it, and the change.
#[derive(Clone, Debug)]
pub struct StepChange {
    /// Its name.
    pub name: &'static str,
    /// The entries before it.
    pub before: Entries,
    /// The key that changes.
    pub key: Vec<u8>,
    /// The new value; `None` removes the key.
    pub value: Option<&'static [u8]>,
}

impl StepChange {
    /// Applies it.
    pub fn apply(&self, tree: &impl Index) {
        match self.value {
            Some(value) => tree.upsert(&self.key, value).expect("no error"),
            None => assert!(tree.remove(&self.key).expect("no error")),
        }
    }

    /// The entries after it.
    pub fn after(&self) -> Entries {
        let mut after = self.before.clone();
        match self.value {
            Some(value) => after.insert(self.key.clone(), value.to_vec()),
            None => after.remove(&self.key),
        };
        after
    }
}

/// Nodes: number of children, and of keys below each. A node is needed for many keys; few fit into one array of
/// leaves.
const NODES: [(u8, u8); 12] = [
    (3, 1),
    (4, 1),
    (5, 1),
    (13, 1),
    (16, 1),
    (17, 1),
    (48, 1),
    (49, 1),
    (4, 20),
    (16, 6),
    (17, 5),
    (47, 2),
];

/// Every kind of change, with `lead` in front of all keys: prefixes of no, some, and more bytes than a node keeps,
/// and depths too large for one byte.
pub fn changes() -> Vec<StepChange> {
    let mut changes = Vec::new();
    for lead in [0, 1, 3, 4, 40, 200, 3000] {
        let key = |rest: &[u8]| [&vec![0x77; lead][..], rest].concat();
        let entries = |keys: &[&[u8]]| -> Entries {
            let value = |rest: &&[u8]| (key(rest), [b"old: ", *rest].concat());
            keys.iter().map(value).collect()
        };
        // A node whose first child is a node: its first leaves share more bytes than all of them do.
        let node: &[&[u8]] = &[
            &[5, 5, 5, 0x11, 1],
            &[5, 5, 5, 0x11, 2],
            &[5, 5, 5, 0x12],
            &[5, 5, 5, 0x22],
        ];
        let beside = |rest: &'static [u8]| [node, &[rest]].concat();
        let mut change = |name, before: &[&[u8]], rest: &[u8], value| {
            let (before, key) = (entries(before), key(rest));
            changes.push(StepChange {
                name,
                before,
                key,
                value,
            });
        };
        change("first key", &[], &[1], Some(b"new"));
        change("two keys diverge", &[&[1, 2, 3]], &[1, 2, 4], Some(b"new"));
        change(
            "a key ends where they diverge",
            &[&[1, 2, 3]],
            &[1, 2],
            Some(b"new"),
        );
        change("into a node", node, &[5, 5, 5, 0x32], Some(b"new"));
        change("split at the first digit", node, &[0x15], Some(b"new"));
        change("split within the prefix", node, &[5, 0x15], Some(b"new"));
        change("split at the last digit", node, &[5, 5, 5 + 1], Some(b"new"));
        change("split by a key that ends", node, &[5, 5], Some(b"new"));
        change("split below a node", &beside(&[0x15]), &[5, 6], Some(b"new"));
        change("value replaced", node, &[5, 5, 5, 0x22], Some(b"new"));
        change("value of eight bytes", node, &[5, 5, 5, 0x22], Some(b"8 bytes!"));
        change("removed from a node", node, &[5, 5, 5, 0x22], None);
        change("a leaf is left", &[&[1, 2, 3], &[1, 2, 4]], &[1, 2, 4], None);
        change("a node is left", &beside(&[0x15]), &[0x15], None);
        change("a node is left for long", &beside(&[5, 5, 6]), &[5, 5, 6], None);
        change("a key that ended is removed", &beside(&[5, 5]), &[5, 5], None);
        change("last key", &[&[1]], &[1], None);
    }
    for (children, each) in NODES {
        let below = |byte| (7..7 + each).map(move |last| (vec![7, 7, byte, last], vec![byte]));
        let before: Entries = (0..children).flat_map(below).collect();
        let mut change = |name, key: &[u8], value| {
            changes.push(StepChange {
                name,
                before: before.clone(),
                key: key.to_vec(),
                value,
            });
        };
        change("into a node of some kind", &[7, 7, 200], Some(b"new"));
        change("from a node of some kind", &[7, 7, 1, 7], None);
        change("below a node of some kind", &[7, 7, 1, 99], Some(b"new"));
        change("a node of some kind splits", &[7, 8], Some(b"new"));
        change("a key that ends at a node of some kind", &[7, 7], Some(b"new"));
    }
    changes
}
