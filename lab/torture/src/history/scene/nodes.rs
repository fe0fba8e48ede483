//! Scenes of nodes that gain or lose children, and of nodes inserted between parent and child.

use crate::history::Maker;
use crate::map::{Bytes, Op};

/// Numbers of children at or near which radix trees change the kind of a node.
const BRINKS: [u64; 10] = [1, 2, 4, 5, 12, 16, 17, 40, 48, 49];

/// More leaves than one leaf array holds, so that a node exists.
const MORE_THAN_ARRAY: u64 = 66;

/// Generates the keys below one node: a prefix, a byte for the child, and bytes that distinguish the child's leaves.
struct Subtree {
    prefix: Vec<u8>,
    first: u8,
}

impl Subtree {
    fn key(&self, child: u64, leaf: u64) -> Bytes {
        let mut key = self.prefix.clone();
        key.push(self.first.wrapping_add((child as u8).wrapping_mul(37)));
        if leaf > 0 {
            key.extend([b'-', leaf as u8]);
        }
        key.into()
    }
}

impl Maker {
    fn subtree(&mut self, lengths: &[u64]) -> Subtree {
        let len = *self.random.pick(lengths);
        Subtree {
            prefix: (0..len).map(|_| self.random.below(256) as u8).collect(),
            first: self.random.below(256) as u8,
        }
    }

    /// Adds keys to choose from, for a node with `children` children: neighbours of the present keys, new children,
    /// keys that diverge within the prefix, and the prefix itself.
    fn keys_around(&mut self, below: &Subtree, children: u64) {
        for child in 0..children + 8 {
            let leaf = 1 + self.random.below(6);
            self.keys.push(below.key(child, leaf));
            self.keys.push(below.key(child, 0));
        }
        for _ in 0..4 {
            let at = self.random.below(below.prefix.len() as u64 + 1) as usize;
            let mut other = below.prefix[..at].to_vec();
            other.push(self.random.below(256) as u8);
            self.keys.push(other.into());
        }
        self.keys.push(below.prefix.clone().into());
    }

    pub(super) fn brink(&mut self, ops: &mut Vec<Op>) {
        let children = *self.random.pick(&BRINKS);
        let below = self.subtree(&[0, 1, 3, 12]);
        let leaves = *self.random.pick(&[20, MORE_THAN_ARRAY, MORE_THAN_ARRAY, 80]);
        for number in 0..leaves {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        // Sometimes most of the keys are removed first.
        if self.random.below(3) == 0 {
            while self.present.len() as u64 > children.max(34) + 2 {
                let at = self.random.below(self.present.len() as u64) as usize;
                ops.push(Op::Remove(self.present.swap_remove(at)));
            }
        }
    }

    pub(super) fn grow(&mut self, children: u64, ops: &mut Vec<Op>) {
        let below = self.subtree(&[1, 3, 12]);
        for number in 0..MORE_THAN_ARRAY {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        for child in children..children + 4 {
            self.plan_insert(below.key(child, 0));
        }
    }

    pub(super) fn shrink(&mut self, made: u64, left: u64, keys: u64, ops: &mut Vec<Op>) {
        let below = self.subtree(&[1, 3, 12]);
        // The first few children have one key each. The others share the rest.
        let lone = (left / 2).min(3);
        let child = |number: u64| match number.checked_sub(lone) {
            None => (number, 0),
            Some(number) => (lone + number % (made - lone), number / (made - lone)),
        };
        for number in 0..keys.max(MORE_THAN_ARRAY + made - left) {
            let (child, leaf) = child(number);
            self.insert(below.key(child, leaf), ops);
        }
        let stays = |number: &u64| child(*number).0 < left;
        let mut gone: Vec<Bytes> = Vec::new();
        let mut kept = 0;
        for number in 0..self.present.len() as u64 {
            if stays(&number) && kept < keys {
                kept += 1;
            } else {
                let (child, leaf) = child(number);
                gone.push(below.key(child, leaf));
            }
        }
        for key in gone {
            self.present.retain(|other| *other != key);
            ops.push(Op::Remove(key));
        }
        self.keys_around(&below, left);
        for child in 0..lone {
            self.plan.push_back(Op::Remove(below.key(child, 0)));
        }
    }

    pub(super) fn blink(&mut self, children: u64, ops: &mut Vec<Op>) {
        let below = self.subtree(&[1, 3, 12]);
        for number in 0..MORE_THAN_ARRAY {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        let key = below.key(children, 0);
        for _ in 0..6 {
            self.plan_insert(key.clone());
            self.plan.push_back(Op::Get(key.clone()));
            self.plan.push_back(Op::Remove(key.clone()));
            self.plan.push_back(Op::Get(key.clone()));
        }
        // Two keys that replace each other: a reader that passes along the node may meet one of them twice.
        let other = below.key(children + 1, 0);
        self.plan_insert(key.clone());
        for _ in 0..6 {
            self.plan.push_back(Op::Remove(key.clone()));
            self.plan_insert(other.clone());
            self.plan_insert(key.clone());
            self.plan.push_back(Op::Remove(other.clone()));
        }
    }

    pub(super) fn part(&mut self, ops: &mut Vec<Op>) {
        let below = self.subtree(&[4, 12, 40]);
        let children = *self.random.pick(&BRINKS);
        for number in 0..MORE_THAN_ARRAY {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        let prefix = &below.prefix;
        let mut parting: Vec<Bytes> = Vec::new();
        for at in 1..prefix.len() {
            let mut key = prefix[..at].to_vec();
            key.extend([prefix[at] ^ 0x55, b'+']);
            parting.push(key.into());
        }
        parting.push(prefix[..prefix.len() - 1].into());
        self.shuffle(&mut parting);
        parting.truncate(8);
        for key in parting.clone() {
            self.plan_insert(key);
        }
        self.shuffle(&mut parting);
        self.plan.extend(parting.into_iter().map(Op::Remove));
    }
}
