//! `ms`.

use super::super::handler::Handler;
use crate::items::item::{self, AWAITED, BINARY_KEY, Header, Item, STALE};
use crate::items::store::classic::Verb;
use crate::items::store::{Decision, Failure, Outcome};
use crate::proto::memcached::answer::{echo, labelled, outcome_of};
use crate::proto::memcached::request::{Flags, MAX_KEY, Meta, stored_key};

/// The header of an item, and the two parts of its data.
type Stored<'d> = (Header, [&'d [u8]; 2]);

/// An `ms` to be carried out.
struct Set<'m> {
    verb: Option<Verb>,
    flags: &'m Flags<'m>,
    data: &'m [u8],
    /// The largest value, in bytes.
    largest: usize,
}

impl<'m> Set<'m> {
    /// Returns what to store in the place of the `old` item, where a `fresh` header belongs to the data as the client
    /// has sent them; or the outcome if nothing is to be stored.
    fn stored(&self, old: Option<Item<'m>>, fresh: Header) -> Result<Stored<'m>, Outcome> {
        match (self.verb, old) {
            (None, _) | (Some(Verb::Add), None) | (Some(Verb::Replace), Some(_)) => {
                Ok((fresh, [self.data, &[]]))
            }
            (Some(Verb::Cas(_)), None) => Err(Outcome::NotFound),
            (Some(Verb::Cas(seen)), Some(old)) => self.swapped(seen, &old, fresh),
            (Some(verb @ (Verb::Append | Verb::Prepend)), Some(old)) => self.joined(verb, &old, fresh.unique),
            _ => Err(Outcome::NotStored),
        }
    }

    /// Returns what to store if the client has `seen` this unique. With the flag `I`, the data of a client that has
    /// seen an older unique are stored as stale.
    fn swapped(&self, seen: u64, old: &Item<'m>, fresh: Header) -> Result<Stored<'m>, Outcome> {
        if old.header.unique == seen {
            return Ok((fresh, [self.data, &[]]));
        }
        if !self.flags.invalidate || seen >= old.header.unique {
            return Err(Outcome::Exists);
        }
        let header = Header {
            expiry: old.header.expiry,
            marks: fresh.marks | STALE | (old.header.marks & AWAITED),
            ..fresh
        };
        Ok((header, [self.data, &[]]))
    }

    /// Returns the old data with the new before or behind it.
    fn joined(&self, verb: Verb, old: &Item<'m>, unique: u64) -> Result<Stored<'m>, Outcome> {
        let expected = self.flags.unique.filter(|&seen| seen != 0);
        if expected.is_some_and(|seen| seen != old.header.unique) {
            return Err(Outcome::Exists);
        }
        if old.data.len() + self.data.len() > self.largest {
            return Err(Outcome::NotStored);
        }
        let header = Header {
            unique,
            marks: 0,
            ..old.header
        };
        match verb {
            Verb::Append => Ok((header, [old.data, self.data])),
            _ => Ok((header, [self.data, old.data])),
        }
    }
}

/// Returns the verb that a mode and an expected unique amount to; `None` stores in any case.
fn verb(flags: &Flags<'_>) -> Option<Verb> {
    match (flags.mode, flags.unique) {
        (b'E', _) => Some(Verb::Add),
        (b'A', _) => Some(Verb::Append),
        (b'P', _) => Some(Verb::Prepend),
        (b'R', None) => Some(Verb::Replace),
        (_, Some(unique)) => Some(Verb::Cas(unique)),
        (_, None) => None,
    }
}

impl Handler {
    /// Answers `ms`.
    pub fn meta_set(&self, meta: &Meta<'_>, data: &[u8], now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let flags = &meta.flags;
        let space = &mut [0; MAX_KEY];
        let key = stored_key(meta.key, flags.binary, space);
        let verb = verb(flags);
        let largest = self.shared().net.limits.value();
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let (outcome, unique) = self.store().change(key, now, scratch, |old, unique, put| {
            let set = Set {
                verb,
                flags,
                data,
                largest,
            };
            let fresh = Header {
                unique,
                expiry: item::expiry(flags.lifetime.unwrap_or(0), now),
                flags: flags.client,
                marks: if flags.binary { BINARY_KEY } else { 0 },
            };
            match set.stored(old, fresh) {
                Ok((header, parts)) => {
                    header.begin(put);
                    parts.iter().for_each(|part| put.extend_from_slice(part));
                    Decision::Put((Outcome::Done, unique))
                }
                Err(outcome) => Decision::Keep((outcome, 0)),
            }
        })?;
        self.count_store(verb, outcome);
        if outcome == Outcome::Done {
            self.note(key, false);
            if flags.quiet {
                return Ok(());
            }
        }
        out.extend_from_slice(outcome_of(outcome));
        for word in flags.words.clone() {
            match word[0] {
                b'c' => labelled(b'c', unique, out),
                b'O' | b'k' => echo(word, key, flags.binary, out),
                _ => {}
            }
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}
