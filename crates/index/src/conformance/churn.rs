//! Reads beside writers.

use super::crew::{Working, crew, decode, encode};
use super::{Brief, Family, Plan, Reopen, TestedIndex, assert_emptied, done, keys};
use crate::{Direction, Index, Order, Range, Value};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

const THREADS: usize = 4;

/// Marks the values of keys that come and go. The bits below number the stable keys, those above the writes.
const UNSTABLE: u64 = 1 << 32;

/// Scans, in both directions, while keys between the stable ones come and go and the stable ones get new values: each
/// stable key is seen once with a value of its own, all keys are in order and within the bounds, and no value is torn.
pub fn scans_see_stable_keys<S: TestedIndex>(plan: &Plan) {
    let families: [Family; 5] = [keys::fans, keys::few_bytes, keys::dense, keys::paths, keys::chain];
    let mut random = plan.random("scans_see_stable_keys");
    let mut subject = S::create();
    let start = subject.used();
    for family in families {
        let keys = family(&mut random, 600);
        // The keys are in random order, and every third is stable: leaf arrays hold both kinds.
        let stable: BTreeMap<_, _> = keys
            .iter()
            .zip(0..)
            .step_by(3)
            .map(|(key, id)| (&key[..], id))
            .collect();
        let unstable: Vec<_> = keys.iter().filter(|key| !stable.contains_key(&key[..])).collect();
        let in_turn: Vec<_> = stable.iter().map(|(key, id)| (*key, *id)).collect();
        for (key, id) in &stable {
            done(subject.index().upsert(key, &encode(*id)), "upsert");
        }
        subject = subject.reopen(Reopen::Crash);
        let index = subject.index();
        let scanners = Working::new(THREADS / 2);
        crew(THREADS, &mut random, |thread, mut random| {
            if thread < THREADS / 2 {
                let _done = scanners.until_dropped();
                for _ in 0..plan.sized(60) {
                    let (low, high) = (random.pick(&keys), random.pick(&keys));
                    let lower = *random.pick(&[Bound::Unbounded, Bound::Included(&low[..])]);
                    let upper = *random.pick(&[Bound::Unbounded, Bound::Excluded(&high[..])]);
                    let direction = *random.pick(&[Direction::Forward, Direction::Reverse]);
                    scan(index, &stable, lower, upper, direction, random.one_in(3));
                }
            } else {
                let mut round = 0_u64;
                while scanners.on() {
                    // A round puts or removes unstable keys: mostly one, sometimes 30 or 200, scattered over all.
                    round += 1;
                    let first = random.below(unstable.len());
                    let count = *random.pick(&[1, 1, 1, 30, 200]);
                    let insert = random.one_in(2);
                    let (key, id) = &in_turn[random.below(in_turn.len())];
                    assert!(done(index.update(key, &encode(*id | round << 33)), "update"));
                    for key in unstable.iter().cycle().skip(first).take(count) {
                        if insert {
                            done(index.upsert(key, &encode(UNSTABLE | round << 33)), "upsert");
                        } else {
                            done(index.remove(key), "remove");
                        }
                    }
                }
            }
        });
        for key in &keys {
            done(subject.index().remove(key), "remove");
        }
        assert_emptied(&subject, start);
    }
}

/// One scan; if `slow`, other threads get to run in the middle of it.
fn scan(
    index: &dyn Index,
    stable: &BTreeMap<&[u8], u64>,
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
    direction: Direction,
    slow: bool,
) {
    let order = index.order();
    let guard = heap::pin();
    let mut seen: Vec<(Vec<u8>, u64)> = Vec::new();
    let visit = &mut |key: &[u8], value: Value<'_>| {
        if slow && seen.len().is_multiple_of(16) {
            std::thread::yield_now();
        }
        seen.push((key.to_vec(), decode(&value)));
        ControlFlow::Continue(())
    };
    done(
        super::visit(index, (lower, upper), direction, &guard, visit),
        "scan",
    );
    if direction == Direction::Reverse {
        seen.reverse();
    }
    if let Some(at) = seen
        .windows(2)
        .position(|pair| order.compare(&pair[0].0, &pair[1].0).is_ge())
    {
        let around: Vec<_> = seen[at.saturating_sub(3)..]
            .iter()
            .take(8)
            .map(|(key, id)| (Brief(key), id))
            .collect();
        panic!("{direction:?} scan between {lower:?} and {upper:?} out of order: {around:x?}");
    }
    let within = |key: &[u8]| order.contains((lower, upper), key);
    if let Some((key, _)) = seen.iter().find(|(key, _)| !within(key)) {
        panic!(
            "{direction:?} scan between {lower:?} and {upper:?} visits {:?}",
            Brief(key)
        );
    }
    let mut seen = seen.iter().filter(|(_, id)| id & UNSTABLE == 0);
    let mut stable: Vec<_> = stable.iter().filter(|(key, _)| within(key)).collect();
    order.sort(&mut stable, |(key, _)| key);
    for (key, id) in stable {
        let next = seen.next();
        assert!(
            next.is_some_and(|(seen, value)| seen == key && value % UNSTABLE == *id),
            "{direction:?} scan: {:?} with value {id:x} modulo {UNSTABLE:x} comes next, found {:x?}",
            Brief(key),
            next.map(|(key, value)| (Brief(key), value))
        );
    }
    assert!(
        seen.next().is_none(),
        "a scan shows a value without the mark of the unstable ones under a key that is not stable"
    );
}

/// Keys and values that were read do not change until the guard is dropped, whatever is overwritten and removed
/// meanwhile.
pub fn borrowed_values_stay<S: TestedIndex>(plan: &Plan) {
    let mut random = plan.random("borrowed_values_stay");
    let subject = S::create();
    let start = subject.used();
    let keys = keys::fans(&mut random, 400);
    let index = subject.index();
    let readers = Working::new(THREADS / 2);
    crew(THREADS, &mut random, |thread, mut random| {
        if thread < THREADS / 2 {
            let _done = readers.until_dropped();
            for _ in 0..plan.sized(300) {
                let guard = heap::pin();
                let mut held = Vec::new();
                for _ in 0..60 {
                    let value = done(index.get(&keys[random.below(keys.len())], &guard), "get");
                    held.extend(value.map(|value| (None, value, value.to_vec())));
                }
                let low = match index.order() {
                    Order::Keys => Bound::Included(&random.pick(&keys)[..]),
                    Order::Ranks(_) => Bound::Unbounded,
                };
                for entry in Range::new(index, low, Bound::Unbounded, &guard).take(60) {
                    let (key, value) = done(entry, "range");
                    held.push((Some((key, key.to_vec())), value, value.to_vec()));
                }
                for _ in 0..20 {
                    std::thread::yield_now();
                }
                for (key, value, copy) in held {
                    decode(&copy);
                    assert!(*value == copy[..], "a value has changed under its guard");
                    assert!(
                        key.is_none_or(|(key, copy)| key == copy),
                        "a key has changed under its guard"
                    );
                }
            }
        } else {
            let mut id = (thread as u64) << 32;
            while readers.on() {
                id += 1;
                let key = random.pick(&keys);
                if random.one_in(3) {
                    done(index.remove(key), "remove");
                } else {
                    done(index.upsert(key, &encode(id)), "upsert");
                }
            }
        }
    });
    for key in &keys {
        done(subject.index().remove(key), "remove");
    }
    assert_emptied(&subject, start);
}
