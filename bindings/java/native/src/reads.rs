//! Batches of entries, one per call of a Java cursor.
//!
//! A batch is packed: first a byte string of one byte, 1 if more may follow, then keys and values alternately.

use crate::bytes::Packed;
use crate::failure::Failure;
use crate::table::Map;
use index::{Direction, check_progress};
use std::ops::{Bound, ControlFlow};
use wollemi::Entry;

/// Bytes of entries after which a batch ends early.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes of values after which a read of many keys ends early.
const MANY_BYTES: usize = 16 << 20;

/// A cursor's request.
pub struct CursorRequest {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
    /// The last key that it has returned.
    pub after: Option<Vec<u8>>,
    pub reverse: bool,
    pub limit: usize,
}

type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

impl CursorRequest {
    fn direction(&self) -> Direction {
        if self.reverse {
            Direction::Reverse
        } else {
            Direction::Forward
        }
    }

    fn bounds(&self) -> Bounds<'_> {
        (
            self.lower.as_ref().map(Vec::as_slice),
            self.upper.as_ref().map(Vec::as_slice),
        )
    }

    /// Returns the bounds of the remaining entries.
    fn remaining(&self) -> Bounds<'_> {
        let (lower, upper) = self.bounds();
        match (&self.after, self.reverse) {
            (None, _) => (lower, upper),
            (Some(key), false) => (Bound::Excluded(key), upper),
            (Some(key), true) => (lower, Bound::Excluded(key)),
        }
    }
}

/// A batch under construction.
struct PackedBatch {
    packed: Packed,
    entries: usize,
    bytes: usize,
}

impl PackedBatch {
    fn new() -> PackedBatch {
        let mut packed = Packed::default();
        packed.put(Some(&[0]));
        PackedBatch {
            packed,
            entries: 0,
            bytes: 0,
        }
    }

    /// Adds an entry; returns whether the batch is now full.
    fn put(&mut self, key: &[u8], value: &[u8], limit: usize) -> bool {
        self.packed.put(Some(key));
        self.packed.put(Some(value));
        self.entries += 1;
        self.bytes += key.len() + value.len();
        let full = self.entries >= limit || self.bytes >= BATCH_BYTES;
        if full {
            self.packed.0[4] = 1;
        }
        full
    }
}

/// Returns the next entries of a map, in its own order, under one pin.
pub fn of_map(Map { map, .. }: &Map, request: &CursorRequest) -> Result<Vec<u8>, Failure> {
    let index = map.index();
    let order = index.order();
    // An unbounded cursor is allowed for any index, and may continue after any key.
    let (lower, upper) = request.bounds();
    order.take_range(lower, upper)?;
    let (lower, upper) = request.remaining();
    let mut batch = PackedBatch::new();
    if !order.has_between(lower, upper) {
        return Ok(batch.packed.0);
    }
    let mut last = None;
    let guard = heap::pin();
    index.walk(lower, upper, request.direction(), &guard, &mut |key, value| {
        if batch.put(key, &value, request.limit) {
            last = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    if let Some(last) = last {
        // In a damaged pool keys may come in any order, and the cursor might not end.
        let from = if request.reverse { upper } else { lower };
        check_progress(order, &last, from, request.direction())?;
    }
    Ok(batch.packed.0)
}

/// Returns the next entries that an iterator yields from the requested end.
fn of_entries(
    mut entries: impl DoubleEndedIterator<Item = Result<Entry, wollemi::Error>>,
    request: &CursorRequest,
) -> Result<Vec<u8>, Failure> {
    let mut batch = PackedBatch::new();
    while let Some(entry) = if request.reverse {
        entries.next_back()
    } else {
        entries.next()
    } {
        let (key, value) = entry?;
        if batch.put(&key, &value, request.limit) {
            break;
        }
    }
    Ok(batch.packed.0)
}

/// Returns the next entries of a map in a snapshot.
pub fn of_view(view: &wollemi::View, map: &Map, request: &CursorRequest) -> Result<Vec<u8>, Failure> {
    map.map.index().order().require_keys()?;
    of_entries(view.range(request.remaining()), request)
}

/// Returns the next entries of a map as a transaction sees it.
pub fn of_transaction(
    transaction: &wollemi::Transaction<'_>,
    map: &Map,
    request: &CursorRequest,
) -> Result<Vec<u8>, Failure> {
    of_entries(transaction.range(&map.map, request.remaining())?, request)
}

/// Returns the values of the first of these keys, up to a bounded number of bytes, and at least one.
pub fn many(Map { map, .. }: &Map, keys: &[&[u8]]) -> Result<Vec<u8>, Failure> {
    let reader = map.reader();
    let mut packed = Packed::default();
    for value in reader.multi_get(keys)? {
        packed.put(value.as_deref());
        if packed.0.len() >= MANY_BYTES {
            break;
        }
    }
    Ok(packed.0)
}
