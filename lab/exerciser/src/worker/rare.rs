//! Calls that few programs make.

use super::unordered::{ALL, not_refused, not_refused_by};
use super::{HOURS, Worker, Wrong, differs, entry_differs, life, same};
use crate::op::Rare;
use crate::truth::{MapTruth, Truth, Val};
use std::ops::Bound;
use std::time::Duration;
use wollemi::{Durability, Entry, Error, Event, Expiring, Map, Retry, Transaction, View};

/// Maximum number of entries that a walk over a shared map reads.
const MAX_ENTRIES: usize = 200;

/// Makes each call and compares its answer with the truth.
impl Worker<'_> {
    pub(super) fn rare(&mut self, call: Rare, truth: &Truth) -> Result<Option<Wrong>, Error> {
        match call {
            Rare::About(slot) => self.about(slot),
            Rare::Ends(slot) => self.ends(slot, truth),
            Rare::Pop(slot, last) => {
                let map = self.map(slot)?;
                let entry = if last { map.pop_last()? } else { map.pop_first()? };
                Ok(self.differs_from_end(slot, entry.as_ref(), truth.end(slot, last)))
            }
            Rare::Edit(slot, n, new) => {
                let (old, new) = (truth.value(slot, n), new.map(Val::bytes));
                let mut wrong = None;
                let found = self.map(slot)?.edit_with(&self.keys[slot][n], |current| {
                    wrong = differs(current, old);
                    new.clone()
                })?;
                Ok(wrong.or(same("edit_with", found, new).err()))
            }
            Rare::Borrowed(slot, n) => self.borrowed(slot, n, truth),
            Rare::Views(slot, from, to) => self.views(slot, from, to),
            Rare::Transaction(slot, n, new, by_hand) => self.by_hand(slot, n, new, by_hand, truth),
            Rare::Wait(slot, n, new) => self.wait(slot, n, new, truth),
            Rare::Alive(slot, from, to) => self.alive(slot, from, to, truth),
            Rare::Relive(slot, n, new) => self.relive(slot, n, new, truth),
            Rare::Durable(call) => self.durable(call),
            Rare::Eventual(slot, n, new, by) => self.eventual(slot, n, new, by),
            Rare::Own => Ok(self.typed()?.or(self.expiring()?)),
            Rare::Unordered(slot, from, to) => self.unordered(slot, from, to),
        }
    }

    fn about(&mut self, slot: usize) -> Result<Option<Wrong>, Error> {
        let (map, name) = (self.map(slot)?, self.plan.name(slot, self.thread));
        let progress = self.db.recovery_progress();
        let said = same("name", map.name(), &name)
            .and_then(|()| same("index_kind", map.index_kind(), self.plan.maps[slot].kind))
            .and_then(|()| {
                let (done, pages) = (progress.pages_swept, progress.pages);
                (done <= pages).then_some(()).ok_or(format!("{progress:?}"))
            });
        // How many commits the opening completed depends on when the process was killed.
        let _ = self.db.carried_out();
        let found = self.db.map(&name)?;
        let said = said.and_then(|()| same("map", found.name(), &name));
        // Both handles must reach an index with the same order.
        let order = |map: &wollemi::Map| map.index().order().require_keys().is_ok();
        Ok(said
            .and_then(|()| same("order", order(&found), order(&map)))
            .err())
    }

    fn differs_from_end(
        &self,
        slot: usize,
        found: Option<&Entry>,
        expected: Option<(usize, Val)>,
    ) -> Option<Wrong> {
        let (key, value) = match found {
            Some((key, value)) => (Some(key), Some(&value[..])),
            None => (None, None),
        };
        let expected_key = expected.map(|(n, _)| &self.keys[slot][n]);
        let wrong_key = (key != expected_key).then(|| format!("key {key:x?} instead of {expected_key:x?}"));
        wrong_key.or(differs(value, expected.map(|(_, value)| value)))
    }

    fn ends(&mut self, slot: usize, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let map = self.map(slot)?;
        let held = self.held_between(slot, &truth.maps[slot], ALL);
        let wrong = match self.is_ordered(slot) {
            true => self
                .differs_from_end(slot, map.first()?.as_ref(), truth.end(slot, false))
                .or(self.differs_from_end(slot, map.last()?.as_ref(), truth.end(slot, true))),
            false => not_refused("first", map.first()).or(not_refused("last", map.last())),
        };
        let wrong = wrong
            .or(same("len", map.len()?, held.len() as u64).err())
            .or(same("is_empty", map.is_empty()?, held.is_empty()).err());
        if wrong.is_some() {
            return Ok(wrong);
        }
        let found: Vec<Entry> = map.iter().collect::<Result<_, _>>()?;
        let mut back: Vec<Entry> = map.iter().rev().collect::<Result<_, _>>()?;
        back.reverse();
        let wrong = (found != back).then(|| "the reverse walk shows other entries".to_owned());
        Ok(wrong.or(self.judge_entries(slot, &found, held)?))
    }

    fn borrowed(&mut self, slot: usize, n: usize, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let map = self.map(slot)?;
        let keys = &self.keys[slot];
        let some = n..(n + 20).min(keys.len());
        let mut reader = map.reader();
        let found = reader.multi_get(&keys[some.clone()])?;
        for (n, found) in some.zip(&found) {
            if let Some(wrong) = self.judge(slot, found.as_deref(), truth.value(slot, n))? {
                return Ok(Some(format!("borrowed, key {n}: {wrong}")));
            }
        }
        drop(found);
        reader.repin();
        if !self.is_ordered(slot) {
            let refused = |entries: wollemi::Range<'_>| not_refused_by("reader", entries);
            let wrong = refused(reader.prefix(&keys[n])).or(refused(reader.range(&keys[n]..)));
            let mut walked = Vec::new();
            for entry in reader.iter().take(MAX_ENTRIES) {
                let (key, value) = entry?;
                walked.push((key.to_vec(), value.to_vec()));
            }
            return Ok(wrong.or(self.judge_first(slot, &walked, MAX_ENTRIES, &truth.maps[slot])?));
        }
        let prefix = &keys[n][..keys[n].len().min(6)];
        let (mut walked, mut last) = (Vec::new(), None);
        for entry in reader.prefix(prefix).take(MAX_ENTRIES) {
            let (key, value) = entry?;
            walked.push((key.to_vec(), value.to_vec()));
            last = Some(key.to_vec());
        }
        let first = reader.iter().next().transpose()?;
        if let (Some((first, _)), Some(last)) = (first, &last)
            && first > &last[..]
        {
            return Ok(Some(format!("the first key is {first:x?}, but {last:x?} exists")));
        }
        // The walk stopped at the limit, so compare only the keys up to its last one.
        let behind =
            |key: &[u8]| walked.len() == MAX_ENTRIES && last.as_deref().is_some_and(|last| key > last);
        let held = held(keys, &truth.maps[slot]);
        let expected = held
            .into_iter()
            .filter(|(key, _)| key.starts_with(prefix) && !behind(key));
        self.judge_entries(slot, &walked, expected.collect())
    }

    fn views(&mut self, slot: usize, from: usize, to: usize) -> Result<Option<Wrong>, Error> {
        let Some((snapshot, before)) = self.snapshot.take() else {
            return Ok(None);
        };
        let (map, name) = (self.map(slot)?, self.plan.name(slot, self.thread));
        let read = || -> Result<_, Error> {
            let view = snapshot.view(&map)?;
            let about = view.name() == name
                && view.index_kind() == map.index_kind()
                && snapshot.maps().iter().any(|map| map.name == name);
            let (lower, upper) = (&self.keys[slot][from], &self.keys[slot][to]);
            let (mut range, mut prefix, mut wrong) = (Vec::new(), Vec::new(), None);
            if map.index_kind().is_ordered() {
                range = view.range(lower..=upper).collect::<Result<_, _>>()?;
                prefix = view.prefix(lower).take(MAX_ENTRIES).collect::<Result<_, _>>()?;
            } else {
                wrong = not_refused_by("range of a view", view.range(lower..=upper))
                    .or(not_refused_by("prefix of a view", view.prefix(lower)));
            }
            let first: Vec<Entry> = view.iter().take(MAX_ENTRIES).collect::<Result<_, _>>()?;
            let mut last: Vec<Entry> = view.iter().rev().take(MAX_ENTRIES).collect::<Result<_, _>>()?;
            last.reverse();
            if wrong.is_none() {
                wrong = view_differs(&view, lower)?;
            }
            let ends = (first, last);
            Ok((
                about,
                wrong,
                range,
                prefix,
                ends,
                view.contains(lower)?,
                snapshot.memory(),
            ))
        };
        let (about, refused, range, prefix, (first, last), contains, _) = match read() {
            Err(Error::SnapshotOutgrown(_)) => return Ok(None),
            read => read?,
        };
        let keys = &self.keys[slot];
        let all = held(keys, &before[slot]);
        let (lower, upper) = (&keys[from], &keys[to]);
        let there = all.iter().any(|(key, _)| *key == lower);
        let between = all
            .iter()
            .filter(|(key, _)| (lower..=upper).contains(key))
            .copied();
        let mut wrong = refused
            .or(self.judge_first(slot, &first, MAX_ENTRIES, &before[slot])?)
            .or(self.judge_last(slot, &last, MAX_ENTRIES, &before[slot])?);
        if self.is_ordered(slot) {
            wrong = wrong.or(self.judge_entries(slot, &range, between.collect())?);
        }
        if self.is_ordered(slot) && prefix.len() < MAX_ENTRIES {
            let begins = all.iter().filter(|(key, _)| key.starts_with(lower)).copied();
            wrong = wrong.or(self.judge_entries(slot, &prefix, begins.collect())?);
        }
        // The sweeper may not have removed an expired entry yet.
        let may_be = self.is_expiring(slot) || contains == there;
        let wrong = wrong
            .or((!about && before[slot].exists).then(|| "the view belongs to another map".into()))
            .or((!may_be).then(|| format!("contains answers {contains}")));
        self.snapshot = Some((snapshot, before));
        Ok(wrong.map(|wrong| format!("in a snapshot: {wrong}")))
    }

    fn by_hand(
        &mut self,
        slot: usize,
        n: usize,
        new: Val,
        by_hand: bool,
        truth: &Truth,
    ) -> Result<Option<Wrong>, Error> {
        let (map, there) = (self.map(slot)?, truth.value(slot, n).is_some());
        let (key, ordered) = (&self.keys[slot][n], self.is_ordered(slot));
        let body = |tx: &mut Transaction<'_>| -> Result<_, Error> {
            let held = tx.contains(&map, key)?;
            let inserted = tx.insert(&map, key, new.bytes())?;
            let entries = tx.prefix(&map, key);
            let sees = match ordered {
                true => {
                    let first = entries?.next().transpose()?;
                    first.is_some_and(|(first, _)| &first == key)
                }
                false => not_refused("prefix", entries).is_none(),
            };
            Ok([held, !inserted, !tx.is_empty(), sees, tx.len() == 1])
        };
        let seen = match by_hand {
            true => {
                let mut tx = self.db.begin();
                let seen = body(&mut tx)?;
                tx.commit()?;
                // Another thread may write a neighbouring key; the conflict does not undo the commit.
                let mut is_again = false;
                let holds = retry_conflicts(|| {
                    let mut tx = self.db.begin_owned();
                    tx.set_again(std::mem::replace(&mut is_again, true));
                    let holds = tx.contains(&map, key)?;
                    tx.check().map(|()| holds)
                })?;
                let again =
                    retry_conflicts(|| self.db.transact_owned(&Retry::new(), |tx| tx.contains(&map, key)))?;
                let wrong = same("read-only transactions", [holds, again], [true; 2]).err();
                if let Some(wrong) = wrong.or(self.abandoned(&map, key)?) {
                    return Ok(Some(wrong));
                }
                seen
            }
            false => self.db.transact_with(&Retry::new().tries(100), body)?,
        };
        // Inserting a key that is present changes nothing.
        let expected = [there, there, !there, true, !there];
        Ok(same("a transaction that inserts", seen, expected).err())
    }

    /// Calls of a transaction that is dropped. The key is this thread's and present; others may change the map's ends.
    fn abandoned(&self, map: &Map, key: &[u8]) -> Result<Option<Wrong>, Error> {
        let mut tx = self.db.begin();
        let there = tx.get(map, key)?;
        let mut wrong = same(
            "multi_get",
            tx.multi_get(map, &[key, key])?,
            vec![there.clone(); 2],
        )
        .err();
        let updated = tx.update(map, key, "updated")?;
        let edited = tx.edit_with(map, key, |value| value.map(|value| [value, b"!"].concat()))?;
        wrong = wrong.or(same("update", updated, there.is_some()).err()).or(same(
            "edit_with",
            edited,
            Some(b"updated!".to_vec()),
        )
        .err());
        if !map.index_kind().is_ordered() {
            return Ok(wrong
                .or(not_refused("first", tx.first(map)))
                .or(not_refused("last", tx.last(map)))
                .or(not_refused("pop_first", tx.pop_first(map)))
                .or(not_refused("pop_last", tx.pop_last(map))));
        }
        let (first, last) = (tx.first(map)?, tx.last(map)?);
        let around = |entry: &Option<Entry>| entry.as_ref().map(|(key, _)| key.clone());
        let between = around(&first).is_some_and(|first| &*first <= key)
            && around(&last).is_some_and(|last| &*last >= key);
        wrong = wrong.or((!between).then(|| format!("ends: {first:x?} and {last:x?} around {key:x?}")));
        let popped = (tx.pop_first(map)?, tx.pop_last(map)?);
        let both = around(&popped.0).is_some_and(|first| &*first <= key);
        Ok(wrong.or((!both).then(|| format!("pops: {popped:x?} around {key:x?}"))))
    }

    fn wait(&mut self, slot: usize, n: usize, new: Val, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let (map, key) = (self.map(slot)?, &self.keys[slot][n]);
        let mut watch = map.watch(key, 10)?;
        map.upsert(key, new.bytes())?;
        let patience = Duration::from_secs(60);
        let event = match truth.value(slot, n) {
            // Uses both ways to wait for an event.
            Some(_) => watch.next_within(patience),
            None => watch.next(),
        };
        let expected = Event::Changed {
            key: key.clone(),
            value: Some(new.bytes()),
        };
        Ok(same("a watch", event, Some(expected)).err())
    }

    fn alive(&mut self, slot: usize, from: usize, to: usize, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let map = Expiring::new(self.map(slot)?);
        let keys = &self.keys[slot];
        let wrong = same("map", map.map().name(), &*self.plan.name(slot, self.thread)).err();
        let (lower, upper) = (&keys[from], &keys[to]);
        let mut found: Vec<Entry> = Vec::new();
        let bounds = if self.is_ordered(slot) {
            found.extend(map.range(lower..=upper).collect::<Result<Vec<_>, _>>()?);
            (Bound::Included(&**lower), Bound::Included(&**upper))
        } else {
            if let Some(wrong) = not_refused_by("range", map.range(lower..=upper)) {
                return Ok(Some(wrong));
            }
            found.extend(map.range(..).take(MAX_ENTRIES).collect::<Result<Vec<_>, _>>()?);
            let last = found.last().filter(|_| found.len() == MAX_ENTRIES);
            (
                Bound::Unbounded,
                last.map_or(Bound::Unbounded, |(key, _)| Bound::Included(&**key)),
            )
        };
        let expected = self.held_between(slot, &truth.maps[slot], bounds);
        let mut found = found
            .iter()
            .filter(|(key, _)| crate::keys::owner(key) == Some(self.thread));
        for (key, value) in expected {
            let next = found.next();
            if !next.is_some_and(|(found, bytes)| found == key && value.is(bytes)) {
                let found = next.map(|(key, _)| key);
                return Ok(Some(format!(
                    "alive: {found:x?} instead of {key:x?}, or another value of it"
                )));
            }
        }
        let (left, wanted) = (map.get_with_life(&keys[from])?, truth.value(slot, from));
        let lives = left.and_then(|(_, left)| left).is_some_and(|left| left <= HOURS);
        let wanted = wanted.is_some_and(|value| life(value.life).is_some());
        let more = found.next().map(|(key, _)| format!("alive: {key:x?}"));
        let wrong = wrong.or(more).or(same("get_with_life", lives, wanted).err());
        Ok(wrong.or(self.alive_differs(&map, &keys[from], truth.value(slot, from))?))
    }

    /// Compares the other forms of an expiring map's reads with what this thread's key holds. Others change the map.
    fn alive_differs(
        &self,
        map: &Expiring,
        key: &[u8],
        expected: Option<Val>,
    ) -> Result<Option<Wrong>, Error> {
        let there = expected.is_some();
        let mut wrong = same("contains", map.contains(key)?, there).err();
        for found in map.multi_get(&[key, key])? {
            wrong = wrong.or(differs(found.as_deref(), expected));
        }
        let (len, is_empty) = (map.len()?, map.is_empty()?);
        wrong = wrong
            .or((there && len == 0).then(|| format!("len is 0 with {key:x?}")))
            .or((there && is_empty).then(|| format!("is_empty with {key:x?}")));
        let listed = map.iter().try_fold(false, |listed, entry| {
            entry.map(|(found, _)| listed || found == key)
        })?;
        wrong = wrong.or(same("iter", listed, there).err());
        if !map.map().index_kind().is_ordered() {
            return Ok(wrong
                .or(not_refused("first", map.first()))
                .or(not_refused("last", map.last()))
                .or(not_refused_by("prefix", map.prefix(key))));
        }
        let begins = map
            .prefix(key)
            .next()
            .transpose()?
            .is_some_and(|(found, _)| found == key);
        let (first, last) = (map.first()?, map.last()?);
        let around =
            first.is_some_and(|(first, _)| &*first <= key) && last.is_some_and(|(last, _)| &*last >= key);
        Ok(wrong
            .or(same("prefix", begins, there).err())
            .or((there && !around).then(|| format!("the ends are not around {key:x?}"))))
    }

    fn relive(
        &mut self,
        slot: usize,
        n: usize,
        new: Option<Val>,
        truth: &Truth,
    ) -> Result<Option<Wrong>, Error> {
        let (map, key, old) = (
            Expiring::new(self.map(slot)?),
            &self.keys[slot][n],
            truth.value(slot, n),
        );
        let (ordered, there) = (self.is_ordered(slot), old.is_some());
        let mut wrong = self.relived(&map, key, old)?;
        let (found, alive, removed) = self.db.transact(|tx| -> Result<_, Error> {
            let found = map.get_in(tx, key)?;
            wrong = wrong
                .take()
                .or(same("contains_in", map.contains_in(tx, key)?, there).err());
            if ordered && there && map.prefix_in(tx, key)?.next().is_none() {
                wrong = wrong.take().or(Some("prefix_in finds nothing".into()));
            }
            let alive = map.range_in(tx, key..=key).map(Iterator::count);
            let alive = match ordered {
                true => Ok(alive?),
                false => not_refused("range_in", alive).map_or(Ok(usize::from(there)), Err),
            };
            let removed = match new {
                Some(new) => {
                    if !map.insert_in(tx, key, new.bytes(), life(new.life))? {
                        map.upsert_in(tx, key, new.bytes(), life(new.life))?;
                    }
                    None
                }
                None => Some(map.remove_in(tx, key)?),
            };
            Ok((found, alive, removed))
        })?;
        Ok(wrong
            .or(entry_differs(found.as_ref(), old))
            .or(same("range_in", alive, Ok(usize::from(there))).err())
            .or(same("remove_in", removed.unwrap_or(there), there).err()))
    }
}

impl Worker<'_> {
    /// Calls of an expiring map that edit a key and leave it as it was.
    fn relived(&self, map: &Expiring, key: &[u8], old: Option<Val>) -> Result<Option<Wrong>, Error> {
        let map = map.with_durability(Durability::Immediate);
        let mut wrong = None;
        let kept = map.edit_with(key, |current| {
            wrong = differs(current.map(|(value, _)| value), old);
            current.map(|(value, left)| (value.to_vec(), left))
        })?;
        wrong = wrong.or(entry_differs(kept.as_ref(), old));
        let bytes = old.map(Val::bytes);
        let left = old.and_then(|old| life(old.life));
        let swapped = map.compare_and_swap(key, bytes.as_ref(), bytes.as_ref(), left)?;
        let missed = map.compare_and_swap(key, Some("no value is this"), None, None)?;
        wrong = wrong.or(same("compare_and_swap", [swapped, missed], [true, false]).err());
        let updated = map.update(key, bytes.unwrap_or_default(), left)?;
        Ok(wrong.or(same("update", updated, old.is_some()).err()))
    }
}

/// Compares the other forms of a view's reads with its iterator and its `get`.
fn view_differs(view: &View, key: &[u8]) -> Result<Option<Wrong>, Error> {
    let wrong = same("multi_get", view.multi_get(&[key, key])?, vec![view.get(key)?; 2]).err();
    let counted = view
        .iter()
        .rev()
        .try_fold(0, |count, entry| entry.map(|_| count + 1))?;
    let wrong = wrong
        .or(same(
            "is_empty",
            view.is_empty()?,
            view.iter().next().transpose()?.is_none(),
        )
        .err())
        .or(same("len", view.len()?, counted).err());
    Ok(wrong.or(match view.index_kind().is_ordered() {
        true => {
            let ends = (view.first()?, view.last()?);
            let expected = (
                view.iter().next().transpose()?,
                view.iter().next_back().transpose()?,
            );
            same("ends", ends, expected).err()
        }
        false => not_refused("first", view.first()).or(not_refused("last", view.last())),
    }))
}

/// Runs a read-only transaction until it meets no conflict. Each conflict is a write of another thread.
fn retry_conflicts<T>(mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match attempt() {
            Err(Error::Conflict { .. }) => {}
            result => return result,
        }
    }
}

/// Returns the keys that have a value, with their values.
fn held<'k>(keys: &'k [Vec<u8>], map: &MapTruth) -> Vec<(&'k Vec<u8>, Val)> {
    let held = keys.iter().zip(&map.values);
    held.filter_map(|(key, value)| Some((key, (*value)?))).collect()
}
