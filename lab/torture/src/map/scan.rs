//! Scans: their execution, and their allowed answers beside writers.
//!
//! A scan has no single moment. Rules over the states that the map may have been in during the scan:
//!
//! I1 Keys come in order, none twice, none outside the bounds.
//! I2 Each visited key had the shown value in one of these states.
//! I3 A key that is in all of them is visited, unless the visitor ended the scan before it.

use super::{Bytes, Map, shown};
use crashkit::Random;
use index::{Direction, Index};
use std::fmt;
use std::ops::{Bound, ControlFlow, RangeBounds};

/// Which keys a scan visits.
#[derive(Clone, PartialEq, Eq)]
pub struct Scan {
    /// Where the keys begin...
    pub lower: Bound<Bytes>,
    /// ...and end.
    pub upper: Bound<Bytes>,
    /// From which side.
    pub direction: Direction,
    /// After this many keys the visitor has enough.
    pub max: usize,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |bound: &Bound<Bytes>| match bound {
            Bound::Included(key) => shown(key),
            Bound::Excluded(key) => format!("{} (excluded)", shown(key)),
            Bound::Unbounded => "the end".into(),
        };
        let (lower, upper) = (side(&self.lower), side(&self.upper));
        match self.direction {
            Direction::Forward => write!(f, "upward from {lower} to {upper}")?,
            Direction::Reverse => write!(f, "downward from {upper} to {lower}")?,
        }
        if self.max < usize::MAX {
            write!(f, ", {} at most", self.max)?;
        }
        Ok(())
    }
}

fn key_of(bound: &Bound<Bytes>) -> Option<&Bytes> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

fn slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

impl Scan {
    /// A scan around some of these keys: with bounds at them, at their prefixes, right behind them and right before.
    pub fn around(keys: &[Bytes], random: &mut Random) -> Scan {
        let (mut lower, mut upper) = (bound(keys, random), bound(keys, random));
        if let (Some(one), Some(other)) = (key_of(&lower), key_of(&upper))
            && one > other
            && random.below(8) > 0
        {
            (lower, upper) = (upper, lower);
        }
        Scan {
            lower,
            upper,
            direction: *random.pick(&[Direction::Forward, Direction::Reverse]),
            max: *random.pick(&[1, 2, 5, usize::MAX, usize::MAX, usize::MAX]),
        }
    }

    pub(super) fn bound(&self) -> Option<&Bytes> {
        key_of(&self.lower).or(key_of(&self.upper))
    }

    fn contains(&self, key: &[u8]) -> bool {
        RangeBounds::<[u8]>::contains(&(slice(&self.lower), slice(&self.upper)), key)
    }

    /// What it visits of a map that stands still.
    pub(super) fn of(&self, map: &Map) -> Vec<(Bytes, Bytes)> {
        let entries = map.iter().filter(|(key, _)| self.contains(key));
        let copied = |(key, value): (&Bytes, &Bytes)| (key.clone(), value.clone());
        match self.direction {
            Direction::Forward => entries.take(self.max).map(copied).collect(),
            Direction::Reverse => entries.rev().take(self.max).map(copied).collect(),
        }
    }

    pub(super) fn carry_out(&self, index: &dyn Index) -> Result<Vec<(Bytes, Bytes)>, index::Error> {
        let guard = heap::pin();
        let mut visited: Vec<(Bytes, Bytes)> = Vec::new();
        let (lower, upper) = (slice(&self.lower), slice(&self.upper));
        index.scan(lower, upper, self.direction, &guard, &mut |key, value| {
            visited.push((key.into(), value[..].into()));
            if visited.len() < self.max {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(visited)
    }

    /// Whether it may have visited these entries, in these states of the map.
    pub(super) fn check(&self, visited: &[(Bytes, Bytes)], states: &[&Map]) -> Result<(), String> {
        let is_before = |one: &[u8], other: &[u8]| match self.direction {
            Direction::Forward => one < other,
            Direction::Reverse => one > other,
        };
        for pair in visited.windows(2) {
            if !is_before(&pair[0].0, &pair[1].0) {
                return Err(format!("{} comes after {}", shown(&pair[1].0), shown(&pair[0].0)));
            }
        }
        for (key, value) in visited {
            if !self.contains(key) {
                return Err(format!("{} is out of its bounds", shown(key)));
            }
            let mut held = states.iter().filter_map(|state| state.get(key)).peekable();
            if held.peek().is_none() {
                return Err(format!("{} was never there meanwhile", shown(key)));
            }
            if !held.any(|other| other == value) {
                return Err(format!("{} never held {} meanwhile", shown(key), shown(value)));
            }
        }
        // What comes behind the last was not asked for, if that were as many as it wanted.
        let last = visited.last().filter(|_| visited.len() >= self.max);
        let is_asked_for = |key: &[u8]| {
            self.contains(key) && last.is_none_or(|(last, _)| **last == *key || is_before(key, last))
        };
        let (Some(first), others) = (states.first(), states.get(1..).unwrap_or_default()) else {
            return Err("there was no state".into());
        };
        for key in first.keys().filter(|key| is_asked_for(key)) {
            let stays = || others.iter().all(|state| state.contains_key(key));
            if !visited.iter().any(|(visited, _)| visited == key) && stays() {
                return Err(format!("{} was there throughout", shown(key)));
            }
        }
        Ok(())
    }
}

fn bound(keys: &[Bytes], random: &mut Random) -> Bound<Bytes> {
    if keys.is_empty() || random.below(4) == 0 {
        return Bound::Unbounded;
    }
    let mut key = random.pick(keys).to_vec();
    match random.below(8) {
        0 => key.truncate(random.below(key.len() as u64 + 1) as usize),
        1 => key.push(0),
        2 => {
            if let Some(last) = key.last_mut() {
                *last = last.wrapping_sub(1);
            }
        }
        _ => {}
    }
    if random.below(2) == 0 {
        Bound::Included(key.into())
    } else {
        Bound::Excluded(key.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(keys: &[&str]) -> Map {
        visited(keys).into_iter().collect()
    }

    fn visited(keys: &[&str]) -> Vec<(Bytes, Bytes)> {
        let entry = |key: &&str| (Bytes::from(key.as_bytes()), Bytes::from(&b"v"[..]));
        keys.iter().map(entry).collect()
    }

    /// What a scan answers of a map that stands still is allowed, and each way to be wrong is not.
    #[test]
    fn wrong_answers_are_told() {
        let scan = |direction, max| Scan {
            lower: Bound::Included(b"b"[..].into()),
            upper: Bound::Excluded(b"e"[..].into()),
            direction,
            max,
        };
        let states = [&map(&["a", "b", "c", "e"]), &map(&["a", "b", "d", "e"])];
        let up = scan(Direction::Forward, usize::MAX);
        for allowed in [&["b", "c", "d"][..], &["b", "d"], &["b"]] {
            up.check(&visited(allowed), &states).expect("it is allowed");
        }
        for state in states {
            up.check(&up.of(state), &states).expect("it is one of the states");
        }
        for (wrong, why) in [
            (&["c", "d"][..], "\"b\" was there throughout"),
            (&["b", "b", "c"][..], "\"b\" comes after \"b\""),
            (&["b", "d", "c"][..], "\"c\" comes after \"d\""),
            (&["a", "b"][..], "\"a\" is out of its bounds"),
            (&["b", "e"][..], "\"e\" is out of its bounds"),
            (&["b", "ca"][..], "\"ca\" was never there meanwhile"),
        ] {
            assert_eq!(up.check(&visited(wrong), &states), Err(why.to_owned()));
        }
        let other = [(Bytes::from(&b"b"[..]), Bytes::from(&b"w"[..]))];
        assert_eq!(
            up.check(&other, &states),
            Err("\"b\" never held \"w\" meanwhile".to_owned())
        );
        let down = scan(Direction::Reverse, 1);
        down.check(&visited(&["d"]), &states).expect("one was asked for");
        down.check(&visited(&["b"]), &states).expect("no other stays");
        assert!(down.check(&visited(&[]), &states).is_err());
    }
}
