//! Scenes of B+-tree nodes, linked to their siblings, that gain or lose entries: more keys with equal first bytes than
//! a few nodes hold.

use crate::history::Maker;
use crate::map::{Bytes, Op};

/// The number of keys inserted between two neighbours in a node.
const RUN: u64 = 16;

impl Maker {
    /// Returns ascending keys, each an eight-byte number with a common prefix and suffix, both of which may be empty.
    fn ascending(&mut self, count: u64) -> Vec<Bytes> {
        // A long prefix puts them below other layers of eight bytes (Masstree).
        let lead = vec![b'l'; *self.random.pick(&[0, 0, 0, 8, 20])];
        let tail = vec![b'~'; *self.random.pick(&[0, 0, 3])];
        (0..count)
            .map(|number| [&lead[..], &(number * 64).to_be_bytes(), &tail].concat().into())
            .collect()
    }

    /// Inserts `there` ascending keys, which leave nodes full, and plans the insertion of more between some of them.
    pub(super) fn splits(&mut self, there: u64, ops: &mut Vec<Op>) {
        let keys = self.ascending(there);
        for key in &keys {
            self.insert(key.clone(), ops);
        }
        for _ in 0..3 {
            let at = self.random.below(there) as usize;
            let mut between: Vec<Bytes> = (0..RUN)
                .map(|i| {
                    let mut key = keys[at].to_vec();
                    let last = key.iter().rposition(|byte| *byte != b'~').unwrap_or_default();
                    key[last] |= 1 + (i as u8 * 7) % 61;
                    key.into()
                })
                .collect();
            self.shuffle(&mut between);
            self.keys.extend(between.iter().cloned());
            for key in between {
                self.plan_insert(key);
            }
        }
        self.keys.extend(keys.into_iter().step_by(7));
    }

    /// Inserts `made` ascending keys, removes all but `left` of them, and plans the removal of those.
    pub(super) fn emptied(&mut self, made: u64, left: u64, ops: &mut Vec<Op>) {
        let mut keys = self.ascending(made);
        for key in &keys {
            self.insert(key.clone(), ops);
        }
        self.keys.extend(keys.iter().step_by(5).cloned());
        // Keeps the last keys of several nodes, or all keys of a few nodes.
        let every = if self.random.below(2) == 0 { made / left } else { 1 };
        let from = self.random.below(made - left * every + 1);
        let stays = |number: u64| {
            number >= from && (number - from).is_multiple_of(every) && (number - from) / every < left
        };
        let mut number = 0;
        keys.retain(|key| {
            number += 1;
            let stays = stays(number - 1);
            if !stays {
                self.present.retain(|other| other != key);
                ops.push(Op::Remove(key.clone()));
            }
            stays
        });
        if self.random.below(2) == 0 {
            self.shuffle(&mut keys);
        }
        self.plan.extend(keys.into_iter().map(Op::Remove));
    }
}
