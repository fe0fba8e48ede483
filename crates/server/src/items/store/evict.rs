//! Removing the least used items.

use super::edit::Remove;
use super::{Failure, ItemStore};
use crate::items::item::Item;
use index::Action;
use std::ops::Bound;

/// The numbers of items that a step has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Live items.
    pub evicted: u64,
    /// Dead ones.
    pub dead: u64,
}

impl ItemStore {
    /// Visits the next keys after `cursor`, at most `limit`, and removes the dead items among them. If it removes none
    /// and `live_too` allows it, removes a quarter of the live ones, rounded up: those accessed least, and among equals
    /// those stored first. Returns also how many keys it has visited; if they are fewer than `limit`, no more are left,
    /// and `cursor` is reset to the beginning. An error of the walk resets `cursor`, too, and the items found before it
    /// are removed all the same. Called in no transaction.
    pub fn evict(
        &self,
        cursor: &mut Vec<u8>,
        limit: usize,
        live_too: bool,
        now: u64,
    ) -> Result<(usize, Gone), Failure> {
        let (mut dead, mut live) = (Vec::new(), Vec::new());
        let from = std::mem::take(cursor);
        let map = self.items.map();
        let walked = map.walk(Bound::Excluded(&from), limit, |key, value| {
            match Item::read(value) {
                Some(item) if !self.is_dead(&item.header, now) => {
                    let rank = (self.usage.frequency(key), item.header.unique);
                    live.push((rank, key.to_vec()));
                }
                Some(_) => dead.push(key.to_vec()),
                // The server has not written this value; requests report that.
                None => {}
            }
        });
        let seen = walked.map(|walked| {
            *cursor = walked.last.unwrap_or_default();
            walked.seen
        });
        let mut gone = Gone::default();
        for key in &dead {
            gone.dead += u64::from(self.bury(key, now)?);
        }
        if gone.dead > 0 || !live_too {
            return Ok((seen?, gone));
        }
        live.sort_unstable();
        live.truncate(live.len().div_ceil(4));
        for ((_, unique), key) in &live {
            // An item that was stored again meanwhile stays.
            let is_same = |value: Option<&[u8]>| {
                value
                    .and_then(Item::read)
                    .is_some_and(|item| item.header.unique == *unique)
            };
            if self.edit(key, &mut Remove::new(self, is_same))? == Action::Remove {
                self.note_removal(key, *unique);
                gone.evicted += 1;
            }
        }
        Ok((seen?, gone))
    }
}
