//! Cursors over ranges, from both ends. A cursor holds no pin between two calls.

use crate::call::{FromC, call};
use crate::handle::kinds;
use crate::running::Running;
use crate::status::{Failure, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::c_void;
use std::ops::Bound;
use wollemi::{Direction, Entry, Error, Expiring, Iter, Map, TransactionCursor, ViewIter};

/// The source of a cursor's entries.
pub enum Source {
    Map(Iter),
    View(ViewIter),
    Expiring(Expiring, Iter),
    Transaction(TransactionCursor, Running),
}

/// The object behind a cursor's handle: a source, and the entry returned last.
pub struct Cursor {
    source: Source,
    entry: Entry,
}

kinds! {
    wollemi_cursor, Cursor, b"curs", "cursor";
}

fn ended(entry: Option<Result<Entry, Error>>) -> Result<Option<Entry>, Failure> {
    Ok(entry.transpose()?)
}

impl Cursor {
    pub fn new(source: Source) -> Cursor {
        Cursor {
            source,
            entry: Entry::default(),
        }
    }

    fn step(&mut self, direction: Direction) -> Result<Option<Entry>, Failure> {
        fn from<I: DoubleEndedIterator>(iter: &mut I, direction: Direction) -> Option<I::Item> {
            match direction {
                Direction::Forward => iter.next(),
                Direction::Reverse => iter.next_back(),
            }
        }
        match &mut self.source {
            Source::Map(iter) => ended(from(iter, direction)),
            Source::View(iter) => ended(from(iter, direction)),
            Source::Expiring(map, iter) => {
                while let Some((key, bytes)) = ended(from(iter, direction))? {
                    if let Some((value, _)) = map.read(&bytes)? {
                        return Ok(Some((key, value)));
                    }
                }
                Ok(None)
            }
            Source::Transaction(cursor, running) => {
                running.with(|transaction| Ok(cursor.step(transaction, direction)?))
            }
        }
    }
}

/// Bounds that own their keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Converts a range to bounds.
pub fn bounds(c: &FromC<'_>, range: *const wollemi_range) -> Result<Bounds, Failure> {
    let Some(range) = c.optional(range) else {
        return Ok((Bound::Unbounded, Bound::Unbounded));
    };
    let flags = range.flags;
    if flags & !(WOLLEMI_FROM_EXCLUDED | WOLLEMI_TO_INCLUDED) != 0 {
        return Err(Failure::argument(format!("unknown flags of a range: {flags}")));
    }
    let lower = match c.optional_bytes(range.from, range.from_len)? {
        Some(key) if flags & WOLLEMI_FROM_EXCLUDED != 0 => Bound::Excluded(key.to_vec()),
        Some(key) => Bound::Included(key.to_vec()),
        None => Bound::Unbounded,
    };
    let upper = match c.optional_bytes(range.to, range.to_len)? {
        Some(key) if flags & WOLLEMI_TO_INCLUDED != 0 => Bound::Included(key.to_vec()),
        Some(key) => Bound::Excluded(key.to_vec()),
        None => Bound::Unbounded,
    };
    let Some(prefix) = c.optional_bytes(range.prefix, range.prefix_len)? else {
        return Ok((lower, upper));
    };
    let (first, behind) = index::prefix_bounds(prefix);
    Ok((inner(lower, first, true), inner(upper, behind, false)))
}

/// Returns the stricter of two bounds: the greater lower bound, or the lesser upper bound.
fn inner(a: Bound<Vec<u8>>, b: Bound<Vec<u8>>, is_lower: bool) -> Bound<Vec<u8>> {
    let (Bound::Included(key) | Bound::Excluded(key)) = &a else {
        return b;
    };
    let (Bound::Included(other) | Bound::Excluded(other)) = &b else {
        return a;
    };
    let takes_a = match key.cmp(other) {
        std::cmp::Ordering::Equal => matches!(a, Bound::Excluded(_)),
        order => order.is_gt() == is_lower,
    };
    if takes_a { a } else { b }
}

/// Opens a cursor over the entries of a map whose keys are in `range`. It returns every key that is present throughout
/// exactly once, but is not a view of one moment: a snapshot's cursor is. Writers and the cursor do not wait for each
/// other. Free it by wollemi_cursor_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_map_range(
    map: *const wollemi_map,
    range: *const wollemi_range,
    cursor: *mut *mut wollemi_cursor,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let cursor = c.out_handle(cursor)?;
            let iter = c.share::<Map>(map)?.range(bounds(c, range)?);
            cursor.open(Cursor::new(Source::Map(iter)))
        })
    }
}

unsafe fn step(
    cursor: *mut wollemi_cursor,
    direction: Direction,
    (key, key_len): (*mut *const c_void, *mut usize),
    (value, value_len): (*mut *const c_void, *mut usize),
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (key, value) = (
                c.optional_out(key, std::ptr::null()),
                c.optional_out(value, std::ptr::null()),
            );
            let (key_len, value_len) = (c.optional_out(key_len, 0), c.optional_out(value_len, 0));
            let mut cursor = c.hold::<Cursor>(cursor)?;
            let Some(entry) = cursor.step(direction)? else {
                return Ok(WOLLEMI_NOT_FOUND);
            };
            cursor.entry = entry;
            key.set(cursor.entry.0.as_ptr().cast());
            key_len.set(cursor.entry.0.len());
            value.set(cursor.entry.1.as_ptr().cast());
            value_len.set(cursor.entry.1.len());
            Ok(WOLLEMI_OK)
        })
    }
}

/// Returns the next entry in ascending order, or WOLLEMI_NOT_FOUND if none is left. The key and the value stay valid
/// until the next call with this cursor; each output may be NULL. If the index has no key order, entries come in its
/// own order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_cursor_next(
    cursor: *mut wollemi_cursor,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { step(cursor, Direction::Forward, (key, key_len), (value, value_len)) }
}

/// Returns the next entry in descending order, from the end of the range. Calls from both ends may be mixed: each entry
/// is returned once, and nothing is left when both ends have met.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_cursor_next_back(
    cursor: *mut wollemi_cursor,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { step(cursor, Direction::Reverse, (key, key_len), (value, value_len)) }
}

/// Frees a cursor. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_cursor_free(cursor: *mut wollemi_cursor) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Cursor>(cursor)) }
}
