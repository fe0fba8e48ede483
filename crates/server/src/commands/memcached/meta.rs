//! Meta commands: what they do to an item.

mod answer;
mod set;

pub use answer::{Shown, miss, show};
use answer::{begin_answer, echo, echoes, labelled, needs_base64, outcome_of, seconds_left};

use super::Session;
use super::base64_key;
use super::parse::{Flags, MAX_KEY, Meta, MetaVerb};
use crate::counters::Counter;
use crate::items::access::Seen;
use crate::items::item::{self, AWAITED, BINARY_KEY, HEADER, Header, Item, STALE};
use crate::items::number;
use crate::items::store::classic::put_number;
use crate::items::store::{Decision, Failure, Outcome};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

const NOT_NUMBER: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";

impl Session {
    /// The key as it is stored.
    pub fn meta_key<'k>(key: &'k [u8], binary: bool, space: &'k mut [u8; MAX_KEY]) -> &'k [u8] {
        match binary {
            // The parser has decoded it before.
            true => base64_key(key, space).unwrap_or(key),
            false => key,
        }
    }

    /// Answers `mg`, `md` and `ma`.
    pub fn meta(&self, meta: &Meta<'_>, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let space = &mut [0; MAX_KEY];
        let key = Self::meta_key(meta.key, meta.flags.binary, space);
        match meta.verb {
            MetaVerb::Get => self.meta_get(key, &meta.flags, now, out),
            MetaVerb::Delete => self.meta_delete(key, &meta.flags, now, out),
            MetaVerb::Count => self.meta_count(key, &meta.flags, now, out),
            MetaVerb::Set => Ok(()), // Comes with data.
        }
    }

    /// `mg` that may change the item.
    pub fn meta_get(
        &self,
        key: &[u8],
        flags: &Flags<'_>,
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let begin = out.len();
        let second = self.second();
        let seen = self.shared().access.get(key);
        let found = self
            .shared()
            .databases
            .first()
            .change(key, now, scratch, |old, unique, put| {
                out.truncate(begin);
                let old_header = old.map(|old| old.header);
                let (mut header, data) = match (old, flags.vivify) {
                    (Some(old), _) => (old.header, old.data),
                    (None, None) => return Decision::Keep(false),
                    (None, Some(_)) => {
                        let header = Header {
                            unique,
                            ..Header::default()
                        };
                        (header, &[][..])
                    }
                };
                let shown = Shown {
                    key,
                    data,
                    seen: if old.is_some() { seen } else { Seen::default() },
                    now,
                    second,
                };
                show(flags, &shown, &mut header, old.is_none(), out);
                if Some(header) == old_header {
                    return Decision::Keep(true);
                }
                header.begin(put);
                put.extend_from_slice(data);
                Decision::Put(true)
            })?;
        if found {
            if !flags.no_bump {
                self.note(key, true);
            }
        } else {
            miss(key, flags, out);
        }
        // As in memcached, what was not there to be touched is a miss of a look.
        match found && flags.lifetime.is_some() {
            true => self.count_touch(true),
            false => self.worker.count_get(found),
        }
        Ok(())
    }

    /// `md`.
    fn meta_delete(&self, key: &[u8], flags: &Flags<'_>, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let outcome = self
            .shared()
            .databases
            .first()
            .change(key, now, scratch, |old, unique, put| {
                let Some(old) = old else {
                    return Decision::Keep(Outcome::NotFound);
                };
                if flags.unique.is_some_and(|seen| seen != old.header.unique) {
                    return Decision::Keep(Outcome::Exists);
                }
                if !flags.invalidate {
                    return Decision::Remove(Outcome::Done);
                }
                let lifetime = flags.lifetime.map(|lifetime| item::expiry(lifetime, now));
                let header = Header {
                    unique,
                    expiry: lifetime.unwrap_or(old.header.expiry),
                    marks: (old.header.marks | STALE) & !AWAITED,
                    ..old.header
                };
                header.begin(put);
                put.extend_from_slice(old.data);
                Decision::Put(Outcome::Done)
            })?;
        let hit = outcome == Outcome::Done;
        self.add(
            if hit {
                Counter::DeleteHits
            } else {
                Counter::DeleteMisses
            },
            1,
        );
        if !(hit && flags.quiet) {
            out.extend_from_slice(outcome_of(outcome));
            echoes(key, flags, out);
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// `ma`.
    fn meta_count(&self, key: &[u8], flags: &Flags<'_>, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let up = !matches!(flags.mode, b'D' | b'-');
        let begin = out.len();
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let mut made = false;
        let (outcome, longer) =
            self.shared()
                .databases
                .first()
                .change(key, now, scratch, |old, unique, put| {
                    out.truncate(begin);
                    made = old.is_none();
                    let (mut header, number) = match (old, flags.vivify) {
                        (None, None) => return Decision::Keep((Outcome::NotFound, false)),
                        (None, Some(_)) => (Header::default(), flags.initial),
                        (Some(old), _) => {
                            if old.data.is_empty() {
                                return Decision::Keep((Outcome::NotNumber, false));
                            }
                            if flags
                                .unique
                                .is_some_and(|seen| seen != 0 && seen != old.header.unique)
                            {
                                return Decision::Keep((Outcome::Exists, false));
                            }
                            let Some(number) = number::leading(old.data) else {
                                return Decision::Keep((Outcome::NotNumber, false));
                            };
                            let number = match up {
                                true => number.wrapping_add(flags.delta),
                                false => number.saturating_sub(flags.delta),
                            };
                            (old.header, number)
                        }
                    };
                    header.unique = unique;
                    let mut digits = Vec::with_capacity(20);
                    number::write(&mut digits, number);
                    begin_answer(flags, digits.len(), out);
                    for word in flags.words.clone() {
                        match word[0] {
                            b'c' => labelled(b'c', unique, out),
                            b't' => seconds_left(&header, now, out),
                            b'T' => header.expiry = item::expiry(flags.lifetime.unwrap_or(0), now),
                            b'N' if old.is_none() => {
                                header.expiry = item::expiry(flags.vivify.unwrap_or(0), now);
                            }
                            b'O' | b'k' => echo(word, key, flags.binary, out),
                            _ => {}
                        }
                    }
                    if flags.value {
                        out.extend_from_slice(b"\r\n");
                        out.extend_from_slice(&digits);
                    }
                    let length = old.map_or(digits.len(), |old| old.data.len());
                    let longer = put_number(header, number, length, put);
                    Decision::Put((Outcome::Done, longer))
                })?;
        let hit = outcome == Outcome::Done;
        if hit && (made || longer) {
            self.note(key, false);
        }
        self.add(
            match (up, hit) {
                (true, true) => Counter::IncrHits,
                (true, false) => Counter::IncrMisses,
                (false, true) => Counter::DecrHits,
                (false, false) => Counter::DecrMisses,
            },
            1,
        );
        match outcome {
            Outcome::NotNumber => {
                out.extend_from_slice(NOT_NUMBER);
                return Ok(());
            }
            Outcome::Done if flags.quiet && !made => out.truncate(begin),
            Outcome::Done => out.extend_from_slice(b"\r\n"),
            other => {
                out.extend_from_slice(outcome_of(other));
                echoes(key, flags, out);
                out.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }

    /// `me`.
    pub fn meta_debug(&self, key: &[u8], binary: bool, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let space = &mut [0; MAX_KEY];
        let key = Self::meta_key(key, binary, space);
        let guard = heap::pin();
        let mut found = [None];
        self.shared()
            .databases
            .first()
            .get(&[key], now, &guard, &mut Vec::new(), &mut found)?;
        let Some(item) = found[0].as_ref().and_then(|value| Item::read(value)) else {
            out.extend_from_slice(b"EN\r\n");
            return Ok(());
        };
        let seen = self.shared().access.get(key);
        out.extend_from_slice(b"ME ");
        match item.header.marks & BINARY_KEY != 0 || needs_base64(key) {
            false => out.extend_from_slice(key),
            true => out.extend_from_slice(BASE64_STANDARD.encode(key).as_bytes()),
        }
        let left = item.header.seconds_left(now).map_or(-1, |left| left as i64);
        let text = format!(
            " exp={left} la={} cas={} fetch={} cls=1 size={}\r\n",
            self.second().saturating_sub(seen.second),
            item.header.unique,
            if seen.fetched { "yes" } else { "no" },
            key.len() + HEADER + item.data.len()
        );
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
