//! Cursors over ranges as a transaction sees them, which borrow nothing from it.

use crate::entry::Entry;
use crate::{Error, KeyRange, Map, Media, Transaction};
use index::Direction;
use std::ops::Bound;

/// A position in a range as a transaction sees it. Each step asks the transaction for the next entry, so the cursor
/// does not borrow it in between. It yields each entry once, from whichever end it is asked for.
///
/// Unlike [`TransactionRange`](crate::TransactionRange), it sees what the transaction changes between two steps. Each
/// step is a range of its own: it costs a lookup, and a read to check at commit.
///
/// ```
/// use wollemi::{Direction, TransactionCursor};
///
/// let db = wollemi::Db::anonymous()?;
/// let jobs = db.map("jobs")?;
/// jobs.load([("1", "sweep"), ("2", "mop"), ("3", "dust")])?;
///
/// let mut tx = db.begin();
/// let mut cursor = TransactionCursor::new(&jobs, ..);
/// while let Some((key, _)) = cursor.step(&tx, Direction::Forward)? {
///     tx.remove(&jobs, key)?;
/// }
/// tx.commit()?;
/// assert!(jobs.is_empty()?);
/// # Ok::<(), wollemi::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransactionCursor {
    map: Map,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl TransactionCursor {
    /// Creates a cursor over the entries between these bounds.
    pub fn new(map: &Map, keys: impl KeyRange) -> TransactionCursor {
        let (lower, upper) = keys.bounds();
        TransactionCursor {
            map: map.clone(),
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
        }
    }

    /// Returns the next entry in this direction; `None` when nothing is left.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::range`] and of the map's index.
    pub fn step<M: Media>(
        &mut self,
        transaction: &Transaction<'_, M>,
        direction: Direction,
    ) -> Result<Option<Entry>, Error> {
        let bounds = (
            self.lower.as_ref().map(Vec::as_slice),
            self.upper.as_ref().map(Vec::as_slice),
        );
        let mut range = transaction.range(&self.map, bounds)?;
        let entry = match direction {
            Direction::Forward => range.next(),
            Direction::Reverse => range.next_back(),
        };
        drop(range);
        let entry = entry.transpose()?;
        if let Some((key, _)) = &entry {
            let behind = Bound::Excluded(key.clone());
            match direction {
                Direction::Forward => self.lower = behind,
                Direction::Reverse => self.upper = behind,
            }
        }
        Ok(entry)
    }
}
