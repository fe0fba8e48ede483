//! Walks over all keys, a step at a time, beside writers.

use index::{Direction, Error, Index};
use std::ops::{Bound, ControlFlow};

/// Shows the next keys behind `cursor` and their values, at most `limit`, which is not zero; how many there were. The cursor
/// is then where the next step begins: behind the last of them, or, if they were fewer, at the beginning again.
///
/// # Errors
///
/// Those of the index, after what it has shown until then, and where the keys of a damaged pool are so out of order that the walk
/// would not end. The cursor is at the beginning again: from where it was, the next step would fail as this one did.
pub fn step(
    index: &dyn Index,
    cursor: &mut Vec<u8>,
    limit: usize,
    mut show: impl FnMut(&[u8], &[u8]),
) -> Result<usize, Error> {
    let from = std::mem::take(cursor);
    let (mut seen, mut last) = (0, None);
    let (lower, guard) = (Bound::Excluded(from.as_slice()), heap::pin());
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
    if let Some(last) = last {
        index::behind(&last, lower, Direction::Forward)?;
        *cursor = last;
    }
    Ok(seen)
}
