//! Walks over all keys, a step at a time, beside writers.

use index::{Direction, Error, Index};
use std::ops::{Bound, ControlFlow};

/// Shows the next keys behind `cursor` and their values, at most `limit`, which is not zero; how many there were, and behind
/// which key the next step begins: if they were fewer, at the beginning again. An error where the keys of a damaged pool are so
/// out of order that the walk would not end.
pub fn step(
    index: &dyn Index,
    cursor: &[u8],
    limit: usize,
    mut show: impl FnMut(&[u8], &[u8]),
) -> Result<(usize, Vec<u8>), Error> {
    let (mut seen, mut last) = (0, None);
    let (lower, guard) = (Bound::Excluded(cursor), heap::pin());
    index.scan(
        lower,
        Bound::Unbounded,
        Direction::Forward,
        &guard,
        &mut |key, value| {
            show(key, &value);
            seen += 1;
            if seen < limit {
                return ControlFlow::Continue(());
            }
            last = Some(key.to_vec());
            ControlFlow::Break(())
        },
    )?;
    if let Some(last) = &last {
        index::behind(last, lower, Direction::Forward)?;
    }
    Ok((seen, last.unwrap_or_default()))
}
