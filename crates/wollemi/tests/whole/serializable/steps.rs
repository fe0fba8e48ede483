//! The steps of a transaction.

use super::client::Versions;
use super::forms::{Form, Found, Range};
use super::keys::{Bounds, KEYS, Key, POINTS, of_prefix};
use super::seen::Seen;
use super::{MAPS, Random};
use index::conformance::serializability::ABSENT;
use std::ops::Bound::{Included, Unbounded};
use wollemi::{Error, Media, Transaction};

/// Why a transaction's closure has ended early.
pub enum Stop {
    /// It has changed a key whose version it does not know, so that a history could not tell what it replaced.
    Abandoned(Box<Seen>),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// A running transaction.
pub struct Steps<'r, 't, 'd, M: Media> {
    pub maps: &'r [Form; MAPS],
    pub tx: &'t mut Transaction<'d, M>,
    pub random: &'r mut Random,
    pub versions: &'r mut Versions,
    pub seen: Seen,
}

impl<M: Media> Steps<'_, '_, '_, M> {
    /// Makes some steps, without changes if it only reads.
    pub fn run(mut self, only_reads: bool) -> Result<Seen, Stop> {
        for _ in 0..1 + self.random.below(5) {
            // So that others come in between, on a machine with few processors, too.
            if self.random.one_in(8) {
                std::thread::yield_now();
            }
            match self.random.below(if only_reads { 8 } else { 16 }) {
                0..3 => self.get()?,
                3 => self.multi_get()?,
                4 | 5 => self.range()?,
                6 | 7 => self.prefix()?,
                8 | 9 => self.upsert()?,
                10 => self.insert()?,
                11 => self.update()?,
                12 | 13 => self.remove()?,
                14 => self.edit()?,
                _ => self.pop()?,
            }
        }
        Ok(self.seen)
    }

    /// Returns a key.
    fn key(&mut self) -> Key {
        self.random.key()
    }

    fn form(&self, (map, _): Key) -> &Form {
        &self.maps[map]
    }

    fn get(&mut self) -> Result<(), Stop> {
        let key = self.key();
        self.get_key(key)
    }

    fn get_key(&mut self, key: Key) -> Result<(), Stop> {
        let found = self.form(key).get_in(self.tx, key.1)?;
        self.seen.read(key, found);
        Ok(())
    }

    fn multi_get(&mut self) -> Result<(), Stop> {
        let map = self.random.below(MAPS as u64) as usize;
        let keys: Vec<_> = (0..3).map(|_| self.random.pick(&KEYS)).collect();
        let found = self.maps[map].multi_get_in(self.tx, &keys)?;
        for (key, version) in keys.into_iter().zip(found) {
            self.seen.read((map, key), version);
        }
        Ok(())
    }

    /// Returns a map that has ranges, if there is one.
    fn ordered(&mut self) -> Option<usize> {
        let map = self.random.below(MAPS as u64) as usize;
        let maps = (map..MAPS).chain(0..map);
        maps.into_iter().find(|map| self.maps[*map].is_ordered())
    }

    fn range(&mut self) -> Result<(), Stop> {
        let bounds = self.random.bounds();
        let Some(map) = self.ordered() else {
            return Ok(());
        };
        let range = self.maps[map].range_in(self.tx, bounds)?;
        walk(map, bounds, range, (self.random, &mut self.seen))
    }

    fn prefix(&mut self) -> Result<(), Stop> {
        let prefix = self.random.pick(&POINTS);
        let Some(map) = self.ordered() else {
            return Ok(());
        };
        let range = self.maps[map].prefix_in(self.tx, prefix)?;
        walk(map, of_prefix(prefix), range, (self.random, &mut self.seen))
    }

    fn upsert(&mut self) -> Result<(), Stop> {
        let key = self.key();
        if self.seen.now(key).is_none() {
            self.get_key(key)?;
        }
        let new = self.versions.next();
        self.maps[key.0].upsert_in(self.tx, key.1, new)?;
        self.seen.write(key, new);
        Ok(())
    }

    fn insert(&mut self) -> Result<(), Stop> {
        let (key, new) = (self.key(), self.versions.next());
        let inserted = self.maps[key.0].insert_in(self.tx, key.1, new)?;
        if !inserted && self.seen.now(key).is_none() {
            return self.get_key(key);
        }
        self.seen.found(key, !inserted);
        if inserted {
            self.seen.write(key, new);
        }
        Ok(())
    }

    fn update(&mut self) -> Result<(), Stop> {
        let (key, new) = (self.known_key()?, self.versions.next());
        let updated = self.maps[key.0].update_in(self.tx, key.1, new)?;
        self.changed(key, updated, new)
    }

    fn remove(&mut self) -> Result<(), Stop> {
        let key = self.known_key()?;
        let removed = self.maps[key.0].remove_in(self.tx, key.1)?;
        self.changed(key, removed, ABSENT)
    }

    /// Returns a key whose version it mostly knows.
    fn known_key(&mut self) -> Result<Key, Stop> {
        let key = self.key();
        if self.seen.now(key).is_none() && self.random.one_in(2) {
            self.get_key(key)?;
        }
        Ok(key)
    }

    /// Notes a change of a key if it is present.
    fn changed(&mut self, key: Key, was_present: bool, new: u64) -> Result<(), Stop> {
        if was_present && self.seen.now(key).is_none() {
            return Err(Stop::Abandoned(Box::new(std::mem::take(&mut self.seen))));
        }
        self.seen.found(key, was_present);
        if was_present {
            self.seen.write(key, new);
        }
        Ok(())
    }

    fn edit(&mut self) -> Result<(), Stop> {
        let key = self.key();
        let new = match self.random.one_in(2) {
            true => self.versions.next(),
            false => ABSENT,
        };
        let before = self.maps[key.0].edit_in(self.tx, key.1, new)?;
        self.seen.read(key, before);
        if before != new {
            self.seen.write(key, new);
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<(), Stop> {
        let first = self.random.one_in(2);
        let Some(map) = self.ordered() else {
            return Ok(());
        };
        let popped = self.maps[map].pop_in(self.tx, first)?;
        let bounds = match popped {
            None => (Unbounded, Unbounded),
            Some((key, _)) if first => (Unbounded, Included(key)),
            Some((key, _)) => (Included(key), Unbounded),
        };
        self.seen.range(map, bounds, popped.as_slice());
        if let Some((key, _)) = popped {
            self.seen.write((map, key), ABSENT);
        }
        Ok(())
    }
}

/// Reads a range from one end or from both, whole or in part, and notes as read what lies between each end and the last
/// entry that came from there.
fn walk(
    map: usize,
    (lower, upper): Bounds,
    mut range: Range<'_>,
    (random, seen): (&mut Random, &mut Seen),
) -> Result<(), Stop> {
    let steps = match random.one_in(2) {
        true => usize::MAX,
        false => random.below(4) as usize,
    };
    let ends = random.below(3);
    let (mut front, mut back): (Vec<Found>, Vec<Found>) = (Vec::new(), Vec::new());
    let mut is_whole = false;
    for _ in 0..steps {
        let forward = ends == 0 || ends == 2 && random.one_in(2);
        let next = if forward { range.next() } else { range.next_back() };
        match (next.transpose()?, forward) {
            (None, _) => {
                is_whole = true;
                break;
            }
            (Some(found), true) => front.push(found),
            (Some(found), false) => back.push(found),
        }
    }
    assert!(
        front.is_sorted() && back.is_sorted_by(|one, two| one > two),
        "{front:?} {back:?}"
    );
    if is_whole {
        front.append(&mut back);
        seen.range(map, (lower, upper), &front);
        return Ok(());
    }
    if let Some((last, _)) = front.last() {
        seen.range(map, (lower, Included(*last)), &front);
    }
    if let Some((last, _)) = back.last() {
        assert!(
            front.last().is_none_or(|(front, _)| front < last),
            "{front:?} {back:?}"
        );
        seen.range(map, (Included(*last), upper), &back);
    }
    Ok(())
}
