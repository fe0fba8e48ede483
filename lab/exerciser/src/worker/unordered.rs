//! Walks in the order of a map's index, and the calls that a map whose index has no key order refuses.

use super::{Worker, Wrong};
use crate::truth::{MapTruth, Truth, Val};
use std::ops::Bound;
use wollemi::{Entry, Error, IndexError};

/// Bounds of keys, in the order of an index.
type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

pub(super) const ALL: Bounds<'static> = (Bound::Unbounded, Bound::Unbounded);

/// Describes the answer to a call that the map must refuse because its index has no key order, unless the map refuses
/// it so.
pub(super) fn not_refused<T>(what: &str, answer: Result<T, Error>) -> Option<Wrong> {
    match answer {
        Err(Error::Index(IndexError::Unordered)) => None,
        Err(error) => Some(format!("{what}, though the index has no order, fails: {error}")),
        Ok(_) => Some(format!("{what} answers, though the index has no order")),
    }
}

/// Does the same for an iterator, whose only item must be the refusal.
pub(super) fn not_refused_by<T>(
    what: &str,
    mut answer: impl Iterator<Item = Result<T, Error>>,
) -> Option<Wrong> {
    let Some(first) = answer.next() else {
        return Some(format!("{what} is empty, though the index has no order"));
    };
    let more = answer
        .next()
        .map(|_| format!("{what} yields another item after its refusal"));
    not_refused(what, first).or(more)
}

impl<'d> Worker<'d> {
    pub(super) fn is_ordered(&self, slot: usize) -> bool {
        self.plan.maps[slot].is_ordered()
    }

    /// Returns this thread's keys that have a value between two bounds, in the order of the map's index.
    pub(super) fn held_between(
        &mut self,
        slot: usize,
        map: &MapTruth,
        (lower, upper): Bounds<'_>,
    ) -> Vec<(&'d Vec<u8>, Val)> {
        let (order, keys) = (self.plan.maps[slot].kind.order(), &self.keys[slot]);
        let ranked = self.ranked[slot].get_or_insert_with(|| {
            let mut numbered: Vec<_> = keys.iter().enumerate().collect();
            order.sort(&mut numbered, |(_, key)| key);
            numbered.into_iter().map(|(n, _)| n).collect()
        });
        let from = ranked.partition_point(|&n| !order.contains((lower, Bound::Unbounded), &keys[n]));
        let to = ranked.partition_point(|&n| order.contains((Bound::Unbounded, upper), &keys[n]));
        let numbers = ranked.get(from..to).unwrap_or_default();
        let held = numbers.iter().map(|&n| Some((&keys[n], map.values[n]?)));
        held.flatten().collect()
    }

    /// Walks in steps, each from the last key of the one before, and compares the entries visited.
    pub(super) fn walk(
        &mut self,
        slot: usize,
        behind: Option<usize>,
        limit: usize,
        steps: usize,
        truth: &Truth,
    ) -> Result<Option<Wrong>, Error> {
        let map = self.map(slot)?;
        let first = behind.map(|n| &*self.keys[slot][n]);
        let mut found: Vec<Entry> = Vec::new();
        let mut last = first.map(<[u8]>::to_vec);
        for _ in 0..steps {
            let before = found.len();
            let lower = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let walked = map.walk(lower, limit, |key, value| {
                found.push((key.to_vec(), value.to_vec()))
            })?;
            let seen = found.len() - before;
            let end = found.last().filter(|_| seen == limit).map(|(key, _)| key);
            if walked.seen != seen || walked.last.as_ref() != end {
                return Ok(Some(format!(
                    "{walked:?}, though the walk visited {seen} keys, {end:x?} last"
                )));
            }
            last = walked.last;
            if last.is_none() {
                break;
            }
        }
        let upper = last.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let bounds = (first.map_or(Bound::Unbounded, Bound::Excluded), upper);
        let order = self.plan.maps[slot].kind.order();
        if let Some((key, _)) = found.iter().find(|(key, _)| !order.contains(bounds, key)) {
            return Ok(Some(format!("{key:x?} lies outside the bounds of the walk")));
        }
        self.judge_walk(slot, &found, &truth.maps[slot], bounds)
    }

    /// Compares the first entries of a map. Fewer than `limit` entries are the whole map.
    pub(super) fn judge_first(
        &mut self,
        slot: usize,
        found: &[Entry],
        limit: usize,
        map: &MapTruth,
    ) -> Result<Option<Wrong>, Error> {
        let last = found.last().filter(|_| found.len() == limit);
        let upper = last.map_or(Bound::Unbounded, |(key, _)| Bound::Included(&**key));
        self.judge_walk(slot, found, map, (Bound::Unbounded, upper))
    }

    /// Compares the last entries of a map. Fewer than `limit` entries are the whole map.
    pub(super) fn judge_last(
        &mut self,
        slot: usize,
        found: &[Entry],
        limit: usize,
        map: &MapTruth,
    ) -> Result<Option<Wrong>, Error> {
        let first = found.first().filter(|_| found.len() == limit);
        let lower = first.map_or(Bound::Unbounded, |(key, _)| Bound::Included(&**key));
        self.judge_walk(slot, found, map, (lower, Bound::Unbounded))
    }

    /// Compares the entries of a walk between these bounds. They must be in the order of the index, and show all of
    /// this thread's keys that have a value.
    fn judge_walk(
        &mut self,
        slot: usize,
        found: &[Entry],
        map: &MapTruth,
        bounds: Bounds<'_>,
    ) -> Result<Option<Wrong>, Error> {
        let order = self.plan.maps[slot].kind.order();
        let pairs = found.windows(2);
        if let Some([before, after]) = pairs
            .map(|pair| [&pair[0].0, &pair[1].0])
            .find(|[before, after]| order.compare(before, after).is_ge())
        {
            return Ok(Some(format!("{after:x?} comes after {before:x?}")));
        }
        let expected = self.held_between(slot, map, bounds);
        self.judge_entries(slot, found, expected)
    }

    /// Makes every call that needs a key order; the map must refuse each.
    pub(super) fn unordered(&mut self, slot: usize, from: usize, to: usize) -> Result<Option<Wrong>, Error> {
        let map = self.map(slot)?;
        let (lower, upper) = (&self.keys[slot][from], &self.keys[slot][to]);
        let reader = map.reader();
        let refused_in = |prefix: bool| {
            let refused = self.db.transact(|tx| {
                let entries = match prefix {
                    true => tx.prefix(&map, lower)?,
                    false => tx.range(&map, lower..=upper)?,
                };
                Ok::<_, Error>(entries.count())
            });
            not_refused("a range of a transaction", refused)
        };
        Ok(not_refused_by("range", map.range(lower..=upper))
            .or(not_refused_by("range to a key", map.range(..=upper).rev()))
            .or(not_refused_by("prefix", map.prefix(lower)))
            .or(not_refused("first", map.first()))
            .or(not_refused("last", map.last()))
            .or(not_refused("pop_first", map.pop_first()))
            .or(not_refused("pop_last", map.pop_last()))
            .or(not_refused_by("range of a reader", reader.range(lower..).rev()))
            .or(not_refused_by("prefix of a reader", reader.prefix(lower)))
            .or(not_refused(
                "visit",
                reader.visit(lower..=upper, |_, _| std::ops::ControlFlow::Continue(())),
            ))
            .or(refused_in(false))
            .or(refused_in(true)))
    }
}
