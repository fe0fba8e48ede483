//! An index without order of keys: the model, walked in another order.

use index::conformance::{Reopen, TestedIndex};
use index::model::ModelIndex;
use index::{Direction, Error, Guard, Index, Order, Visit};
use std::ops::{Bound, ControlFlow};

/// A stand-in for a hash, with many keys of the same rank.
fn rank(key: &[u8]) -> u64 {
    match key {
        [] => 0,
        key => index::codec::checksum(key) >> 54,
    }
}

/// The model in the order of [`rank`].
#[derive(Clone, Default)]
pub struct Unordered(ModelIndex);

impl Index for Unordered {
    index::delegate!(0: get, write, check);

    fn order(&self) -> Order {
        Order::Ranks(rank)
    }

    fn scan<'g>(
        &'g self,
        _: Bound<&[u8]>,
        _: Bound<&[u8]>,
        _: Direction,
        _: &'g Guard,
        _: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        Err(Error::Unordered)
    }

    fn walk<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        for bound in [lower, upper] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.0.get(key, guard)?; // refuses one that is too long
            }
        }
        let order = self.order();
        let (mut keys, all) = (Vec::new(), Bound::Unbounded);
        self.0.scan(all, all, Direction::Forward, guard, &mut |key, _| {
            keys.extend(order.contains((lower, upper), key).then_some(key));
            ControlFlow::Continue(())
        })?;
        order.sort(&mut keys, |key| key);
        if direction == Direction::Reverse {
            keys.reverse();
        }
        for key in keys {
            if let Some(value) = self.0.get(key, guard)?
                && visit(key, value).is_break()
            {
                break;
            }
        }
        Ok(())
    }
}

impl TestedIndex for Unordered {
    fn create() -> Self {
        Unordered::default()
    }
    fn index(&self) -> &dyn Index {
        self
    }
    fn reopen(self, _how: Reopen) -> Self {
        self
    }
    fn used(&self) -> Option<u64> {
        Some(self.0.used())
    }
}
