//! Walks over keys: one turn of them visits a bounded number of keys, the dead included, so that other clients are
//! served in between.
//!
//! I1 A walk shows each transaction whole or not at all: if a client has acted alone between two of its turns, it
//!    begins again; and after [`TRIES`] of these, as within `EXEC`, it is one turn, however long.

use super::super::context::{Context, Done, Wrong, bounded};
use super::super::glob::Pattern;
use super::super::reply::Reply;
use crate::items::item::Item;
use index::{Direction, behind};
use std::ops::{Bound, ControlFlow};

/// Keys that are visited under one guard.
const STEP: usize = 1024;

/// Keys that one turn visits: about half a millisecond.
pub const TURN: usize = 16 * STEP;

/// How often a walk is begun anew.
const TRIES: usize = 3;

/// The keys that are left to visit.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Visits live items between the bounds, in order, until the visitor breaks, at most `max` keys, live or dead. Returns
/// whether this was all; if not, the bounds become those of the remainder.
pub fn walk(
    context: &Context<'_>,
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
        let store = &context.state.store;
        let order = store.order();
        store.scan(from, to, direction, context.now, &guard, &mut |key, item| {
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
    /// With their values.
    pub values: bool,
    pub limit: usize,
    /// Those alone that fit this pattern.
    pub pattern: Option<Pattern>,
    /// One key, which is not in an array.
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
    /// Where it goes, one after the other.
    ranges: Vec<Bounds>,
    /// How many of these are done, and what is left of the next.
    done: usize,
    left: Option<Bounds>,
    /// The elements of the reply, whose head tells how many they are.
    found: Vec<u8>,
    count: usize,
    /// How often clients had acted alone when it began.
    begun: u64,
    tries: usize,
}

impl Walk {
    /// A walk through these ranges, which has not begun.
    pub fn new(context: &Context<'_>, ranges: Vec<Bounds>, listing: Listing) -> Walk {
        Walk {
            listing,
            ranges,
            done: 0,
            left: None,
            found: Vec::new(),
            count: 0,
            begun: context.shared().databases.turns_alone(),
            tries: 0,
        }
    }

    /// Takes one turn of the walk, and replies if it was the last; else the connection's state keeps the walk for
    /// another turn. The caller holds a pass of the databases' gate, or has exclusive use.
    pub fn go_on(mut self, context: &mut Context<'_>) -> Done {
        let turns_alone = context.shared().databases.turns_alone();
        if self.begun != turns_alone {
            self = Walk {
                begun: turns_alone,
                done: 0,
                left: None,
                found: Vec::new(),
                count: 0,
                tries: self.tries + 1,
                ..self
            };
        }
        let whole = context.state.executing || self.tries == TRIES;
        if self.step(context, if whole { usize::MAX } else { TURN })? {
            self.reply(context);
        } else {
            context.state.walk = Some(self);
        }
        Ok(())
    }

    /// Visits at most `max` keys of a range; whether all is done.
    fn step(&mut self, context: &Context<'_>, max: usize) -> Result<bool, Wrong> {
        while self.count < self.listing.limit
            && let Some(range) = self.ranges.get(self.done)
        {
            let bounds = self.left.get_or_insert_with(|| range.clone());
            let (listing, found, count) = (&self.listing, &mut self.found, &mut self.count);
            let mut full = Ok(());
            let resp3 = context.reply.resp3;
            let ended = walk(context, bounds, listing.direction, max, &mut |key, item| {
                if let Some(pattern) = &listing.pattern
                    && !pattern.fits(key)
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

    fn reply(&self, context: &mut Context<'_>) {
        let Listing { values, lone, .. } = self.listing;
        match (lone, self.count) {
            (true, 0) => context.reply.null(),
            (true, _) => {}
            (false, count) => {
                let each = if values && !context.reply.resp3 { 2 } else { 1 };
                context.reply.array(count * each);
            }
        }
        context.reply.out.extend_from_slice(&self.found);
    }
}
