//! Removing items: those that clients delete, and dead ones.

use super::edit::Remove;
use super::{Failure, ItemStore, Outcome};
use crate::items::item::Item;
use crate::items::record;
use std::sync::atomic::Ordering;
use wollemi::Swept;

impl ItemStore {
    /// Removes the item if it is dead. Returns whether it was.
    pub fn bury(&self, key: &[u8], now: u64) -> Result<bool, Failure> {
        let mut dead = None;
        let mut edit = Remove::new(self, |value: Option<&[u8]>| {
            let item = value.and_then(Item::read);
            dead = item.filter(|item| self.is_dead(&item.header, now)).map(unique);
            dead.is_some()
        });
        self.edit(key, &mut edit)?;
        if let Some(unique) = dead {
            self.note_removal(key, unique);
        }
        Ok(dead.is_some())
    }

    /// Removes the item.
    pub fn delete(&self, key: &[u8], now: u64) -> Result<Outcome, Failure> {
        let (mut outcome, mut removed) = (Outcome::NotFound, None);
        let mut edit = Remove::new(self, |value: Option<&[u8]>| {
            // A repeated decision must not depend on the first.
            let item = value.and_then(Item::read);
            let is_live = value.is_some() && !item.is_some_and(|item| self.is_dead(&item.header, now));
            outcome = if is_live { Outcome::Done } else { Outcome::NotFound };
            removed = item.map(unique);
            value.is_some()
        });
        self.edit(key, &mut edit)?;
        if let Some(unique) = removed {
            self.note_removal(key, unique);
        }
        if outcome == Outcome::Done {
            self.removals.fetch_add(1, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// Visits the next keys after `cursor`, at most `limit`, and removes the dead items among them. If it has seen
    /// fewer than `limit`, no more are left, and `cursor` is reset to the beginning. An error of the walk resets
    /// `cursor`, too, after the dead items found before it are removed.
    pub fn sweep(&self, cursor: &mut Option<Vec<u8>>, limit: usize, now: u64) -> Result<Swept, Failure> {
        // Begin behind the record, whose key comes first.
        cursor.get_or_insert_with(|| record::KEY.to_vec());
        let is_dead =
            |_: &[u8], value: &[u8]| Item::read(value).is_some_and(|item| self.is_dead(&item.header, now));
        let map = self.items.map();
        map.sweep(cursor, limit, is_dead, |key| self.bury(key, now))
    }
}

fn unique(item: Item<'_>) -> u64 {
    item.header.unique
}
