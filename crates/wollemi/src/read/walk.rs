//! Walks over all keys of a map, a step at a time, beside writers. Sweeps are built from them, and so are the server's
//! counts and evictions.
//!
//! I1 A step holds a guard only while it visits keys, and no lock.
//! I2 A walk ends whatever the damage to the pool: keys out of order are an error.

use crate::Map;
use index::Direction;
use std::ops::{Bound, ControlFlow};

/// The result of a step of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Keys visited.
    pub seen: usize,
    /// The last key visited, after which the next step begins; `None` at the end of the map.
    pub last: Option<Vec<u8>>,
}

/// The result of a step of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Keys visited.
    pub seen: usize,
    /// Entries removed.
    pub removed: usize,
}

impl Map {
    /// Visits the entries from `lower` on in the order of the map's index, at most `limit`, which must not be zero.
    ///
    /// ```
    /// use std::ops::Bound;
    ///
    /// let map = wollemi::Db::anonymous()?.map("letters")?;
    /// map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
    /// let first = map.walk(Bound::Unbounded, 2, |_, _| {})?;
    /// assert_eq!((first.seen, first.last.as_deref()), (2, Some(&b"b"[..])));
    /// let rest = map.walk(Bound::Excluded(b"b"), 2, |key, _| assert_eq!(key, b"c"))?;
    /// assert_eq!((rest.seen, rest.last), (1, None));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the map's index, after the entries read until then have been visited. Also if the keys of a damaged
    /// pool are so disordered that the walk would not end.
    pub fn walk(
        &self,
        lower: Bound<&[u8]>,
        limit: usize,
        mut show: impl FnMut(&[u8], &[u8]),
    ) -> Result<Walked, index::Error> {
        let mut walked = Walked::default();
        let guard = heap::pin();
        self.index.walk(
            lower,
            Bound::Unbounded,
            Direction::Forward,
            &guard,
            &mut |key, value| {
                show(key, &value);
                walked.seen += 1;
                if walked.seen < limit {
                    return ControlFlow::Continue(());
                }
                walked.last = Some(key.to_vec());
                ControlFlow::Break(())
            },
        )?;
        if let Some(last) = &walked.last {
            index::behind(self.index.order(), last, lower, Direction::Forward)?;
        }
        Ok(walked)
    }

    /// Visits the entries after `cursor` (`None`: from the first on), at most `limit`, and calls `remove` for those
    /// that are over by `is_over`. `remove` checks again, under the lock on the key, and returns whether it has removed
    /// the entry. Afterwards `cursor` is at the last entry visited, or, if fewer than `limit` were left, at the
    /// beginning again.
    ///
    /// # Errors
    ///
    /// Those of `remove`, which end the step, and those of [`walk`](Map::walk). After the latter, the entries already
    /// visited are removed all the same, and the cursor is reset to the beginning, because continuing from its old
    /// position would fail again.
    pub fn sweep<E: From<index::Error>>(
        &self,
        cursor: &mut Option<Vec<u8>>,
        limit: usize,
        is_over: impl Fn(&[u8], &[u8]) -> bool,
        mut remove: impl FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<Swept, E> {
        let from = cursor.take();
        let lower = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut over = Vec::new();
        let walked = self.walk(lower, limit, |key, value| {
            if is_over(key, value) {
                over.push(key.to_vec());
            }
        });
        let seen = walked.map(|Walked { seen, last }| {
            *cursor = last;
            seen
        });
        let mut removed = 0;
        for key in &over {
            removed += usize::from(remove(key)?);
        }
        Ok(Swept { seen: seen?, removed })
    }
}
