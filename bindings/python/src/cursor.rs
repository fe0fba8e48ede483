//! Entries in order, a page at a time.

use crate::convert::Pair;
use crate::errors;
use crate::running::Transaction;
use crate::slot::Turns;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::ops::Bound;
use wollemi::{Direction, Entry, Error, Iter, TransactionCursor, ViewIter};

/// Maximum number of entries copied per release of the GIL.
const PAGE: usize = 128;

/// Bytes of keys and values after which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// Bounds of a range, which own their keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Converts Python's range: the lower bound, the excluded upper bound, and a prefix.
pub fn bounds(start: Option<&[u8]>, stop: Option<&[u8]>, prefix: Option<&[u8]>) -> Bounds {
    let mut lower = start.map(<[u8]>::to_vec);
    let mut upper = stop.map(<[u8]>::to_vec);
    if let Some(prefix) = prefix {
        if lower.as_deref().is_none_or(|lower| lower < prefix) {
            lower = Some(prefix.to_vec());
        }
        if let Some(last) = prefix.iter().rposition(|&byte| byte != 0xff) {
            let mut behind = prefix[..=last].to_vec();
            behind[last] += 1;
            if upper.as_deref().is_none_or(|upper| behind.as_slice() < upper) {
                upper = Some(behind);
            }
        }
    }
    (
        lower.map_or(Bound::Unbounded, Bound::Included),
        upper.map_or(Bound::Unbounded, Bound::Excluded),
    )
}

pub enum Source {
    Map(Iter),
    View(ViewIter),
    Transaction(TransactionCursor, Py<Transaction>),
}

struct State {
    source: Source,
    direction: Direction,
    ahead: VecDeque<Result<Entry, Error>>,
}

/// An iterator over entries, as pairs of bytes.
#[pyclass(frozen, weakref, module = "wollemi._native")]
pub struct Cursor(Turns<State>);

impl Cursor {
    pub fn new(source: Source, reverse: bool) -> Cursor {
        Cursor(Turns::new(State {
            source,
            direction: if reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            },
            ahead: VecDeque::new(),
        }))
    }
}

fn page(
    iter: &mut impl DoubleEndedIterator<Item = Result<Entry, Error>>,
    direction: Direction,
    ahead: &mut VecDeque<Result<Entry, Error>>,
) {
    let mut bytes = 0;
    while ahead.len() < PAGE && bytes < PAGE_BYTES {
        let next = match direction {
            Direction::Forward => iter.next(),
            Direction::Reverse => iter.next_back(),
        };
        let Some(entry) = next else { return };
        bytes += entry.as_ref().map_or(0, |(key, value)| key.len() + value.len());
        ahead.push_back(entry);
    }
}

impl State {
    /// Fetches the next entries. Returns `false` if the cursor's transaction is over.
    fn fill(&mut self) -> bool {
        let State {
            source,
            direction,
            ahead,
        } = self;
        match source {
            Source::Map(iter) => page(iter, *direction, ahead),
            Source::View(iter) => page(iter, *direction, ahead),
            Source::Transaction(cursor, transaction) => {
                // One at a time: each entry counts as read, and the transaction may change the next ones.
                let entry = transaction
                    .get()
                    .0
                    .detached(|running| cursor.step(running, *direction));
                let Some(entry) = entry else {
                    return false;
                };
                ahead.extend(entry.transpose());
            }
        }
        true
    }
}

#[pymethods]
impl Cursor {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        let entry = self.0.with(py, |state| {
            if state.ahead.is_empty() && !state.fill() {
                return Ok(None);
            }
            state.ahead.pop_front().transpose().map(Some)
        })?;
        Ok(entry.ok_or_else(errors::closed)?.map(Pair))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}
