//! Walks over all keys of a map, a step at a time, beside writers: what sweeps, counts and evictions are made of.
//!
//! I1 A step holds a guard for as long as it looks, and no lock.
//! I2 A walk ends, however a pool is damaged: keys out of order are an error.

use crate::Map;
use index::Direction;
use std::ops::{Bound, ControlFlow};

/// What a step of a walk has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Keys looked at.
    pub seen: usize,
    /// The last of them, behind which the next step begins; `None`: there are no more.
    pub last: Option<Vec<u8>>,
}

/// What a step of a sweep has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Keys looked at.
    pub seen: usize,
    /// Entries removed that were past their end.
    pub removed: usize,
}

impl Map {
    /// Shows the entries from `lower` on in the order of the map's index, at most `limit`, which is not zero.
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
    /// Those of the map's index, after what it has shown until then, and where the keys of a damaged pool are so out of
    /// order that the walk would not end.
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

    /// Looks at the entries behind `cursor` (`None`: from the first on), at most `limit`, and has those removed that
    /// are over: `remove` looks again, under the lock on the key, and says whether it has removed the entry. `cursor`
    /// is then behind the last of them, or, where fewer were left than `limit`, at the beginning again.
    ///
    /// # Errors
    ///
    /// Those of `remove`, which ends the step. As [`walk`](Map::walk): then those entries that were shown before are
    /// removed all the same, and `cursor` is at the beginning, as from where it was the next step would fail as this
    /// one did.
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
