//! Meta commands.

mod count;
mod set;
pub mod show;

use super::handler::Handler;
use crate::items::access::Seen;
use crate::items::item::{self, AWAITED, BINARY_KEY, HEADER, Header, Item, STALE};
use crate::items::store::{Decision, Failure, Outcome};
use crate::proto::memcached::answer::{echoes, miss, needs_base64, outcome_of};
use crate::proto::memcached::request::{Flags, MAX_KEY, Meta, MetaVerb, stored_key};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use show::{Shown, show};

impl Handler {
    /// Answers `mg`, `md` and `ma`.
    pub fn meta(&self, meta: &Meta<'_>, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let space = &mut [0; MAX_KEY];
        let key = stored_key(meta.key, meta.flags.binary, space);
        match meta.verb {
            MetaVerb::Get => self.meta_get(key, &meta.flags, now, out),
            MetaVerb::Delete => self.meta_delete(key, &meta.flags, now, out),
            MetaVerb::Count => self.meta_count(key, &meta.flags, now, out),
            MetaVerb::Set => Ok(()), // Comes with data.
        }
    }

    /// Answers an `mg` that may change the item.
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
        let found = self.store().change(key, now, scratch, |old, unique, put| {
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
        // As in memcached, a touch that finds no item counts as a missed read.
        match found && flags.lifetime.is_some() {
            true => self.count_touch(true),
            false => self.worker.count_get(found),
        }
        Ok(())
    }

    /// Answers `md`.
    fn meta_delete(&self, key: &[u8], flags: &Flags<'_>, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let outcome = self.store().change(key, now, scratch, |old, unique, put| {
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
        // As in memcached, an item that becomes stale is not counted.
        if !(hit && flags.invalidate) {
            self.count_delete(hit);
        }
        if !(hit && flags.quiet) {
            out.extend_from_slice(outcome_of(outcome));
            echoes(key, flags, out);
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// Answers `me`.
    pub fn meta_debug(&self, key: &[u8], binary: bool, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let space = &mut [0; MAX_KEY];
        let key = stored_key(key, binary, space);
        let guard = heap::pin();
        let mut found = [None];
        self.store()
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
