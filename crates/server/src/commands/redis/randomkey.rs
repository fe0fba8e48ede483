//! `RANDOMKEY`.

use super::context::Context;
use super::error::{Done, Wrong};
use super::random::{self, Picked, Random};
use super::state::walk::Listing;
use crate::proto::redis::args::Args;
use index::{Direction, Order};
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, ControlFlow};

/// `RANDOMKEY`: [`random`] says how likely each key is.
pub fn randomkey(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let count = context.state.store.keys();
    let seed = RandomState::new().hash_one(context.now);
    let from = match context.state.store.order() {
        // Ranks are hashes: start from a random rank.
        Order::Ranks(_) => seed.to_ne_bytes().to_vec(),
        Order::Keys => match random::pick(&LiveKeys(context), count, &mut Random::new(seed))? {
            Picked::Key(key) => {
                context.reply.bulk(&key);
                return Ok(());
            }
            Picked::Nothing => {
                context.reply.null();
                return Ok(());
            }
            Picked::NoneOf(dead) => dead,
        },
    };
    // Take the first live key after `from`, or else the map's first live key. (In key order this comes only after every
    // sampled key was dead.)
    let after = (Bound::Excluded(from.clone()), Bound::Unbounded);
    let before = (Bound::Unbounded, Bound::Excluded(from));
    let listing = Listing {
        lone: true,
        limit: 1,
        ..Listing::default()
    };
    context.start_walk(vec![after, before], listing)
}

/// The keys of the database, for a random choice among the live ones.
struct LiveKeys<'l, 'c>(&'l Context<'c>);

impl random::Keys for LiveKeys<'_, '_> {
    type Error = Wrong;

    fn end(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, last: bool) -> Result<Option<Vec<u8>>, Wrong> {
        let direction = match last {
            false => Direction::Forward,
            true => Direction::Reverse,
        };
        let mut end = None;
        let store = &self.0.state.store;
        store.scan(
            lower,
            upper,
            direction,
            self.0.now,
            &heap::pin(),
            &mut |key, _| {
                end = Some(key.to_vec());
                ControlFlow::Break(())
            },
        )?;
        Ok(end)
    }

    fn may_take(&self, key: &[u8]) -> Result<bool, Wrong> {
        // A scan does not count as an access of the item.
        let (only, mut live) = (Bound::Included(key), false);
        let store = &self.0.state.store;
        store.scan(
            only,
            only,
            Direction::Forward,
            self.0.now,
            &heap::pin(),
            &mut |_, item| {
                live = item.is_some();
                ControlFlow::Break(())
            },
        )?;
        Ok(live)
    }
}
