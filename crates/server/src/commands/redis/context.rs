//! A command's context: the worker, the client, the connection's state, and the reply.

use super::error::{Done, Wrong, bounded};
use super::state::State;
use super::state::walk::{Bounds, Listing, Walk};
use crate::counters::Counter;
use crate::items::item::{Header, Item};
use crate::items::store::Decision;
use crate::net::clients::Client;
use crate::ops::shared::{Shared, Worker};
use crate::proto::redis::reply::Reply;
use std::sync::Arc;

/// What a command works with.
pub struct Context<'c> {
    pub worker: &'c Worker,
    pub client: &'c Arc<Client>,
    pub state: &'c mut State,
    pub reply: Reply<'c>,
    /// The current time in milliseconds since 1970.
    pub now: u64,
}

impl Context<'_> {
    pub fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    pub fn add(&self, counter: Counter, by: u64) {
        self.worker.add(counter, by);
    }

    /// Reads the item of a key, if there is one.
    pub fn read<T>(&self, key: &[u8], show: impl FnOnce(&Item<'_>) -> T) -> Result<Option<T>, Wrong> {
        if !is_name(key) {
            return Ok(None);
        }
        Ok(self.state.store.read(key, self.now, show)?)
    }

    /// Counts a read, and whether it has found an item.
    pub fn count(&self, found: bool) {
        self.worker.count_get(found);
    }

    /// Edits an item, atomically.
    pub fn change<T>(
        &self,
        key: &[u8],
        rule: impl FnMut(Option<Item<'_>>, u64, &mut Vec<u8>) -> Decision<T>,
    ) -> Result<T, Wrong> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let changed = self.state.store.change(key, self.now, scratch, rule);
        // The space for a large value is freed.
        scratch.shrink_to(64 << 10);
        Ok(changed?)
    }

    /// Stores data without an expiry, in the place of what the key holds.
    pub fn put(&self, key: &[u8], data: &[u8]) -> Done {
        self.change(key, |_, unique, put| {
            fresh(unique, 0, &[data], put);
            Decision::Put(())
        })?;
        self.add(Counter::Sets, 1);
        Ok(())
    }

    /// Runs a command, or a part of it. If that fails, replaces what it has replied with the error, and returns
    /// `false`.
    pub fn attempt(&mut self, run: impl FnOnce(&mut Self) -> Done) -> bool {
        let begin = self.reply.out.len();
        let ticked = self.state.store.tick(self.now).map_err(Wrong::from);
        let done = ticked.and_then(|()| run(self));
        if let Err(Wrong(text)) = &done {
            self.reply.out.truncate(begin);
            self.reply.error(text);
        }
        done.is_ok()
    }

    /// Refuses to continue a reply that has become too long.
    pub fn bounded(&self, begin: usize) -> Done {
        bounded(self.reply.out.len() - begin)
    }

    /// Returns the length of the longest value, in bytes.
    pub fn longest(&self) -> usize {
        self.shared().net.limits.bulk()
    }

    /// Begins a walk through these ranges.
    pub fn start_walk(&mut self, ranges: Vec<Bounds>, listing: Listing) -> Done {
        let exclusive_uses = self.shared().databases.exclusive_uses();
        self.walk(Walk::new(ranges, listing, exclusive_uses))
    }

    /// Takes one turn of a walk, and replies if it was the last; otherwise the connection's state keeps the walk for
    /// another turn. The caller holds a pass of the databases' gate, or has exclusive use.
    pub fn walk(&mut self, mut walk: Walk) -> Done {
        let exclusive_uses = self.shared().databases.exclusive_uses();
        let state = &mut *self.state;
        let items = (&*state.store, self.now);
        match walk.take_turn(items, exclusive_uses, state.executing, self.reply.resp3)? {
            true => walk.reply(&mut self.reply),
            false => state.walk = Some(walk),
        }
        Ok(())
    }
}

/// Returns whether an item may have this key: the server's own record has the empty key, and no item has a key that is
/// longer than an index allows.
pub fn is_name(key: &[u8]) -> bool {
    !key.is_empty() && key.len() <= index::MAX_KEY
}

/// Fills in an item's data with another expiry.
pub fn retimed(unique: u64, expiry: u64, old: &Item<'_>, put: &mut Vec<u8>) {
    let header = Header {
        unique,
        expiry,
        ..old.header
    };
    header.begin(put);
    put.extend_from_slice(old.data);
}

/// Fills in an item whose data are these parts.
pub fn fresh(unique: u64, expiry: u64, parts: &[&[u8]], put: &mut Vec<u8>) {
    let header = Header {
        unique,
        expiry,
        ..Header::default()
    };
    header.begin(put);
    parts.iter().for_each(|part| put.extend_from_slice(part));
}
