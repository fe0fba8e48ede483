//! Scans of an index without a key order: the kit tests such an index's walks instead.

use index::{Direction, Error, Guard, Index, Order, Value, Visit};
use std::ops::{Bound, ControlFlow};

/// Wraps an index so that a scan walks the whole index in the same direction, and sorts and cuts the result.
struct InOrder(Box<dyn Index>);

/// Returns the index itself if it has a key order, or else wraps it.
pub(super) fn in_order(index: Box<dyn Index>) -> Box<dyn Index> {
    match index.order() {
        Order::Keys => index,
        Order::Ranks(_) => Box::new(InOrder(index)),
    }
}

impl Index for InOrder {
    index::delegate!(0: get, multi_get, prefetch, write, write_many, check, settle, quiesce, merges, maintain);

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let mut found: Vec<(&'g [u8], Value<'g>)> = Vec::new();
        let all = Bound::Unbounded;
        self.0.walk(all, all, direction, guard, &mut |key, value| {
            found.push((key, value));
            ControlFlow::Continue(())
        })?;
        found.retain(|(key, _)| Order::Keys.contains((lower, upper), key));
        // A key that the walk visited twice stays in the result twice.
        found.sort_by_key(|&(key, _)| key);
        if direction == Direction::Reverse {
            found.reverse();
        }
        let _ = found
            .into_iter()
            .map(|(key, value)| visit(key, value))
            .find(|flow| flow.is_break());
        Ok(())
    }
}
