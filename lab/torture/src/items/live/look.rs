//! Reads the databases' content: as clients see it, as the count reports it, and as it is in the maps.

use super::edits::shown;
use super::{Live, NOW, failed};
use crate::items::{Answer, Place, Shown};
use server::stored::{Failure, Header, Item, PLACE, Record};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

/// What a map holds, dead items and dropped ones too.
pub(in crate::items) struct Raw {
    pub(in crate::items) record: Record,
    pub(in crate::items) items: Vec<(Vec<u8>, Header)>,
    /// What the items take.
    pub(in crate::items) bytes: u64,
}

impl Live {
    /// The number of items that clients see. The number that the server tells must be that of the map's items, as far
    /// as it says that it is exact. No edit is under way.
    pub(super) fn tell(&self, database: u8) -> Result<Answer, Failure> {
        let wrong = self.count_is_right(database);
        wrong.map_err(|wrong| Failure::Index(index::Error::Refused(wrong.into())))?;
        Ok(Answer::Items(self.shown(database)?.len() as u64))
    }

    /// Whether the number of items is right. No edit is under way.
    pub(in crate::items) fn count_is_right(&self, database: u8) -> Result<(), String> {
        let raw = self.raw(database)?;
        let kept = raw
            .items
            .iter()
            .filter(|(_, header)| header.unique >= raw.record.flushed);
        let (there, keys) = (kept.count() as u64, raw.items.len() as u64 + 1);
        let (told, exact) = self.store(database).items();
        let told_keys = self.store(database).keys();
        match exact {
            true if (told, told_keys) == (there, keys) => Ok(()),
            false if told <= there && told_keys <= keys => Ok(()),
            _ => Err(format!(
                "there are {there} items and {keys} keys, and the count says {told} and {told_keys} (exact: {exact})"
            )),
        }
    }

    /// Counts all items, and looks whether they take what the server says. No edit is under way.
    pub(in crate::items) fn count_through(&self) -> Result<(), String> {
        let mut bytes = 0;
        for database in [0, 1] {
            self.store(database).count_on(usize::MAX).map_err(failed)?;
            self.count_is_right(database)?;
            bytes += self.raw(database)?.bytes;
        }
        match self.databases.memory().used() {
            used if used == bytes => Ok(()),
            used => Err(format!(
                "the items take {bytes} bytes, and the server says {used}"
            )),
        }
    }

    /// The items of a database as clients see them.
    pub(in crate::items) fn shown(&self, database: u8) -> Result<BTreeMap<Place, Shown>, Failure> {
        let mut all = BTreeMap::new();
        let mut visit = |key: &[u8], item: Option<&Item<'_>>| {
            if let Some(item) = item {
                all.insert((database, key.to_vec()), shown(item));
            }
            ControlFlow::Continue(())
        };
        self.store(database).scan(
            Bound::Unbounded,
            Bound::Unbounded,
            index::Direction::Forward,
            NOW,
            &heap::pin(),
            &mut visit,
        )?;
        Ok(all)
    }

    /// What a database's map holds.
    pub(in crate::items) fn raw(&self, database: u8) -> Result<Raw, String> {
        let (mut record, mut items, mut bytes) = (None, Vec::new(), 0);
        for entry in self.maps[usize::from(database)].iter() {
            let (key, value) = entry.map_err(failed)?;
            if key.is_empty() {
                record = Some(Record::read(&value).map_err(failed)?);
                continue;
            }
            let item = Item::read(&value).ok_or_else(|| format!("{key:?} has no item: {value:?}"))?;
            bytes += (key.len() + value.len()) as u64 + PLACE;
            items.push((key, item.header));
        }
        Ok(Raw {
            record: record.ok_or("there is no record")?,
            items,
            bytes,
        })
    }
}
