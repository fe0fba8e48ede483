//! memcached's classic commands, each one edit of an item. As in memcached, appending or prepending to a value creates
//! a new item, without the old one's marks.

use super::{Decision, Failure, ItemStore, Outcome};
use crate::items::item::{self, Header, Item};
use crate::items::number;
use std::sync::atomic::Ordering;

/// The storage commands that depend on the present item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Store if absent.
    Add,
    /// Store if present.
    Replace,
    /// Add bytes behind the present value.
    Append,
    /// Add bytes before the present value.
    Prepend,
    /// Store if the value is still the one with this unique.
    Cas(u64),
}

impl ItemStore {
    /// Carries out a storage command that depends on the present item. `new` has the flags and the expiry of the item;
    /// an item that is appended or prepended to keeps its own.
    pub fn store(
        &self,
        verb: Verb,
        key: &[u8],
        new: (u32, u64),
        data: &[u8],
        now: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<Outcome, Failure> {
        let (flags, expiry) = new;
        let largest = self.largest.load(Ordering::Relaxed);
        self.change(key, now, scratch, |old, unique, put| {
            let fresh = Header {
                unique,
                expiry,
                flags,
                marks: 0,
            };
            let kept = |old: Item<'_>| Header {
                unique,
                marks: 0,
                ..old.header
            };
            let fits = |old: Item<'_>| old.data.len() + data.len() <= largest;
            let (header, parts) = match (verb, old) {
                (Verb::Add, None) | (Verb::Replace, Some(_)) => (fresh, [data, &[]]),
                (Verb::Append, Some(old)) if fits(old) => (kept(old), [old.data, data]),
                (Verb::Prepend, Some(old)) if fits(old) => (kept(old), [data, old.data]),
                (Verb::Cas(seen), Some(old)) if old.header.unique == seen => (fresh, [data, &[]]),
                (Verb::Cas(_), Some(_)) => return Decision::Keep(Outcome::Exists),
                (Verb::Cas(_), None) => return Decision::Keep(Outcome::NotFound),
                _ => return Decision::Keep(Outcome::NotStored),
            };
            header.begin(put);
            put.extend_from_slice(parts[0]);
            put.extend_from_slice(parts[1]);
            Decision::Put(Outcome::Done)
        })
    }

    /// Adds `delta` to the number that the value holds, modulo 2^64, or, unless `up`, subtracts it, down to zero.
    /// Returns also whether the value has become longer.
    pub fn count(
        &self,
        key: &[u8],
        delta: u64,
        up: bool,
        now: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<(Outcome, bool), Failure> {
        self.change(key, now, scratch, |old, unique, put| {
            let Some(old) = old else {
                return Decision::Keep((Outcome::NotFound, false));
            };
            let Some(number) = number::leading(old.data) else {
                return Decision::Keep((Outcome::NotNumber, false));
            };
            let number = if up {
                number.wrapping_add(delta)
            } else {
                number.saturating_sub(delta)
            };
            let header = Header { unique, ..old.header };
            let longer = put_number(header, number, old.data.len(), put);
            Decision::Put((Outcome::Number(number), longer))
        })
    }

    /// Gives the item another expiry. Its unique stays.
    pub fn touch(
        &self,
        key: &[u8],
        expiry: u64,
        now: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<Outcome, Failure> {
        self.change(key, now, scratch, |old, _, put| {
            let Some(old) = old else {
                return Decision::Keep(Outcome::NotFound);
            };
            Header { expiry, ..old.header }.begin(put);
            put.extend_from_slice(old.data);
            Decision::Put(Outcome::Done)
        })
    }
}

/// Fills `put` with an item that holds the number, padded with blanks to `length` bytes, the length of the old data.
/// Returns whether the number is longer than that. Then the item loses its marks, as a new item in memcached.
pub fn put_number(header: Header, number: u64, length: usize, put: &mut Vec<u8>) -> bool {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let longer = digits > length;
    let marks = if longer { 0 } else { header.marks };
    Header { marks, ..header }.begin(put);
    number::write(put, number);
    put.resize(item::HEADER + length.max(digits), b' ');
    longer
}
