//! Reads the databases' content: as clients see it, as the count reports it, and as the maps hold it.

use super::edits::shown;
use super::{Live, NOW, failed};
use crate::items::{Answer, Place, Shown};
use crate::map::reads::{get_agrees, walks_agree};
use index::Direction;
use server::stored::{Failure, Header, Item, PLACE, StoreRecord};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

/// The content of a map, including dead and dropped items.
pub(in crate::items) struct Raw {
    pub(in crate::items) record: StoreRecord,
    pub(in crate::items) items: Vec<(Vec<u8>, Header)>,
    /// The bytes that the items occupy.
    pub(in crate::items) bytes: u64,
}

impl Live {
    /// Checks the server's count, and returns the number of items that clients see. No edit may be in progress.
    pub(super) fn item_count(&self, database: u8) -> Result<Answer, Failure> {
        let wrong = self.check_count(database);
        wrong.map_err(|wrong| Failure::Index(index::Error::Refused(wrong.into())))?;
        Ok(Answer::Items(self.shown(database)?.len() as u64))
    }

    /// Checks the server's count of items: it must be that of the map's items if the server calls it exact, and no
    /// larger otherwise. No edit may be in progress.
    pub(in crate::items) fn check_count(&self, database: u8) -> Result<(), String> {
        let raw = self.raw(database)?;
        let kept = raw
            .items
            .iter()
            .filter(|(_, header)| header.unique >= raw.record.flushed);
        let (items, keys) = (kept.count() as u64, raw.items.len() as u64 + 1);
        let (counted, exact) = self.store(database).items();
        let counted_keys = self.store(database).keys();
        match exact {
            true if (counted, counted_keys) == (items, keys) => Ok(()),
            false if counted <= items && counted_keys <= keys => Ok(()),
            _ => Err(format!(
                "the map holds {items} items and {keys} keys, but the server counts {counted} and {counted_keys} \
                 (exact: {exact})"
            )),
        }
    }

    /// Completes the count, and checks it and the server's memory use. No edit may be in progress.
    pub(in crate::items) fn check_totals(&self) -> Result<(), String> {
        let mut bytes = 0;
        for database in [0, 1] {
            self.store(database).count_on(usize::MAX).map_err(failed)?;
            self.check_count(database)?;
            bytes += self.raw(database)?.bytes;
        }
        match self.databases.memory().used() {
            used if used == bytes => Ok(()),
            used => Err(format!(
                "the items occupy {bytes} bytes, but the server reports {used}"
            )),
        }
    }

    /// Returns the items of a database as clients see them. No edit may be in progress. Panics if walks in both
    /// directions do not agree.
    pub(in crate::items) fn shown(&self, database: u8) -> Result<BTreeMap<Place, Shown>, Failure> {
        let up = self.walk(database, Direction::Forward)?;
        let down = self.walk(database, Direction::Reverse)?;
        let agree = walks_agree(self.store(database).order(), &up, &down);
        assert!(agree.is_ok(), "database {database}: {agree:?}");
        let placed = up.into_iter().map(|(key, item)| ((database, key), item));
        Ok(placed.collect())
    }

    fn walk(&self, database: u8, direction: Direction) -> Result<Vec<(Vec<u8>, Shown)>, Failure> {
        let mut all = Vec::new();
        let mut visit = |key: &[u8], item: Option<&Item<'_>>| {
            all.extend(item.map(|item| (key.to_vec(), shown(item))));
            ControlFlow::Continue(())
        };
        let (lower, upper) = (Bound::Unbounded, Bound::Unbounded);
        self.store(database)
            .scan(lower, upper, direction, NOW, &heap::pin(), &mut visit)?;
        Ok(all)
    }

    /// Checks that a read of a key agrees with these items, which are all that walks have shown.
    pub(in crate::items) fn check_read(
        &self,
        items: &BTreeMap<Place, Shown>,
        (database, key): Place,
    ) -> Result<(), String> {
        let read = self.store(database).read(&key, NOW, shown).map_err(failed)?;
        let agrees = get_agrees(&key, items.get(&(database, key.clone())), read.as_ref());
        agrees.map_err(|wrong| format!("database {database}: {wrong}"))
    }

    /// Reads a database's map.
    pub(in crate::items) fn raw(&self, database: u8) -> Result<Raw, String> {
        let (mut record, mut items, mut bytes) = (None, Vec::new(), 0);
        for entry in self.maps[usize::from(database)].iter() {
            let (key, value) = entry.map_err(failed)?;
            if key.is_empty() {
                record = Some(StoreRecord::read(&value).map_err(failed)?);
                continue;
            }
            let item = Item::read(&value)
                .ok_or_else(|| format!("the value of {key:?} is not an item: {value:?}"))?;
            bytes += (key.len() + value.len()) as u64 + PLACE;
            items.push((key, item.header));
        }
        Ok(Raw {
            record: record.ok_or("the record is missing")?,
            items,
            bytes,
        })
    }
}
