//! Batches and transactions.

use super::unordered::not_refused;
use super::{Worker, Wrong, same, unmet_expectation};
use crate::keys::owner;
use crate::op::Body;
use crate::truth::{Truth, Val};
use std::collections::HashMap;
use wollemi::{Entry, Error, Map, Transaction};

/// A change: the map, its number, the key's number, and the new value.
type Put = (Map, usize, usize, Option<Vec<u8>>);

/// The results of a transaction's reads: before its changes, of the changed keys, and of a range.
#[derive(Default)]
struct Found {
    before: Vec<Option<Vec<u8>>>,
    changed: Vec<Option<Vec<u8>>>,
    range: Vec<Entry>,
    /// Set if a map without key order did not refuse the range as it must.
    wrong: Option<Wrong>,
}

impl Worker<'_> {
    pub(super) fn batch(
        &mut self,
        changes: &[(usize, usize, Option<Val>)],
        expected: &[(usize, usize, bool)],
        truth: &Truth,
    ) -> Result<Result<(), Wrong>, Error> {
        let mut batch = self.db.batch();
        for &(slot, n, new) in changes {
            let map = self.map(slot)?;
            match new {
                Some(new) => batch.upsert(&map, &self.keys[slot][n], self.stored(slot, new)?),
                None => batch.remove(&map, &self.keys[slot][n]),
            };
        }
        for &(slot, n, right) in expected {
            let (map, old) = (self.map(slot)?, truth.value(slot, n));
            let value = if right {
                old.map(Val::bytes)
            } else {
                unmet_expectation(old)
            };
            batch.expect(&map, &self.keys[slot][n], value);
        }
        let holds = expected.iter().all(|&(_, _, right)| right);
        let about = same("len", batch.len(), changes.len())
            .and_then(|()| same("is_empty", batch.is_empty(), changes.is_empty()));
        Ok(about.and(same("commit", batch.commit()?, holds)))
    }

    /// Carries out a transaction. Its reads must show the present content, and those after its changes the new one.
    pub(super) fn transaction(&mut self, transaction: &Body, truth: &Truth) -> Result<Option<Wrong>, Error> {
        let Body {
            reads,
            changes,
            range,
            commits,
        } = transaction;
        let (db, keys, thread) = (self.db, self.keys, self.thread);
        let mut puts: Vec<Put> = Vec::new();
        for &(slot, n, new) in changes {
            let value = new.map(|new| self.stored(slot, new)).transpose()?;
            puts.push((self.map(slot)?, slot, n, value));
        }
        let maps: Result<Vec<Map>, Error> = reads.iter().map(|&(slot, _)| self.map(slot)).collect();
        let (maps, ranged) = (maps?, range.map(|(slot, ..)| self.map(slot)).transpose()?);
        let body = |tx: &mut Transaction<'_>| {
            let mut found = Found::default();
            for (map, &(slot, n)) in maps.iter().zip(reads) {
                found.before.push(tx.get(map, &keys[slot][n])?);
            }
            for (map, slot, n, value) in &puts {
                match value {
                    Some(value) => tx.upsert(map, &keys[*slot][*n], value)?,
                    None => _ = tx.remove(map, &keys[*slot][*n])?,
                }
            }
            for (map, slot, n, _) in &puts {
                found.changed.push(tx.get(map, &keys[*slot][*n])?);
            }
            if let (Some(map), &Some((slot, from, to))) = (&ranged, range) {
                let entries = tx.range(map, &*keys[slot][from]..=&*keys[slot][to]);
                if map.index_kind().is_ordered() {
                    found.range = entries?.collect::<Result<_, _>>()?;
                } else {
                    found.wrong = not_refused("the range of a transaction", entries);
                }
            }
            Ok::<_, Error>(found)
        };
        let found = if *commits {
            db.transact(body)?
        } else {
            body(&mut db.begin())?
        };
        if found.wrong.is_some() {
            return Ok(found.wrong);
        }
        // Of several changes to one key, the last one counts.
        let after: HashMap<_, _> = changes.iter().map(|&(slot, n, new)| ((slot, n), new)).collect();
        let before = reads.iter().map(|&(slot, n)| (slot, n, truth.value(slot, n)));
        let changed = changes.iter().map(|&(slot, n, _)| (slot, n, after[&(slot, n)]));
        let read = found.before.iter().chain(&found.changed);
        for (found, (slot, n, expected)) in read.zip(before.chain(changed)) {
            if let Some(wrong) = self.judge(slot, found.as_deref(), expected)? {
                return Ok(Some(format!("map {slot}, key {n}: {wrong}")));
            }
        }
        let Some((slot, from, to)) = range.filter(|&(slot, ..)| self.plan.maps[slot].is_ordered()) else {
            return Ok(None);
        };
        let mut own = found.range.iter().filter(|(key, _)| owner(key) == Some(thread));
        for (n, key) in (from..).zip(&keys[slot][from..=to]) {
            let expected = *after.get(&(slot, n)).unwrap_or(&truth.value(slot, n));
            let Some(expected) = expected else { continue };
            let wrong = loop {
                break match own.next() {
                    Some((found, value)) if found == key => self.judge(slot, Some(value), Some(expected))?,
                    // The sweeper may not have removed an expired entry yet.
                    Some((_, value)) if self.judge(slot, Some(value), None)?.is_none() => continue,
                    other => Some(format!("{:x?}", other.map(|(key, _)| key))),
                };
            };
            if let Some(wrong) = wrong {
                return Ok(Some(format!("in a range of map {slot}, key {n}: {wrong}")));
            }
        }
        Ok(None)
    }
}
