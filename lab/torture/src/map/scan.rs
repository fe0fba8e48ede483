//! Scans: their execution, and their allowed answers during concurrent writes.
//!
//! A scan has no linearization point. These rules relate its answer to the states that the map may have been in during
//! the scan:
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
    /// The lower bound.
    pub lower: Bound<Bytes>,
    /// The upper bound.
    pub upper: Bound<Bytes>,
    /// The direction.
    pub direction: Direction,
    /// The number of keys after which the visitor ends the scan.
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
    /// Draws a scan around some of these keys, with bounds at them, at their prefixes, just after them or just before.
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

    /// Returns the entries that it visits in an unchanging map.
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

    /// Checks that it may visit these entries while the map goes through these states.
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
                return Err(format!("{} was never present during the scan", shown(key)));
            }
            if !held.any(|other| other == value) {
                return Err(format!(
                    "{} never held {} during the scan",
                    shown(key),
                    shown(value)
                ));
            }
        }
        // If the scan reached its limit, keys after the last visited one were not asked for.
        let last = visited.last().filter(|_| visited.len() >= self.max);
        let is_asked_for = |key: &[u8]| {
            self.contains(key) && last.is_none_or(|(last, _)| **last == *key || is_before(key, last))
        };
        let (Some(first), others) = (states.first(), states.get(1..).unwrap_or_default()) else {
            return Err("no state to compare with".into());
        };
        for key in first.keys().filter(|key| is_asked_for(key)) {
            let stays = || others.iter().all(|state| state.contains_key(key));
            if !visited.iter().any(|(visited, _)| visited == key) && stays() {
                return Err(format!("{} was present throughout, but not visited", shown(key)));
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

    /// The check accepts the answers for an unchanging map, and rejects each kind of wrong answer.
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
            (&["c", "d"][..], "\"b\" was present throughout, but not visited"),
            (&["b", "b", "c"][..], "\"b\" comes after \"b\""),
            (&["b", "d", "c"][..], "\"c\" comes after \"d\""),
            (&["a", "b"][..], "\"a\" is out of its bounds"),
            (&["b", "e"][..], "\"e\" is out of its bounds"),
            (&["b", "ca"][..], "\"ca\" was never present during the scan"),
        ] {
            assert_eq!(up.check(&visited(wrong), &states), Err(why.to_owned()));
        }
        let other = [(Bytes::from(&b"b"[..]), Bytes::from(&b"w"[..]))];
        assert_eq!(
            up.check(&other, &states),
            Err("\"b\" never held \"w\" during the scan".to_owned())
        );
        let down = scan(Direction::Reverse, 1);
        down.check(&visited(&["d"]), &states).expect("one was asked for");
        down.check(&visited(&["b"]), &states).expect("no other stays");
        assert!(down.check(&visited(&[]), &states).is_err());
    }
}
