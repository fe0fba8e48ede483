//! A request with its answers and changes, and the state from which requests are drawn.

use super::reply::Expected;
use super::truth::{End, Item, Keys, Place, SHARED, Truth};
use super::wire::Protocol;
use crate::random::Random;
use std::sync::Arc;

/// The change of one key by a request.
#[derive(Clone, Debug)]
pub(super) struct ItemChange {
    pub place: Place,
    pub old: Option<Item>,
    pub new: Option<Item>,
}

/// A request: one command, or all from `MULTI` to `EXEC`.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The command's name, under which it is counted.
    pub name: &'static str,
    pub protocol: Protocol,
    pub request: Vec<u8>,
    /// The expected answers; none if the request asks for no answer.
    pub expected: Vec<Expected>,
    pub changes: Vec<ItemChange>,
    /// Whether the server may execute the request as a group with its neighbours. A kill may leave any subset of a
    /// group.
    pub may_be_grouped: bool,
}

/// The state from which requests are drawn. `truth` is the content after the request drawn last.
pub(super) struct Draw<'a> {
    pub random: &'a mut Random,
    pub truth: &'a mut Truth,
    pub keys: &'a Keys,
    pub user: usize,
    pub stamp: &'a mut u64,
    /// The database that the Redis connection has selected.
    pub database: &'a mut usize,
    /// Whether requests may ask for no answer; not if the server may refuse one.
    pub may_be_quiet: bool,
    changes: Vec<ItemChange>,
}

/// The lifetime that a request gives an item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life {
    Endless,
    Until(End),
    /// The item expires immediately.
    Expired,
}

impl<'a> Draw<'a> {
    pub fn new(
        random: &'a mut Random,
        (number, keys): (usize, &'a Keys),
        truth: &'a mut Truth,
        stamp: &'a mut u64,
        database: &'a mut usize,
        may_be_quiet: bool,
    ) -> Draw<'a> {
        Draw {
            random,
            truth,
            keys,
            user: number,
            stamp,
            database,
            may_be_quiet,
            changes: Vec::new(),
        }
    }

    /// Draws whether this request asks for no answer.
    pub fn quiet(&mut self) -> bool {
        self.may_be_quiet && self.random.one_in(8)
    }

    /// Makes the step of this request, with all changes since the last step.
    pub fn step(
        &mut self,
        name: &'static str,
        protocol: Protocol,
        request: Vec<u8>,
        expected: Vec<Expected>,
    ) -> Step {
        Step {
            name,
            protocol,
            request,
            expected,
            changes: std::mem::take(&mut self.changes),
            may_be_grouped: false,
        }
    }

    /// Draws a key in the database that the Redis connection has selected.
    pub fn place(&mut self) -> Place {
        (*self.database, self.number(self.keys.all.len()))
    }

    /// Draws a key of the shared database.
    pub fn shared_place(&mut self) -> Place {
        (SHARED, self.number(self.keys.all.len()))
    }

    /// Draws a key of the shared database that a memcached command line can contain.
    pub fn text_place(&mut self) -> Place {
        let n = self.number(self.keys.in_text.len());
        (SHARED, self.keys.in_text[n])
    }

    fn number(&mut self, count: usize) -> usize {
        // Some keys are hot.
        let count = if self.random.one_in(3) {
            count.min(6)
        } else {
            count
        };
        self.random.index(count)
    }

    pub fn key(&self, place: Place) -> &'a [u8] {
        &self.keys.all[place.1]
    }

    pub fn item(&self, place: Place) -> Option<Item> {
        self.truth.item(place).cloned()
    }

    pub fn next_stamp(&mut self) -> u64 {
        *self.stamp += 1;
        *self.stamp
    }

    /// Draws data: a number, or text that names the user and the stamp.
    pub fn data(&mut self) -> Arc<[u8]> {
        let stamp = self.next_stamp();
        let random = &mut *self.random;
        if random.one_in(3) {
            let end = random.pick(&[2, 1000, 1_000_000_000, i64::MAX as u64, u64::MAX]);
            return random.below(end).to_string().into_bytes().into();
        }
        let len = match random.below(1000) {
            0..800 => random.below(40),
            800..980 => random.below(1200),
            980..999 => random.below(20_000),
            _ => random.below(300_000),
        };
        let text = format!("v{}.{stamp}\r\n", self.user);
        text.bytes().cycle().take(len as usize).collect()
    }

    /// Gives a key an item, and returns the item's stamp.
    pub fn put(&mut self, place: Place, data: Arc<[u8]>, flags: u32, marks: u8, life: Life) -> u64 {
        let stamp = self.next_stamp();
        let end = match life {
            Life::Endless => None,
            Life::Until(end) => Some(end),
            Life::Expired => {
                self.set(place, None);
                return stamp;
            }
        };
        self.set(
            place,
            Some(Item {
                data,
                flags,
                end,
                marks,
                stamp,
                unique: None,
            }),
        );
        stamp
    }

    /// Gives a key another item, or removes it, and records the change.
    pub fn set(&mut self, place: Place, new: Option<Item>) {
        let old = self.item(place);
        self.truth.set(place, new.clone());
        self.changes.push(ItemChange { place, old, new });
    }

    /// Returns an item's present lifetime.
    pub fn life_of(item: &Item) -> Life {
        item.end.map_or(Life::Endless, Life::Until)
    }
}
