//! The judge of a recovered index: compares its content with the allowed contents, and writes to it.

use super::reads::{get_agrees, walks_agree};
use super::{Bytes, LiveIndex, Map, OfIndex, Op, shown};
use crashkit::{Depth, Random, Verdict};
use index::{Direction, Index, Order, Value};
use std::ops::{Bound, ControlFlow};

pub(super) type FoundEntry<'g> = (&'g [u8], Value<'g>);

/// Scans the whole index, up to one entry more than `max`.
pub(super) fn scan<'g>(
    index: &'g dyn Index,
    direction: Direction,
    guard: &'g heap::Guard,
    max: usize,
) -> Result<Vec<FoundEntry<'g>>, String> {
    let mut found: Vec<FoundEntry<'g>> = Vec::with_capacity(max);
    let all = Bound::Unbounded;
    let done = index.scan(all, all, direction, guard, &mut |key, value| {
        found.push((key, value));
        // One entry too many is enough for the comparison to fail.
        if found.len() > max {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    done.map_err(|error| format!("a scan failed: {error}"))?;
    Ok(found)
}

/// The number of operations of the run whose keys a shallow judge gets.
const GETS: usize = 3;

/// Scans in both directions and gets every key, and keys that were removed or never written. Returns which of the
/// allowed states it found.
pub(super) fn read_all(index: &dyn Index, verdict: &mut Verdict<'_, OfIndex>) -> Result<usize, String> {
    let guard = heap::pin();
    let max = verdict.allowed.iter().map(|map| map.len()).max().unwrap_or(0);
    let found = scan(index, Direction::Forward, &guard, max)?;
    let is = |map: &Map| {
        let equal = |((key, value), (other, expected)): (&FoundEntry<'_>, (&Bytes, &Bytes))| {
            **key == **other && value[..] == expected[..]
        };
        map.len() == found.len() && found.iter().zip(map).all(equal)
    };
    let Some(which) = verdict.allowed.iter().position(|map| is(map)) else {
        return Err(difference(&found, verdict.allowed));
    };
    let back = scan(index, Direction::Reverse, &guard, max)?;
    walks_agree(Order::Keys, &found, &back)?;
    let get = |key: &[u8]| {
        index
            .get(key, &guard)
            .map_err(|error| format!("a get failed: {error}"))
    };
    for (key, value) in &found {
        get_agrees(key, Some(*value), get(key)?)?;
    }
    let map = verdict.allowed[which];
    let others = verdict.allowed.iter().flat_map(|map| map.keys());
    let mut absent: Vec<&Bytes> = others.collect();
    let run = verdict.ops;
    match verdict.depth {
        Depth::Deep => absent.extend(run.iter().filter_map(Op::key)),
        Depth::Shallow if run.is_empty() => {}
        Depth::Shallow => {
            let random = &mut verdict.random;
            absent.extend((0..GETS).filter_map(|_| random.pick(run).key()));
        }
    }
    for key in absent.into_iter().filter(|key| !map.contains_key(*key)) {
        get_agrees(key, None, get(key)?)?;
    }
    Ok(which)
}

/// A key, and its value.
pub(super) type Left = (Bytes, Option<Bytes>);

/// Writes, reads and removes the keys in flight. If there are none, does so with some other key and restores its value
/// afterwards; if the pool is too full for that, returns the key's present value. A write that finds the pool full must
/// change nothing.
pub(super) fn write_a_little(
    live: &LiveIndex,
    map: &Map,
    in_flight: &[&Op],
    random: &mut Random,
) -> Result<Option<Left>, String> {
    let index = &*live.index;
    let mut keys: Vec<Bytes> = in_flight.iter().filter_map(|op| op.key().cloned()).collect();
    keys.dedup();
    let is_other = keys.is_empty();
    if is_other {
        let present: Vec<&Bytes> = map.keys().collect();
        keys.push(if present.is_empty() {
            [1_u8; 3].into()
        } else {
            (*random.pick(&present)).clone()
        });
    }
    for key in keys {
        let failed = |what: &str, error: index::Error| {
            format!("{what} of {} after recovery failed: {error}", shown(&key))
        };
        let value = random.next().to_le_bytes();
        let value = &value[..8 - random.below(2) as usize];
        let get = || {
            let found = index
                .get(&key, &heap::pin())
                .map(|found| found.map(|found| found.to_vec()));
            found.map_err(|e| failed("a get", e))
        };
        let before = get()?;
        let put = live.unless_full(index.upsert(&key, value));
        let put = put.map_err(|e| failed("an upsert", e))?.is_some();
        let after = get()?;
        if after.as_deref() != if put { Some(value) } else { before.as_deref() } {
            let what = if put {
                "the value just written"
            } else {
                "its value from before a write to a full pool"
            };
            return Err(format!("after recovery, {} does not hold {what}", shown(&key)));
        }
        let removed = live
            .unless_full(index.remove(&key))
            .map_err(|e| failed("a remove", e))?;
        if removed == Some(after.is_none()) {
            return Err(format!("after recovery, {} cannot be removed", shown(&key)));
        }
        if get()?.is_some() != (removed.is_none() && after.is_some()) {
            return Err(format!(
                "after recovery, the removal of {} does not match a get after it",
                shown(&key)
            ));
        }
        // Restores the previous value.
        if is_other && let Some(value) = map.get(&key) {
            let put = live.unless_full(index.upsert(&key, value));
            if put.map_err(|e| failed("an upsert", e))?.is_none() {
                let left = after.filter(|_| removed.is_none());
                return Ok(Some((key, left.map(Bytes::from))));
            }
        }
    }
    Ok(None)
}

/// Describes how a scan's result differs from the most similar allowed state.
pub(super) fn difference(found: &[FoundEntry<'_>], allowed: &[&Map]) -> String {
    let one = |map: &Map| {
        let mut wrong = Vec::new();
        let mut found = found.iter().peekable();
        let mut last: Option<&[u8]> = None;
        for (key, expected) in map {
            while let Some((other, _)) = found.next_if(|(other, _)| **other < **key) {
                wrong.push(format!("{} is not expected", shown(other)));
            }
            match found.next_if(|(other, _)| **other == **key) {
                None => wrong.push(format!("{} is missing", shown(key))),
                Some((_, value)) if value[..] != expected[..] => {
                    wrong.push(format!(
                        "{} holds {} instead of {}",
                        shown(key),
                        shown(value),
                        shown(expected)
                    ));
                }
                Some((other, _)) => last = Some(other),
            }
        }
        for (other, _) in found {
            let order = if last.is_some_and(|last| last >= *other) {
                " in the wrong place"
            } else {
                ""
            };
            wrong.push(format!("{} is not expected{order}", shown(other)));
        }
        wrong
    };
    let wrong = allowed
        .iter()
        .map(|map| one(map))
        .min_by_key(Vec::len)
        .unwrap_or_default();
    let shown: Vec<_> = wrong.iter().take(4).cloned().collect();
    let more = if wrong.len() > 4 {
        format!(" and {} more", wrong.len() - 4)
    } else {
        String::new()
    };
    format!("{}{more}", shown.join("; "))
}
