//! The longest keys and values, those too long, and values that change their length.

use super::oracle::Oracle;
use super::{Plan, Reopen, TestedIndex, assert_emptied, assert_sound, done};
use crate::{Action, Direction, Error, Index, MAX_KEY, MAX_VALUE};
use std::ops::{Bound, ControlFlow};

#[track_caller]
fn assert_key_too_long<T: std::fmt::Debug>(result: Result<T, Error>, operation: &str) {
    assert!(
        matches!(result, Err(Error::KeyTooLong(len)) if len == MAX_KEY + 1),
        "{operation} with a key of {} bytes: {result:?}",
        MAX_KEY + 1
    );
}

/// A key of [`MAX_KEY`] bytes works; every operation refuses one byte more and changes nothing.
pub fn longest_keys<S: TestedIndex>(plan: &Plan) {
    let mut random = plan.random("longest_keys");
    let mut subject = S::create();
    let start = subject.used();
    let mut oracle = Oracle::default();
    let mut long = random.bytes(MAX_KEY);
    oracle.insert(subject.index(), &long, b"longest");
    long.push(0);
    refuses_key(subject.index(), &long);
    oracle.compare(subject.index());
    subject = subject.reopen(Reopen::Crash);
    oracle.compare(subject.index());
    oracle.remove(subject.index(), &long[..MAX_KEY]);
    assert_emptied(&subject, start);
}

fn refuses_key(index: &dyn Index, long: &[u8]) {
    let guard = heap::pin();
    assert_key_too_long(index.get(long, &guard), "get");
    assert_key_too_long(
        index.multi_get(&[b"short", long], &guard, &mut |_, _| {}),
        "multi_get",
    );
    assert_key_too_long(index.insert(long, b"value"), "insert");
    assert_key_too_long(index.upsert(long, b"value"), "upsert");
    assert_key_too_long(index.update(long, b"value"), "update");
    assert_key_too_long(index.remove(long), "remove");
    assert_key_too_long(index.compare_and_swap(long, None, None), "compare_and_swap");
    assert_key_too_long(
        index.compare_and_swap(long, None, Some(b"value")),
        "compare_and_swap",
    );
    for (lower, upper) in [
        (Bound::Included(long), Bound::Unbounded),
        (Bound::Unbounded, Bound::Excluded(long)),
    ] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let visit = &mut |_: &[u8], _: crate::Value<'_>| ControlFlow::Continue(());
            assert_key_too_long(
                super::visit(index, (lower, upper), direction, &guard, visit),
                "scan",
            );
        }
    }
}

/// A value of [`MAX_VALUE`] bytes is stored and survives reopening; one byte more is refused and changes nothing.
pub fn longest_value<S: TestedIndex>(plan: &Plan) {
    let mut random = plan.random("longest_value");
    let mut subject = S::create();
    let start = subject.used();
    let mut value = random.bytes(1 << 16).repeat(MAX_VALUE >> 16);
    done(
        subject.index().upsert(b"key", &value),
        "upsert of the longest value",
    );
    subject = subject.reopen(Reopen::Crash);
    let holds = |subject: &S, value: &[u8]| {
        let guard = heap::pin();
        let held = done(subject.index().get(b"key", &guard), "get");
        assert!(
            held.as_deref() == Some(value),
            "the longest value is not what was put"
        );
    };
    holds(&subject, &value);
    value.push(0);
    for key in [&b"key"[..], b"another"] {
        let result = subject.index().upsert(key, &value);
        assert!(
            matches!(result, Err(Error::ValueTooLong(len)) if len == MAX_VALUE + 1),
            "upsert of {} bytes: {result:?}",
            MAX_VALUE + 1
        );
    }
    holds(&subject, &value[..MAX_VALUE]);
    assert_sound(subject.index(), 1);
    assert!(done(subject.index().remove(b"key"), "remove"));
    assert_emptied(&subject, start);
}

/// Values around 1 MiB, next to small ones, are replaced and removed. Every length occurs, however short the run.
pub fn large_values<S: TestedIndex>(plan: &Plan) {
    const LENGTHS: [usize; 7] = [8, 60_000, 65_536, 250_000, 262_144, 1 << 20, (1 << 20) + 1];
    let mut random = plan.random("large_values");
    let mut subject = S::create();
    let start = subject.used();
    let mut oracle = Oracle::default();
    for i in 0..plan.sized(100).max(LENGTHS.len()) {
        let key = format!("key {}", random.below(6)).into_bytes();
        if i >= LENGTHS.len() && random.below(4) == 0 {
            oracle.remove(subject.index(), &key);
        } else {
            let len = LENGTHS[i % LENGTHS.len()];
            oracle.upsert(subject.index(), &key, &random.bytes(len));
        }
        oracle.get(subject.index(), &key);
        if i % 10 == 9 {
            subject = subject.reopen(*random.pick(&[Reopen::Clean, Reopen::Crash]));
            oracle.compare(subject.index());
        }
    }
    for key in oracle.map.keys().cloned().collect::<Vec<_>>() {
        oracle.remove(subject.index(), &key);
    }
    assert_emptied(&subject, start);
}

/// A value of any length is replaced by one of any other length, by every operation that can.
pub fn value_lengths<S: TestedIndex>(plan: &Plan) {
    const LENGTHS: [usize; 14] = [0, 1, 7, 8, 9, 15, 16, 24, 40, 63, 64, 65, 1000, 5000];
    let mut random = plan.random("value_lengths");
    let mut subject = S::create();
    let start = subject.used();
    let mut oracle = Oracle::default();
    // Alone below its node, and among neighbours.
    for neighbours in [0, 1, 40] {
        for i in 0..neighbours {
            oracle.insert(subject.index(), format!("key {i}").as_bytes(), b"12345678");
        }
        for from in LENGTHS {
            for to in LENGTHS {
                let (old, new) = (random.bytes(from), random.bytes(to));
                oracle.upsert(subject.index(), b"key", &old);
                match random.below(4) {
                    0 => oracle.upsert(subject.index(), b"key", &new),
                    1 => oracle.update(subject.index(), b"key", &new),
                    2 => oracle.compare_and_swap(subject.index(), b"key", Some(&old), Some(&new)),
                    _ => oracle.edit(subject.index(), b"key", Action::Put, &new),
                }
                oracle.get(subject.index(), b"key");
            }
            oracle.compare(subject.index());
            subject = subject.reopen(Reopen::Crash);
            oracle.compare(subject.index());
        }
        for key in oracle.map.keys().cloned().collect::<Vec<_>>() {
            oracle.remove(subject.index(), &key);
        }
        assert_emptied(&subject, start);
    }
}
