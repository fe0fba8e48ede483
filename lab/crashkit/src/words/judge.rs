//! The judge compares a recovered map with its model, and writes to it.

use super::{Op, WordMap, pairs};
use crate::choose::Random;
use std::collections::BTreeMap;

type MemoryModel = BTreeMap<u64, u64>;

/// Checks what a scan beside writers has found against the states that the map may have been in meanwhile.
pub(super) fn check_scan(from: u64, found: &[(u64, u64)], states: &[&MemoryModel]) -> Result<(), String> {
    if !found.is_sorted_by(|(key, _), (next, _)| key < next) {
        return Err("its keys do not ascend".into());
    }
    for (key, value) in found {
        if *key < from {
            return Err(format!("{key} is below {from}"));
        }
        if !states.iter().any(|state| state.get(key) == Some(value)) {
            return Err(format!("{key} never held {value} meanwhile"));
        }
    }
    let Some((first, others)) = states.split_first() else {
        return Err("no state was possible".into());
    };
    let stays = |key: &u64| others.iter().all(|state| state.contains_key(key));
    let is_missing = |key: &u64| found.binary_search_by_key(key, |(key, _)| *key).is_err();
    match first
        .range(from..)
        .map(|(key, _)| key)
        .find(|&key| is_missing(key) && stays(key))
    {
        Some(key) => Err(format!("{key} was there throughout")),
        None => Ok(()),
    }
}

/// Scans and gets everything. Returns which of the allowed states the map is in.
pub(super) fn read_all<T: WordMap>(map: &T, allowed: &[&MemoryModel]) -> Result<usize, String> {
    let found = scan(map)?;
    let which = allowed.iter().position(|model| pairs(model, 0) == found);
    let which = which.ok_or_else(|| match allowed {
        [only] => format!("it holds {found:?} instead of {:?}", pairs(only, 0)),
        _ => {
            let allowed: Vec<_> = allowed.iter().map(|model| pairs(model, 0)).collect();
            format!("it holds {found:?} instead of one of {allowed:?}")
        }
    })?;
    for key in allowed.iter().flat_map(|model| model.keys()) {
        check_get(map, allowed[which], *key)?;
    }
    Ok(which)
}

/// Draws a key of an operation in flight, or one next to it, or any.
pub(super) fn near(in_flight: &[&Op], model: &MemoryModel, random: &mut Random) -> u64 {
    let keys = in_flight.iter().map(|op| match **op {
        Op::Put(key, _) | Op::Remove(key) | Op::Get(key) | Op::Scan(key) => key,
    });
    let keys: Vec<u64> = keys.collect();
    let present: Vec<u64> = match keys.first() {
        Some(key) if random.below(4) > 0 => {
            let above = model.range(key..).take(3);
            model
                .range(..key)
                .rev()
                .take(3)
                .chain(above)
                .map(|(key, _)| *key)
                .collect()
        }
        _ => model.keys().copied().collect(),
    };
    match (present.is_empty(), random.below(4)) {
        (true, _) | (_, 0) if !keys.is_empty() => *random.pick(&keys),
        (true, _) => random.below(100),
        _ => *random.pick(&present),
    }
}

/// Removes the key and puts it, and compares everything with the model after each.
pub(super) fn write_a_little<T: WordMap>(map: &T, model: &mut MemoryModel, key: u64) -> Result<(), String> {
    remove(map, model, key)?;
    agree(map, model, &format!("{key} was removed"))?;
    put(map, model, key, 1001)?;
    check_get(map, model, key)?;
    agree(map, model, &format!("{key} was put"))
}

/// Writes each key, checks the structure, adds keys until it has grown, and empties it.
pub(super) fn write_all<T: WordMap>(map: &T, model: &mut MemoryModel) -> Result<(), String> {
    /// Number of keys that are added.
    const ADDED: u64 = 40;
    for key in model.keys().copied().collect::<Vec<_>>() {
        put(map, model, key, key + 1)?;
    }
    map.check()
        .map_err(|error| format!("after each key was written: {error}"))?;
    for key in 0..ADDED {
        // Between the present keys, in no order.
        put(map, model, key * 17 % ADDED, key)?;
    }
    agree(map, model, "keys were added")?;
    for key in model.keys().copied().collect::<Vec<_>>() {
        remove(map, model, key)?;
    }
    agree(map, model, "all was removed")
}

fn scan<T: WordMap>(map: &T) -> Result<Vec<(u64, u64)>, String> {
    map.scan(0).map_err(|error| format!("a scan failed: {error}"))
}

fn check_get<T: WordMap>(map: &T, model: &MemoryModel, key: u64) -> Result<(), String> {
    let found = map
        .get(key)
        .map_err(|error| format!("a get of {key} failed: {error}"))?;
    match found == model.get(&key).copied() {
        true => Ok(()),
        false => Err(format!(
            "a get of {key} answers {found:?}, but a scan finds {:?}",
            model.get(&key)
        )),
    }
}

fn put<T: WordMap>(map: &T, model: &mut MemoryModel, key: u64, value: u64) -> Result<(), String> {
    model.insert(key, value);
    map.put(key, value)
        .map_err(|error| format!("a put of {key} after recovery failed: {error}"))
}

fn remove<T: WordMap>(map: &T, model: &mut MemoryModel, key: u64) -> Result<(), String> {
    let removed = map
        .remove(key)
        .map_err(|error| format!("a removal of {key} after recovery failed: {error}"))?;
    match removed == model.remove(&key).is_some() {
        true => Ok(()),
        false => Err(format!("after recovery, a removal of {key} answers {removed}")),
    }
}

fn agree<T: WordMap>(map: &T, model: &MemoryModel, done: &str) -> Result<(), String> {
    let (found, expected) = (scan(map)?, pairs(model, 0));
    match found == expected {
        true => Ok(()),
        false => Err(format!(
            "after recovery, when {done}, it holds {found:?} instead of {expected:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every mix of the states is accepted, and each way to be wrong is reported.
    #[test]
    fn wrong_scans_are_reported() {
        let first = MemoryModel::from([(1, 1), (2, 2), (3, 3)]);
        let then = MemoryModel::from([(1, 1), (2, 9), (4, 4)]);
        let states = [&first, &then];
        for allowed in [
            &[(2, 2), (3, 3)][..],
            &[(2, 9), (4, 4)],
            &[(2, 2), (3, 3), (4, 4)],
            &[(2, 2)],
        ] {
            assert_eq!(check_scan(2, allowed, &states), Ok(()));
        }
        for (wrong, why) in [
            (&[(2, 2), (4, 4), (3, 3)][..], "its keys do not ascend"),
            (&[(2, 2), (2, 9)], "its keys do not ascend"),
            (&[(1, 1), (2, 2)], "1 is below 2"),
            (&[(2, 3)], "2 never held 3 meanwhile"),
            (&[(3, 3)], "2 was there throughout"),
        ] {
            assert_eq!(check_scan(2, wrong, &states), Err(why.to_owned()));
        }
    }
}
