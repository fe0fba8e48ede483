//! Walks over keys. One turn of a walk visits a bounded number of keys, the dead included, so that other clients are
//! served in between.
//!
//! I1 A walk shows each transaction whole or not at all: if a client had exclusive use between two turns of a walk, the
//!    walk begins again. After [`TRIES`] restarts, and within `EXEC`, the whole walk is one turn, however long.
//!
//! Not here: which ranges a command walks (`scan`), and what takes the turns (`Context::walk`, `connection`).

use super::super::error::{Wrong, bounded};
use super::super::glob::Pattern;
use crate::items::item::Item;
use crate::items::store::ItemStore;
use crate::proto::redis::reply::Reply;
use index::{Direction, behind};
use std::ops::{Bound, ControlFlow};

/// Keys visited under one guard.
const STEP: usize = 1024;

/// Keys visited in one turn: about half a millisecond.
pub const TURN: usize = 16 * STEP;

/// Maximum number of times that a walk begins again.
const TRIES: usize = 3;

/// The keys that are still to be visited.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Visits live items between the bounds, in order, until the visitor breaks, at most `max` keys, live or dead. Returns
/// whether this was all; if not, the bounds become those of the remainder. `now` is the current time in milliseconds.
pub fn walk(
    (store, now): (&ItemStore, u64),
    bounds: &mut Bounds,
    direction: Direction,
    max: usize,
    visit: &mut dyn FnMut(&[u8], &Item<'_>) -> ControlFlow<()>,
) -> Result<bool, Wrong> {
    let mut left = max;
    while left > 0 {
        let step = left.min(STEP);
        left -= step;
        let (mut seen, mut last, mut ended) = (0, None, true);
        let guard = heap::pin();
        let (from, to) = (
            bounds.0.as_ref().map(Vec::as_slice),
            bounds.1.as_ref().map(Vec::as_slice),
        );
        let order = store.order();
        store.scan(from, to, direction, now, &guard, &mut |key, item| {
            seen += 1;
            if let Some(item) = item
                && visit(key, item).is_break()
            {
                return ControlFlow::Break(());
            }
            if seen < step {
                return ControlFlow::Continue(());
            }
            (last, ended) = (Some(key.to_vec()), false);
            ControlFlow::Break(())
        })?;
        match (last, direction) {
            (Some(last), Direction::Forward) if !ended => bounds.0 = behind(order, &last, from, direction)?,
            (Some(last), Direction::Reverse) if !ended => bounds.1 = behind(order, &last, to, direction)?,
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// How keys are listed.
pub struct Listing {
    pub direction: Direction,
    /// Whether the values are listed, too.
    pub values: bool,
    pub limit: usize,
    /// Only keys that match this pattern are listed.
    pub pattern: Option<Pattern>,
    /// Whether the reply is one key outside of an array.
    pub lone: bool,
}

impl Default for Listing {
    fn default() -> Listing {
        Listing {
            direction: Direction::Forward,
            values: false,
            limit: usize::MAX,
            pattern: None,
            lone: false,
        }
    }
}

/// A listing under way.
pub struct Walk {
    listing: Listing,
    /// The ranges to visit, one after the other.
    ranges: Vec<Bounds>,
    /// The number of ranges that are done, and the remainder of the next.
    done: usize,
    left: Option<Bounds>,
    /// The elements of the reply, whose head will have their number.
    found: Vec<u8>,
    count: usize,
    /// How often clients had had exclusive use when the walk last began.
    begun: u64,
    tries: usize,
}

impl Walk {
    /// Creates a walk through these ranges. `exclusive_uses` says how often clients have had exclusive use so far.
    pub fn new(ranges: Vec<Bounds>, listing: Listing, exclusive_uses: u64) -> Walk {
        Walk {
            listing,
            ranges,
            done: 0,
            left: None,
            found: Vec::new(),
            count: 0,
            begun: exclusive_uses,
            tries: 0,
        }
    }

    /// Takes one turn of the walk, or, if `undivided`, all of it. Returns whether the walk has ended. The caller holds
    /// a pass of the databases' gate, or has exclusive use.
    pub fn take_turn(
        &mut self,
        (store, now): (&ItemStore, u64),
        exclusive_uses: u64,
        undivided: bool,
        resp3: bool,
    ) -> Result<bool, Wrong> {
        if self.begun != exclusive_uses {
            self.begun = exclusive_uses;
            (self.done, self.left) = (0, None);
            (self.found, self.count) = (Vec::new(), 0);
            self.tries += 1;
        }
        let whole = undivided || self.tries == TRIES;
        self.step((store, now), if whole { usize::MAX } else { TURN }, resp3)
    }

    /// Visits at most `max` keys of a range. Returns whether all ranges are done.
    fn step(&mut self, (store, now): (&ItemStore, u64), max: usize, resp3: bool) -> Result<bool, Wrong> {
        while self.count < self.listing.limit
            && let Some(range) = self.ranges.get(self.done)
        {
            let bounds = self.left.get_or_insert_with(|| range.clone());
            let (listing, found, count) = (&self.listing, &mut self.found, &mut self.count);
            let mut full = Ok(());
            let ended = walk((store, now), bounds, listing.direction, max, &mut |key, item| {
                if let Some(pattern) = &listing.pattern
                    && !pattern.matches(key)
                {
                    return ControlFlow::Continue(());
                }
                *count += 1;
                let mut elements = Reply { out: found, resp3 };
                if listing.values && resp3 {
                    elements.array(2);
                }
                elements.bulk(key);
                if listing.values {
                    elements.bulk(item.data);
                }
                full = bounded(found.len());
                match *count < listing.limit && full.is_ok() {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })?;
            full?;
            if !ended {
                return Ok(false);
            }
            self.done += 1;
            self.left = None;
        }
        Ok(true)
    }

    /// Replies what an ended walk has found.
    pub fn reply(&self, reply: &mut Reply<'_>) {
        let Listing { values, lone, .. } = self.listing;
        match (lone, self.count) {
            (true, 0) => reply.null(),
            (true, _) => {}
            (false, count) => {
                let each = if values && !reply.resp3 { 2 } else { 1 };
                reply.array(count * each);
            }
        }
        reply.out.extend_from_slice(&self.found);
    }
}
