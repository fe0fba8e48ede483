//! Consecutive `set`s, carried out together.

use super::dialect::number;
use super::growth::item_size;
use super::handler::Handler;
use crate::counters::Counter;
use crate::items::access::Seen;
use crate::items::item::{Header, expiry};
use crate::items::store::{BATCH, Failure};
use crate::proto::memcached::request::{Body, Request};

/// Consecutive `set`s, in order.
#[derive(Debug, Default)]
pub struct Sets<'b> {
    keys: Vec<&'b [u8]>,
    items: Vec<Set<'b>>,
}

/// What a `set` stores.
#[derive(Debug)]
struct Set<'b> {
    flags: u32,
    lifetime: i64,
    data: &'b [u8],
    noreply: bool,
}

impl<'b> Sets<'b> {
    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns whether there are as many as are carried out together.
    pub fn is_full(&self) -> bool {
        self.keys.len() == BATCH
    }

    /// Adds a request, if it is a `set`. Returns whether it is.
    pub fn take(&mut self, request: &Request<'b>, noreply: bool) -> bool {
        let &Request::Store {
            body: Body::Set { key, flags, lifetime },
            data,
        } = request
        else {
            return false;
        };
        if self.keys.is_empty() {
            self.keys.reserve(BATCH);
            self.items.reserve(BATCH);
        }
        self.keys.push(key);
        self.items.push(Set {
            flags,
            lifetime,
            data,
            noreply,
        });
        true
    }
}

impl Handler {
    /// Answers all `set`s.
    pub fn set_all(&self, sets: &mut Sets<'_>, now: u64, out: &mut Vec<u8>) {
        let shared = self.shared();
        shared.access.prefetch(&sets.keys);
        {
            let _shared = shared.databases.shared();
            let ticked = shared.databases.first().tick(now);
            let done = ticked.map_err(Failure::from);
            match done {
                Ok(()) => self.set_some(&sets.keys, &sets.items, now, out),
                Err(failure) => self.fail_each(&sets.items, &failure, out),
            }
        }
        self.timed_as(
            const { number("set") },
            self.worker.lap(),
            sets.keys.len() as u64,
            now,
            || sets.keys.clone(),
        );
        sets.keys.clear();
        sets.items.clear();
    }

    /// Stores each, if there is room for it.
    fn set_some(&self, keys: &[&[u8]], items: &[Set<'_>], now: u64, out: &mut Vec<u8>) {
        let databases = &self.shared().databases;
        if databases.memory().limit() == 0 {
            return self.put_all(keys, items, now, out);
        }
        databases.first().prefetch(keys);
        for i in 0..keys.len() {
            let (keys, items) = (&keys[i..=i], &items[i..=i]);
            match databases.room(item_size(keys[0], items[0].data.len()), now) {
                Ok(_room) => self.put_all(keys, items, now, out),
                Err(failure) => {
                    let lost = self.lose_old(keys[0], false, now);
                    self.fail_each(items, &lost.err().unwrap_or(failure), out);
                }
            }
        }
    }

    /// Stores all, and answers each. The caller has reserved room, unless there is no memory limit.
    fn put_all(&self, keys: &[&[u8]], items: &[Set<'_>], now: u64, out: &mut Vec<u8>) {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let fill = |i: usize, unique, put: &mut Vec<u8>| {
            let Set {
                flags,
                lifetime,
                data,
                ..
            } = items[i];
            let header = Header {
                unique,
                expiry: expiry(lifetime, now),
                flags,
                marks: 0,
            };
            header.begin(put);
            put.extend_from_slice(data);
        };
        let seen = Seen {
            fetched: false,
            second: self.second(),
        };
        let mut count = 0;
        let done = self.store().put_many(keys, scratch, fill, |i, done| match done {
            Ok(()) => {
                count += 1;
                self.shared().access.set(keys[i], seen);
                if !items[i].noreply {
                    out.extend_from_slice(b"STORED\r\n");
                }
            }
            Err(failure) => self.fail(&failure, items[i].noreply, out),
        });
        self.add(Counter::Sets, count);
        // The space for a large value is freed.
        scratch.shrink_to(64 << 10);
        if let Err(failure) = done {
            self.fail_each(items, &failure, out);
        }
    }

    fn fail_each(&self, items: &[Set<'_>], failure: &Failure, out: &mut Vec<u8>) {
        for item in items {
            self.fail(failure, item.noreply, out);
        }
    }
}
