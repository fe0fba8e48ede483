//! A user's knowledge of its own keys.

use super::PATIENCE;
use crate::keys::Shape;
use crate::random::Random;
use std::sync::Arc;
use std::time::SystemTime;

/// The number of a database ([`SHARED`] or [`OWN`]), and a key's number.
pub(super) type Place = (usize, usize);

/// The database that memcached and all users share.
pub(super) const SHARED: usize = 0;

/// The user's own database.
pub(super) const OWN: usize = 1;

/// The time at which an item expires: between these two milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub low: u64,
    pub high: u64,
}

impl End {
    /// Returns the time `milliseconds` after the server has read a request that is sent from now on.
    pub fn after(milliseconds: u64) -> End {
        let low = now() + milliseconds;
        End {
            low,
            high: low + PATIENCE.as_millis() as u64,
        }
    }

    pub fn at(millisecond: u64) -> End {
        End {
            low: millisecond,
            high: millisecond,
        }
    }
}

/// Returns the current time, in milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Mark of an item: memcached's `md` has made it stale.
pub(super) const STALE: u8 = 1;
/// Mark of an item: a client has been chosen to replace it.
pub(super) const AWAITED: u8 = 2;
/// Mark of an item: its key came in base64.
pub(super) const BINARY_KEY: u8 = 4;

/// The expected item of a key.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub data: Arc<[u8]>,
    pub flags: u32,
    pub end: Option<End>,
    pub marks: u8,
    /// A number that changes whenever the server gives the item another unique.
    pub stamp: u64,
    /// The item's unique, once the server has shown it.
    pub unique: Option<u64>,
}

/// A unique that the server has shown, and the stamp of its item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unique {
    pub place: Place,
    pub stamp: u64,
    pub unique: u64,
}

/// The keys of a user, in order.
#[derive(Debug)]
pub(super) struct Keys {
    pub all: Vec<Vec<u8>>,
    /// The numbers of the keys that a memcached command line can contain unencoded.
    pub in_text: Vec<usize>,
    /// Whether the server's index has a key order.
    pub ordered: bool,
}

impl Keys {
    pub fn new(user: usize, ordered: bool, random: &mut Random) -> Keys {
        let count = random.pick(&[20, 100, 400]);
        let all = Shape::Mixed.keys(user, count, random);
        let is_text = |key: &[u8]| key.iter().all(|&byte| byte > b' ' && byte != 0x7f);
        Keys {
            in_text: (0..all.len()).filter(|&n| is_text(&all[n])).collect(),
            all,
            ordered,
        }
    }
}

/// The expected items of the user's keys, by database and number.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    pub items: [Vec<Option<Item>>; 2],
    /// For each key of the shared database the last unique before the present one.
    pub outdated: Vec<Option<u64>>,
}

impl Truth {
    pub fn new(keys: &Keys) -> Truth {
        let none = vec![None; keys.all.len()];
        Truth {
            outdated: vec![None; keys.all.len()],
            items: [none.clone(), none],
        }
    }

    pub fn item(&self, (database, n): Place) -> Option<&Item> {
        self.items[database][n].as_ref()
    }

    /// Sets what a key holds. An item that keeps its stamp keeps its unique, although the server may have shown it only
    /// after the change was drawn.
    pub fn set(&mut self, place: Place, mut item: Option<Item>) {
        let held = &mut self.items[place.0][place.1];
        if let (Some(new), Some(old)) = (&mut item, &*held)
            && new.stamp == old.stamp
        {
            new.unique = new.unique.or(old.unique);
        }
        let unique = item.as_ref().and_then(|item| item.unique);
        let old = std::mem::replace(held, item);
        if place.0 == SHARED {
            let outdated = &mut self.outdated[place.1];
            let earlier = [old.and_then(|old| old.unique), *outdated];
            *outdated = earlier.into_iter().flatten().find(|&old| Some(old) != unique);
        }
    }

    /// Records the unique of the item at this place. Returns `false` if the item had another one before, or if an
    /// earlier item had this one.
    pub fn note_unique(&mut self, (database, n): Place, unique: u64) -> bool {
        let Some(item) = &mut self.items[database][n] else {
            return true;
        };
        let is_new = database != SHARED || self.outdated[n] != Some(unique);
        is_new && *item.unique.get_or_insert(unique) == unique
    }

    /// Records a unique that the server has shown, if the item is still the same; returns `false` if it contradicts an
    /// earlier one.
    pub fn note(&mut self, shown: Unique) -> bool {
        let is_of_this = |item: &Item| item.stamp == shown.stamp;
        !self.item(shown.place).is_some_and(is_of_this) || self.note_unique(shown.place, shown.unique)
    }
}
