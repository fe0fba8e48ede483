//! memcached's classic commands, each one edit of an item.

use super::{Decision, Failure, Outcome, Store};
use crate::item::{self, Header, Item};
use crate::memcached::Verb;
use crate::number;
use std::sync::atomic::Ordering;

impl Store {
    /// Carries out a storage command.
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
            let kept = |old: Item<'_>| Header { unique, ..old.header };
            let fits = |old: Item<'_>| old.data.len() + data.len() <= largest;
            let (header, parts) = match (verb, old) {
                (Verb::Set, _) | (Verb::Add, None) | (Verb::Replace, Some(_)) => (fresh, [data, &[]]),
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

    /// Adds to the number that the value is, round at 2^64, or takes from it, down to zero. A number that has become
    /// shorter keeps the value's length, with blanks behind it.
    pub fn count(
        &self,
        key: &[u8],
        delta: u64,
        up: bool,
        now: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<Outcome, Failure> {
        self.change(key, now, scratch, |old, unique, put| {
            let Some(old) = old else {
                return Decision::Keep(Outcome::NotFound);
            };
            let Some(number) = number::leading(old.data) else {
                return Decision::Keep(Outcome::NotNumber);
            };
            let number = if up {
                number.wrapping_add(delta)
            } else {
                number.saturating_sub(delta)
            };
            Header { unique, ..old.header }.begin(put);
            number::write(put, number);
            if put.len() < item::HEADER + old.data.len() {
                put.resize(item::HEADER + old.data.len(), b' ');
            }
            Decision::Put(Outcome::Number(number))
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
