use super::*;
use crate::hot::position::{bit, first_difference};
use index::conformance::Random;
use std::collections::BTreeMap;

/// A plan whose entries are keys, compared with a map.
struct Rig {
    plan: Plan,
    keys: BTreeMap<Vec<u8>, usize>,
}

impl Rig {
    fn key(&self, item: Item) -> &[u8] {
        let Item::New(number) = item else {
            panic!("not one of the keys")
        };
        self.keys
            .iter()
            .find(|(_, n)| **n == number)
            .expect("a key of it")
            .0
    }

    /// The reference search for the entry on a key's way, bit by bit.
    fn search(&self, key: &[u8]) -> usize {
        let dense = self.plan.positions().iter().fold(0_u32, |dense, &position| {
            dense << 1 | u32::from(bit(key, position))
        });
        self.plan
            .partials()
            .iter()
            .rposition(|partial| partial & !dense == 0)
            .expect("the first is zero")
    }

    fn insert(&mut self, key: &[u8], number: usize) {
        let index = self.search(key);
        let position = first_difference(self.key(self.plan.item(index)), key).expect("a new key");
        self.plan
            .insert(index, position, bit(key, position), Item::New(number))
            .expect("its place");
        self.keys.insert(key.to_vec(), number);
    }

    /// Every key is found, in the order of keys, and neighbours part where they differ.
    fn check(&self) {
        assert!(
            self.plan.len() > MAX_ENTRIES || self.plan.is_sound(),
            "{:?}",
            self.plan
        );
        assert_eq!(self.plan.len(), self.keys.len());
        for (i, (key, number)) in self.keys.iter().enumerate() {
            assert_eq!(self.search(key), i);
            assert_eq!(self.plan.item(i), Item::New(*number));
        }
        for (i, (a, b)) in self.keys.keys().zip(self.keys.keys().skip(1)).enumerate() {
            assert_eq!(Some(self.plan.parting(i)), first_difference(a, b));
        }
    }
}

fn drawn_key(random: &mut Random) -> Vec<u8> {
    let len = random.below(5);
    (0..len)
        .map(|_| *random.pick(&[0, 1, 0x40, 0x41, 0x80, 0xff]))
        .collect()
}

fn drawn(random: &mut Random, len: usize) -> Rig {
    let (a, b) = loop {
        let (a, b) = (drawn_key(random), drawn_key(random));
        if a < b {
            break (a, b);
        }
    };
    let position = first_difference(&a, &b).expect("two keys");
    let plan = Plan::pair(position, Item::New(0), Item::New(1));
    let mut rig = Rig {
        plan,
        keys: [(a, 0), (b, 1)].into(),
    };
    while rig.keys.len() < len {
        let key = drawn_key(random);
        if !rig.keys.contains_key(&key) {
            rig.insert(&key, rig.keys.len());
            rig.check();
        }
    }
    rig
}

/// Keys are inserted in any order, one more than a node holds, and removed in any order.
#[test]
fn entries_come_and_go() {
    let mut random = Random::new(1);
    for _ in 0..100 {
        let mut rig = drawn(&mut random, MAX_ENTRIES + 1);
        while rig.keys.len() > 2 {
            let index = random.below(rig.keys.len());
            let key = rig.keys.keys().nth(index).expect("in range").clone();
            rig.keys.remove(&key);
            rig.plan.remove(index);
            rig.check();
        }
    }
}

/// A split divides the keys at the first branching bit; drawing one half into the pair of both, and then the other,
/// restores the plan.
#[test]
fn halves_are_put_together_again() {
    let mut random = Random::new(2);
    for _ in 0..100 {
        let rig = drawn(&mut random, MAX_ENTRIES);
        let (position, zero, one) = rig.plan.split();
        assert_eq!(position, rig.plan.positions()[0]);
        assert_eq!(zero.len() + one.len(), rig.plan.len());
        for half in [&zero, &one] {
            assert!(half.len() < 2 || half.is_sound(), "{half:?}");
            assert!(half.positions().iter().all(|&other| other > position));
        }
        let mut whole = Plan::pair(position, Item::New(98), Item::New(99));
        for (half, index) in [(&one, 1), (&zero, 0)] {
            if half.len() == 1 {
                whole.replace(index, half.item(0));
            } else {
                whole.draw_in(index, half);
            }
        }
        let again = Rig {
            plan: whole,
            keys: rig.keys,
        };
        again.check();
    }
}

/// The branch beside which a key belongs has exactly the keys that agree with it up to there.
#[test]
fn the_affected_branch_agrees() {
    let mut random = Random::new(3);
    for _ in 0..200 {
        let rig = drawn(&mut random, 20);
        let key = drawn_key(&mut random);
        let index = rig.search(&key);
        let Some(position) = first_difference(rig.key(rig.plan.item(index)), &key) else {
            continue;
        };
        let range = rig.plan.affected(index, position);
        for (i, other) in rig.keys.keys().enumerate() {
            let agrees = first_difference(other, &key).is_none_or(|first| first >= position);
            assert_eq!(range.contains(&i), agrees, "{other:x?} beside {key:x?}");
        }
    }
}
