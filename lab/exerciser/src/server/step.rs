//! A request with its answers and changes, and what is needed to draw one.

use super::reply::Expected;
use super::truth::{End, Item, Keys, Place, SHARED, Truth};
use super::wire::Protocol;
use crate::random::Random;
use std::sync::Arc;

/// What a key holds from a request on.
#[derive(Clone, Debug)]
pub(super) struct ItemChange {
    pub place: Place,
    pub old: Option<Item>,
    pub new: Option<Item>,
}

/// A request: one command, or all from `MULTI` to `EXEC`.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The command's name, as it is counted.
    pub name: &'static str,
    pub protocol: Protocol,
    pub request: Vec<u8>,
    /// One for each answer; none if the request is to be carried out without one.
    pub expected: Vec<Expected>,
    pub changes: Vec<ItemChange>,
    /// Whether the server may carry it out together with those beside it, so that of all of them a kill may leave any.
    pub together: bool,
}

/// What requests are drawn from. The truth is what holds once the request drawn last is carried out.
pub(super) struct Draw<'a> {
    pub random: &'a mut Random,
    pub truth: &'a mut Truth,
    pub keys: &'a Keys,
    pub user: usize,
    pub stamp: &'a mut u64,
    /// The database that the Redis connection has selected.
    pub database: &'a mut usize,
    /// Whether requests may ask for no answer. Where one may be refused, they may not.
    pub may_be_quiet: bool,
    changes: Vec<ItemChange>,
}

/// How an item ends that a request gives a new life.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life {
    Endless,
    Until(End),
    /// It is over as it begins.
    Over,
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

    /// Whether this request asks for no answer.
    pub fn quiet(&mut self) -> bool {
        self.may_be_quiet && self.random.one_in(8)
    }

    /// The step of this request, with all that was changed since the last one.
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
            together: false,
        }
    }

    /// A key in the database that the Redis connection has selected.
    pub fn place(&mut self) -> Place {
        (*self.database, self.number(self.keys.all.len()))
    }

    /// A key of the shared database.
    pub fn shared_place(&mut self) -> Place {
        (SHARED, self.number(self.keys.all.len()))
    }

    /// A key of the shared database that a line of memcached's can name.
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

    /// Data: a number, or text that tells where it comes from.
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

    /// Gives a key an item; its stamp.
    pub fn put(&mut self, place: Place, data: Arc<[u8]>, flags: u32, marks: u8, life: Life) -> u64 {
        let stamp = self.next_stamp();
        let end = match life {
            Life::Endless => None,
            Life::Until(end) => Some(end),
            Life::Over => {
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

    /// Gives a key another item, or none.
    pub fn set(&mut self, place: Place, new: Option<Item>) {
        let old = self.item(place);
        self.truth.set(place, new.clone());
        self.changes.push(ItemChange { place, old, new });
    }

    /// The life of an item as it is.
    pub fn life_of(item: &Item) -> Life {
        item.end.map_or(Life::Endless, Life::Until)
    }
}
