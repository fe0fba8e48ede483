//! A `BTreeMap` beside the index: every operation is applied to both, and both must answer alike.

use super::{ALL, Brief, Random, assert_sound, done};
use crate::{Action, Direction, Edit, Edits, Error, Index, Order, Range, Value};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// The expected contents of the index.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) map: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether other writers may cause an edit to be asked again.
    pub(super) asks_again: bool,
}

/// An edit that records its calls, and checks their order.
struct Spy<'v> {
    action: Action,
    value: &'v [u8],
    seen: Vec<Option<Vec<u8>>>,
    valued: Cell<bool>,
}

impl Edit for Spy<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.seen.push(current.map(<[u8]>::to_vec));
        self.action
    }
    fn value(&self) -> &[u8] {
        assert!(
            !self.seen.is_empty(),
            "the edit is asked for its value before its decision"
        );
        self.valued.set(true);
        self.value
    }
}

/// Edits of several keys that are checked as they are applied.
struct Spies<'o> {
    oracle: &'o mut Oracle,
    keys: &'o [&'o [u8]],
    edits: Vec<Spy<'o>>,
    done: usize,
    /// The edit after which to break off.
    last: usize,
}

impl Edits for Spies<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut self.edits[i]
    }

    fn done(&mut self, i: usize, action: Result<Action, Error>) -> ControlFlow<()> {
        assert_eq!(i, self.done, "edits are done in their order");
        self.done += 1;
        let took = done(action, "write_many");
        self.oracle.check_edit(self.keys[i], &self.edits[i], 2, took);
        match i == self.last {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Oracle {
    pub(super) fn get(&self, index: &dyn Index, key: &[u8]) {
        let guard = heap::pin();
        let got = done(index.get(key, &guard), "get");
        assert_same(got, self.map.get(key), key);
    }

    pub(super) fn insert(&mut self, index: &dyn Index, key: &[u8], value: &[u8]) {
        let absent = !self.map.contains_key(key);
        assert_eq!(
            done(index.insert(key, value), "insert"),
            absent,
            "insert {:?}",
            Brief(key)
        );
        if absent {
            self.map.insert(key.to_vec(), value.to_vec());
        }
    }

    pub(super) fn upsert(&mut self, index: &dyn Index, key: &[u8], value: &[u8]) {
        done(index.upsert(key, value), "upsert");
        self.map.insert(key.to_vec(), value.to_vec());
    }

    pub(super) fn update(&mut self, index: &dyn Index, key: &[u8], value: &[u8]) {
        let present = self.map.contains_key(key);
        assert_eq!(
            done(index.update(key, value), "update"),
            present,
            "update {:?}",
            Brief(key)
        );
        if present {
            self.map.insert(key.to_vec(), value.to_vec());
        }
    }

    pub(super) fn remove(&mut self, index: &dyn Index, key: &[u8]) {
        let present = self.map.remove(key).is_some();
        assert_eq!(
            done(index.remove(key), "remove"),
            present,
            "remove {:?}",
            Brief(key)
        );
    }

    pub(super) fn compare_and_swap(
        &mut self,
        index: &dyn Index,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) {
        let holds = self.map.get(key).map(Vec::as_slice) == expected;
        let swapped = done(index.compare_and_swap(key, expected, new), "compare_and_swap");
        assert_eq!(
            swapped,
            holds,
            "compare and swap {:?}, {expected:?}, {new:?}",
            Brief(key)
        );
        match new {
            Some(new) if holds => drop(self.map.insert(key.to_vec(), new.to_vec())),
            None if holds => drop(self.map.remove(key)),
            _ => {}
        }
    }

    pub(super) fn edit(&mut self, index: &dyn Index, key: &[u8], action: Action, value: &[u8]) {
        let mut spy = Spy {
            action,
            value,
            seen: Vec::new(),
            valued: Cell::new(false),
        };
        let took = done(index.write(key, &mut spy), "write");
        self.check_edit(key, &spy, 1, took);
    }

    /// Checks that an edit was applied correctly, and applies it to the map.
    fn check_edit(&mut self, key: &[u8], spy: &Spy<'_>, asks: usize, took: Action) {
        let current = self.map.get(key).cloned();
        let expected = match (spy.action, &current) {
            (Action::Remove, None) => Action::Keep,
            (action, _) => action,
        };
        assert_eq!(took, expected, "write {:?} returns what it did", Brief(key));
        assert!(
            spy.seen.iter().all(|seen| *seen == current),
            "write {:?} asks the edit with the key's value: {:?}",
            Brief(key),
            spy.seen
        );
        let asked = spy.seen.len();
        assert!(
            asked > 0 && (asked <= asks || self.asks_again),
            "write {:?} asks the edit at most {asks} times: {asked}",
            Brief(key)
        );
        assert!(
            spy.action == Action::Put || !spy.valued.get(),
            "a value is asked for only to be put"
        );
        match expected {
            Action::Keep => {}
            Action::Put => drop(self.map.insert(key.to_vec(), spy.value.to_vec())),
            Action::Remove => drop(self.map.remove(key)),
        }
    }

    /// Edits several keys, and may break off before the last ones.
    fn edit_many(&mut self, index: &dyn Index, keys: &[Vec<u8>], removing: usize, random: &mut Random) {
        let count = random.below(80);
        let some: Vec<_> = (0..count).map(|_| near(keys, random)).collect();
        let some: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
        let values: Vec<_> = some.iter().map(|_| value(random)).collect();
        let last = match random.one_in(4) {
            true => random.below(count + 1),
            false => count,
        };
        let edits = values.iter().map(|value| Spy {
            action: match random.below(16) {
                0 => Action::Keep,
                other if other <= removing => Action::Remove,
                _ => Action::Put,
            },
            value,
            seen: Vec::new(),
            valued: Cell::new(false),
        });
        let mut spies = Spies {
            edits: edits.collect(),
            oracle: self,
            keys: &some,
            done: 0,
            last,
        };
        index.write_many(&some, &mut spies);
        let expected = count.min(last + 1);
        assert_eq!(
            spies.done, expected,
            "a write of several keys ends at the wrong one"
        );
    }

    fn multi_get(&self, index: &dyn Index, keys: &[&[u8]]) {
        let guard = heap::pin();
        let mut found = vec![None; keys.len()];
        let each = &mut |i: usize, value| {
            assert!(
                found[i].replace(value).is_none(),
                "multi_get answers key {i} twice"
            );
        };
        done(index.multi_get(keys, &guard, each), "multi_get");
        for (&key, found) in keys.iter().zip(found) {
            let Some(found) = found else {
                panic!("multi_get leaves out {:?}", Brief(key))
            };
            assert_same(found, self.map.get(key), key);
        }
    }

    /// The entries between two bounds, in the index's order.
    fn between(&self, order: Order, (lower, upper): Bounds<'_>) -> Vec<(&[u8], &[u8])> {
        if !order.has_between(lower, upper) {
            return Vec::new();
        }
        match order {
            Order::Keys => self
                .map
                .range::<[u8], _>((lower, upper))
                .map(|(k, v)| (&k[..], &v[..]))
                .collect(),
            Order::Ranks(_) => {
                let all = self.map.iter().map(|(k, v)| (&k[..], &v[..]));
                let mut some: Vec<_> = all
                    .filter(|(key, _)| order.contains((lower, upper), key))
                    .collect();
                order.sort(&mut some, |(key, _)| key);
                some
            }
        }
    }

    /// Scans, and breaks off after `limit` keys.
    fn scan(&self, index: &dyn Index, bounds: Bounds<'_>, direction: Direction, limit: usize) {
        let guard = heap::pin();
        let mut forward = self.between(index.order(), bounds).into_iter();
        let mut left = limit;
        let visit = &mut |key: &[u8], value: Value<'_>| {
            assert!(left > 0, "the scan goes on after the visitor has broken it off");
            left -= 1;
            let expected = match direction {
                Direction::Forward => forward.next(),
                Direction::Reverse => forward.next_back(),
            };
            assert_entry((key, value), expected);
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        done(super::visit(index, bounds, direction, &guard, visit), "scan");
        let missed = match direction {
            Direction::Forward => forward.next(),
            Direction::Reverse => forward.next_back(),
        };
        if let Some((key, _)) = missed.filter(|_| left > 0) {
            panic!("the scan ends before {:?}", Brief(key));
        }
    }

    /// Takes up to `limit` entries from either end of an iterator at random.
    fn iterate<'k>(
        &self,
        range: Range<'_>,
        expected: impl DoubleEndedIterator<Item = (&'k [u8], &'k [u8])>,
        limit: usize,
        random: &mut Random,
    ) {
        let (mut range, mut expected) = (range, expected);
        let mut back = random.one_in(2);
        for _ in 0..limit {
            if random.one_in(6) {
                back = !back;
            }
            let (got, expected) = if back {
                (range.next_back(), expected.next_back())
            } else {
                (range.next(), expected.next())
            };
            match (got.transpose(), expected) {
                (Ok(None), None) => return,
                (Ok(Some(entry)), expected) => assert_entry(entry, expected),
                (Ok(None), Some((key, _))) => panic!("the iterator ends before {:?}", Brief(key)),
                (Err(error), _) => panic!("the iterator fails: {error}"),
            }
        }
    }

    /// Reads ranges by every operation, with bounds at, near and far from keys.
    pub(super) fn read_ranges(&self, index: &dyn Index, keys: &[Vec<u8>], random: &mut Random) {
        let (low, high) = (near(keys, random), near(keys, random));
        let bounds = (bound(&low, random), bound(&high, random));
        let limit = random.below(300) + 1;
        self.scan(index, bounds, Direction::Forward, limit);
        self.scan(index, bounds, Direction::Reverse, limit);
        let guard = heap::pin();
        let limit = random.below(1000) + 1;
        let order = index.order();
        let bounds = if order.is_by_keys() { bounds } else { ALL };
        let range = Range::new(index, bounds.0, bounds.1, &guard);
        self.iterate(range, self.between(order, bounds).into_iter(), limit, random);
        let prefix = &low[..low.len() - random.below(low.len().min(4) + 1)];
        let mut range = Range::with_prefix(index, prefix, &guard);
        if !order.is_by_keys() {
            assert!(matches!(range.next(), Some(Err(Error::Unordered))) && range.next().is_none());
            let scan = index.scan(ALL.0, ALL.1, Direction::Forward, &guard, &mut |_, _| {
                ControlFlow::Break(())
            });
            assert!(matches!(scan, Err(Error::Unordered)));
            return;
        }
        let from_prefix = self.between(order, (Bound::Included(prefix), Bound::Unbounded));
        let with_prefix = from_prefix.into_iter();
        let with_prefix: Vec<_> = with_prefix
            .take_while(|(key, _)| key.starts_with(prefix))
            .collect();
        self.iterate(range, with_prefix.into_iter(), usize::MAX, random);
    }

    /// One random operation on some of these keys; the more `removing` (of 16), the fewer keys stay.
    pub(super) fn step(&mut self, index: &dyn Index, keys: &[Vec<u8>], removing: usize, random: &mut Random) {
        match random.below(12) {
            0 => self.get(index, &near(keys, random)),
            1 => {
                let count = random.below(40);
                let some: Vec<_> = (0..count).map(|_| &random.pick(keys)[..]).collect();
                self.multi_get(index, &some);
            }
            2 if random.one_in(8) => self.edit_many(index, keys, removing, random),
            _ => self.step_at(index, &keys[random.below(keys.len())], removing, random),
        }
    }

    /// One random operation on this key.
    pub(super) fn step_at(&mut self, index: &dyn Index, key: &[u8], removing: usize, random: &mut Random) {
        let held = self.map.get(key).cloned();
        let new = &value(random)[..];
        if random.one_in(4) {
            match random.below(8) {
                0 => self.edit(index, key, Action::Keep, &[]),
                1 => self.compare_and_swap(index, key, None, None),
                2 => self.compare_and_swap(index, key, Some(&value(random)), Some(new)),
                _ => self.get(index, key),
            }
        } else if random.below(16) < removing {
            match random.below(4) {
                0 => self.compare_and_swap(index, key, held.as_deref(), None),
                1 => self.edit(index, key, Action::Remove, &[]),
                _ => self.remove(index, key),
            }
        } else {
            match random.below(8) {
                0 => self.compare_and_swap(index, key, held.as_deref(), Some(new)),
                1 => self.compare_and_swap(index, key, None, Some(new)),
                2 => self.edit(index, key, Action::Put, new),
                3 => self.update(index, key, new),
                4 | 5 => self.insert(index, key, new),
                _ => self.upsert(index, key, new),
            }
        }
    }

    /// Removes every key from within a scan, as the scan visits it.
    pub(super) fn empty_by_scan(&mut self, index: &dyn Index, direction: Direction) {
        let guard = heap::pin();
        let left = self.between(index.order(), ALL).into_iter();
        let left: Vec<_> = left.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let mut left = left.into_iter();
        let visit = &mut |key: &[u8], value: Value<'_>| {
            let expected = match direction {
                Direction::Forward => left.next(),
                Direction::Reverse => left.next_back(),
            };
            assert_entry(
                (key, value),
                expected.as_ref().map(|(key, value)| (&key[..], &value[..])),
            );
            self.remove(index, key);
            ControlFlow::Continue(())
        };
        done(super::visit(index, ALL, direction, &guard, visit), "scan");
        assert!(
            self.map.is_empty(),
            "a scan that removes what it visits has left {} keys",
            self.map.len()
        );
    }

    /// Compares the whole index, from both ends, and runs its own check.
    pub(super) fn compare(&self, index: &dyn Index) {
        self.scan(index, ALL, Direction::Forward, usize::MAX);
        self.scan(index, ALL, Direction::Reverse, usize::MAX);
        for key in self.map.keys() {
            self.get(index, key);
        }
        assert_sound(index, self.map.len());
    }
}

/// A key, one close to a key, or a random one.
fn near(keys: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut key = random.pick(keys).clone();
    match random.below(6) {
        0 => drop(key.pop()),
        1 if key.len() < crate::MAX_KEY => key.push(*random.pick(&[0, b'a', 0xff])),
        2 if !key.is_empty() => {
            let at = random.below(key.len());
            key[at] = key[at].wrapping_add(*random.pick(&[1, 0xff]));
        }
        3 => {
            let len = random.below(10);
            key = random.bytes(len);
        }
        _ => {}
    }
    key
}

fn bound<'k>(key: &'k [u8], random: &mut Random) -> Bound<&'k [u8]> {
    match random.below(8) {
        0 => Bound::Unbounded,
        1..4 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

/// A value: mostly small, half of them of eight bytes, which indexes store differently.
pub(super) fn value(random: &mut Random) -> Vec<u8> {
    let len = match random.below(32) {
        0..16 => 8,
        16..24 => *random.pick(&[0, 1, 7, 9, 15, 16, 17]),
        24..31 => random.below(300),
        _ => random.below(6000),
    };
    random.bytes(len)
}

#[track_caller]
fn assert_same(got: Option<Value<'_>>, expected: Option<&Vec<u8>>, key: &[u8]) {
    if got.as_deref() != expected.map(Vec::as_slice) {
        let (got, expected) = (got.as_deref().map(Brief), expected.map(|value| Brief(value)));
        panic!("{:?} holds {got:?} and should hold {expected:?}", Brief(key));
    }
}

#[track_caller]
fn assert_entry((key, value): (&[u8], Value<'_>), expected: Option<(&[u8], &[u8])>) {
    if expected != Some((key, &value)) {
        let expected = expected.map(|(key, value)| (Brief(key), Brief(value)));
        panic!("{:?} where {expected:?} comes next", (Brief(key), Brief(&value)));
    }
}
