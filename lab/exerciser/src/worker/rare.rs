//! Calls that few programs make.

use super::{HOURS, Worker, Wrong, differs, entry_differs, life, same};
use crate::op::Rare;
use crate::truth::{MapTruth, Truth, Val};
use std::collections::BTreeMap;
use std::time::Duration;
use wollemi::{Entry, Error, Event, Expiring, Retry, Transaction, TypedMap};

/// Entries that a walk over a shared map reads at most.
const SOME: usize = 200;

/// What each of the calls answers is compared here.
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
            Rare::Eventual(slot, n, new, later) => self.eventual(slot, n, new, later),
            Rare::Typed => self.typed(),
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
        // What an opening has carried out depends on when the process was killed.
        let _ = self.db.carried_out();
        let found = self.db.map(&name)?;
        let said = said.and_then(|()| same("map", found.name(), &name));
        // The contract that servers use, from another handle.
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
        let held = held(&self.keys[slot], &truth.maps[slot]);
        let wrong = self
            .differs_from_end(slot, map.first()?.as_ref(), truth.end(slot, false))
            .or(self.differs_from_end(slot, map.last()?.as_ref(), truth.end(slot, true)))
            .or(same("len", map.len()?, held.len() as u64).err())
            .or(same("is_empty", map.is_empty()?, held.is_empty()).err());
        if wrong.is_some() {
            return Ok(wrong);
        }
        let found: Vec<Entry> = map.iter().collect::<Result<_, _>>()?;
        self.judge_entries(slot, &found, held)
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
        let prefix = &keys[n][..keys[n].len().min(6)];
        let (mut walked, mut last) = (Vec::new(), None);
        for entry in reader.prefix(prefix).take(SOME) {
            let (key, value) = entry?;
            walked.push((key.to_vec(), value.to_vec()));
            last = Some(key.to_vec());
        }
        let first = reader.iter().next().transpose()?;
        if let (Some((first, _)), Some(last)) = (first, &last)
            && first > &last[..]
        {
            return Ok(Some(format!(
                "the first key is {first:x?}, and there is {last:x?}"
            )));
        }
        // A long walk was cut short.
        let behind = |key: &[u8]| walked.len() == SOME && last.as_deref().is_some_and(|last| key > last);
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
            let range: Vec<Entry> = view.range(lower..=upper).collect::<Result<_, _>>()?;
            let prefix: Vec<Entry> = view.prefix(lower).take(SOME).collect::<Result<_, _>>()?;
            let first = view.iter().next().transpose()?;
            Ok((
                about,
                range,
                prefix,
                first,
                view.contains(lower)?,
                snapshot.memory(),
            ))
        };
        let (about, range, prefix, first, contains, _) = match read() {
            Err(Error::SnapshotOutgrown(_)) => return Ok(None),
            read => read?,
        };
        let keys = &self.keys[slot];
        let all = if before[slot].exists {
            held(keys, &before[slot])
        } else {
            Vec::new()
        };
        let (lower, upper) = (&keys[from], &keys[to]);
        let there = all.iter().any(|(key, _)| *key == lower);
        let between = all
            .iter()
            .filter(|(key, _)| (lower..=upper).contains(key))
            .copied();
        let mut wrong = self.judge_entries(slot, &range, between.collect())?;
        if prefix.len() < SOME {
            let begins = all.iter().filter(|(key, _)| key.starts_with(lower)).copied();
            wrong = wrong.or(self.judge_entries(slot, &prefix, begins.collect())?);
        }
        // An entry past its end may be there still.
        let may_be = self.is_expiring(slot) || contains == there;
        let wrong = wrong
            .or((!about && before[slot].exists).then(|| "the view is not of the map".into()))
            .or((!may_be).then(|| format!("contains answers {contains}")))
            .or((first.is_none() && !all.is_empty()).then(|| "the view is empty".into()));
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
        let key = &self.keys[slot][n];
        let body = |tx: &mut Transaction<'_>| -> Result<_, Error> {
            let held = tx.contains(&map, key)?;
            let inserted = tx.insert(&map, key, new.bytes())?;
            let found: Vec<Entry> = tx.prefix(&map, key)?.take(1).collect::<Result<_, _>>()?;
            let sees = found.first().is_some_and(|(first, _)| first == key);
            Ok([held, !inserted, !tx.is_empty(), sees, tx.len() == 1])
        };
        let seen = match by_hand {
            true => {
                let mut tx = self.db.begin();
                let seen = body(&mut tx)?;
                tx.commit()?;
                // No other thread writes the key, but perhaps one beside it: a conflict is no refusal of what is committed.
                let holds = through_conflicts(|| {
                    let looks = self.db.begin_owned();
                    let holds = looks.contains(&map, key)?;
                    looks.check().map(|()| holds)
                })?;
                let again =
                    through_conflicts(|| self.db.transact_owned(&Retry::new(), |tx| tx.contains(&map, key)))?;
                if let Some(wrong) = same("transactions that look", [holds, again], [true; 2]).err() {
                    return Ok(Some(wrong));
                }
                seen
            }
            false => self.db.transact_with(&Retry::new().tries(100), body)?,
        };
        let changes = seen[2];
        let expected = [there, there, changes, true, changes];
        let wrong = same("a transaction that inserts", seen, expected).err();
        Ok(wrong.or((!there && !changes).then(|| "a transaction has no change".into())))
    }

    fn wait(&mut self, slot: usize, n: usize, new: Val, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let (map, key) = (self.map(slot)?, &self.keys[slot][n]);
        let mut watch = map.watch(key, 10)?;
        map.upsert(key, new.bytes())?;
        let patience = Duration::from_secs(60);
        let told = match truth.value(slot, n) {
            // Both ways to wait for an event that has come.
            Some(_) => watch.next_within(patience),
            None => watch.next(),
        };
        let expected = Event::Changed {
            key: key.clone(),
            value: Some(new.bytes()),
        };
        Ok(same("a watch", told, Some(expected)).err())
    }

    fn alive(&mut self, slot: usize, from: usize, to: usize, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let map = Expiring::new(self.map(slot)?);
        let keys = &self.keys[slot];
        let wrong = same("map", map.map().name(), &*self.plan.name(slot, self.thread)).err();
        let (lower, upper) = (&keys[from], &keys[to]);
        let found: Vec<Entry> = map.range(lower..=upper).collect::<Result<_, _>>()?;
        let mut found = found
            .into_iter()
            .filter(|(key, _)| crate::keys::owner(key) == Some(self.thread));
        for (n, key) in (from..).zip(&keys[from..=to]) {
            let Some(value) = truth.value(slot, n) else {
                continue;
            };
            let next = found.next();
            let is = next
                .as_ref()
                .is_some_and(|(found, bytes)| found == key && value.is(bytes));
            if !is {
                let key = next.map(|(key, _)| key);
                return Ok(Some(format!(
                    "alive: {key:x?} instead of key {n}, or another value of it"
                )));
            }
        }
        let (left, wanted) = (map.get_with_life(&keys[from])?, truth.value(slot, from));
        let lives = left.and_then(|(_, left)| left).is_some_and(|left| left <= HOURS);
        let wanted = wanted.is_some_and(|value| life(value.life).is_some());
        let more = found.next().map(|(key, _)| format!("alive: {key:x?}"));
        Ok(wrong.or(more).or(same("get_with_life", lives, wanted).err()))
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
        let (found, alive, removed) = self.db.transact(|tx| -> Result<_, Error> {
            let found = map.get_in(tx, key)?;
            let alive = map.range_in(tx, key..=key)?.count();
            let removed = match new {
                Some(new) => {
                    map.upsert_in(tx, key, new.bytes(), life(new.life))?;
                    None
                }
                None => Some(map.remove_in(tx, key)?),
            };
            Ok((found, alive, removed))
        })?;
        let there = old.is_some();
        Ok(entry_differs(found.as_ref(), old)
            .or(same("range_in", alive, usize::from(there)).err())
            .or(same("remove_in", removed.unwrap_or(there), there).err()))
    }

    /// A map of the thread's own that is empty before and afterwards, unless the process is killed meanwhile.
    fn typed(&mut self) -> Result<Option<Wrong>, Error> {
        let name = format!("numbers of {}", self.thread);
        let map: TypedMap<u64, (u32, String)> = TypedMap::new(self.db.map(&name)?);
        while map.pop_last()?.is_some() {}
        let value = |key: u64| (key as u32 * 3, format!("text {key}"));
        let mut wrong = None;
        let mut expected = BTreeMap::new();
        for key in [5, 2, 7, 2] {
            let absent = expected.insert(key, value(key)).is_none();
            wrong = wrong.or(same("insert", map.insert(&key, &value(key))?, absent).err());
        }
        map.upsert(&2, &value(4))?;
        expected.insert(2, value(4));
        wrong = wrong
            .or(same("get", map.get(&2)?, Some(value(4))).err())
            .or(same("contains", map.contains(&3)?, false).err())
            .or(same("key", map.key(&258), 258u64.to_be_bytes().to_vec()).err())
            .or(same("value", map.map().get(map.key(&7))?, Some(map.value(&value(7))?)).err());
        let all: Vec<_> = map.iter().collect::<Result<_, _>>()?;
        let some: Vec<_> = map.range(3..).rev().collect::<Result<_, _>>()?;
        let after: Vec<_> = expected
            .range(3..)
            .rev()
            .map(|(key, value)| (*key, value.clone()))
            .collect();
        wrong = wrong
            .or(same("iter", all, expected.into_iter().collect()).err())
            .or(same("range", some, after).err());
        let seen = self.db.transact(|tx| -> Result<_, Error> {
            let inserted = map.insert_in(tx, &5, &value(1))?;
            map.upsert_in(tx, &9, &value(9))?;
            let removed = map.remove_in(tx, &9)?;
            let behind = map.range_in(tx, 6..)?.count();
            Ok((inserted, removed, behind, map.get_in(tx, &9)?))
        })?;
        let ends = (map.first()?, map.last()?, map.len()?);
        wrong = wrong
            .or(same("a typed transaction", seen, (false, true, 1, None)).err())
            .or(same("ends", ends, (Some((2, value(4))), Some((7, value(7))), 3)).err())
            .or(same("pop_first", map.pop_first()?, Some((2, value(4)))).err())
            .or(same("pop_last", map.pop_last()?, Some((7, value(7)))).err())
            .or(same("remove", map.remove(&5)?, true).err())
            .or(same("is_empty", map.is_empty()?, true).err());
        Ok(wrong.or(self.typed_texts()?))
    }

    /// Calls of a typed map whose keys are text, and begin as others do.
    fn typed_texts(&mut self) -> Result<Option<Wrong>, Error> {
        let map: TypedMap<String, u64> = TypedMap::new(self.db.map(&format!("texts of {}", self.thread))?);
        let pairs: TypedMap<(String, u8), u64> =
            TypedMap::new(self.db.map(&format!("pairs of {}", self.thread))?);
        while map.pop_last()?.is_some() {}
        while pairs.pop_last()?.is_some() {}
        let [a, ab, b] = ["a", "ab", "b"].map(str::to_owned);
        let mut watch = map.watch(10)?;
        let mut wrong = same("load", map.load([(&a, &1), (&ab, &2), (&b, &3)])?, 3).err();
        let snapshot = self.db.snapshot()?;
        wrong = wrong
            .or(same("update", map.update(&ab, &4)?, true).err())
            .or(same(
                "compare_and_swap",
                map.compare_and_swap(&ab, Some(&2), None)?,
                false,
            )
            .err())
            .or(same(
                "edit_with",
                map.edit_with(&a, |value| value.map(|value| value + 10))?,
                Some(11),
            )
            .err())
            .or(same(
                "multi_get",
                map.multi_get(["b", "c", "a"])?,
                vec![Some(3), None, Some(11)],
            )
            .err())
            .or(same("prefix", map.prefix("a").count(), 2).err())
            .or(same("view", map.view(&snapshot)?.get("ab")?, Some(2)).err());
        drop(snapshot);
        let mut told = Vec::new();
        while let Some(event) = watch.try_next()? {
            told.push(event);
        }
        let changed = |key: &String, value| wollemi::Event::Changed {
            key: key.clone(),
            value: Some(value),
        };
        let expected =
            [(&a, 1), (&ab, 2), (&b, 3), (&ab, 4), (&a, 11)].map(|(key, value)| changed(key, value));
        wrong = wrong.or(same("watch", told, expected.to_vec()).err());
        for (text, number) in [(&a, 2), (&ab, 1), (&a, 1)] {
            pairs.upsert(&(text.clone(), number), &1)?;
        }
        let first: Vec<_> = pairs.with_first(&a).collect::<Result<_, _>>()?;
        let expected = vec![((a.clone(), 1), 1), ((a, 2), 1)];
        Ok(wrong.or(same("with_first", first, expected).err()))
    }
}

/// What a transaction that only looks has seen, without what other threads write beside. Each conflict is a write of
/// theirs.
fn through_conflicts<T>(mut look: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match look() {
            Err(Error::Conflict { .. }) => {}
            looked => return looked,
        }
    }
}

/// The keys that hold something, and what.
fn held<'k>(keys: &'k [Vec<u8>], map: &MapTruth) -> Vec<(&'k Vec<u8>, Val)> {
    let held = keys.iter().zip(&map.values);
    held.filter_map(|(key, value)| Some((key, (*value)?))).collect()
}
