//! Classic commands on one key, but `set` (`sets`) and the reads (`lookups`, `touch`).

use super::handler::Handler;
use crate::counters::Counter;
use crate::items::item;
use crate::items::number;
use crate::items::store::classic::Verb;
use crate::items::store::{Failure, Outcome};
use crate::proto::memcached::request::Body;

impl Handler {
    /// Answers `add`, `replace`, `append`, `prepend` and `cas`.
    pub fn store_if(
        &self,
        verb: Verb,
        key: &[u8],
        (flags, lifetime): (u32, i64),
        data: &[u8],
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let expiry = item::expiry(lifetime, now);
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let outcome = self
            .store()
            .store(verb, key, (flags, expiry), data, now, scratch)?;
        self.count_store(Some(verb), outcome);
        if outcome == Outcome::Done {
            self.note(key, false);
        }
        out.extend_from_slice(match outcome {
            Outcome::Exists => b"EXISTS\r\n",
            Outcome::NotFound => b"NOT_FOUND\r\n",
            Outcome::Done => b"STORED\r\n",
            _ => b"NOT_STORED\r\n",
        });
        Ok(())
    }

    /// Answers a storage command whose value is too large.
    pub fn too_large(&self, body: &Body<'_>, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        match body {
            Body::Set { key, .. } => self.lose_old(key, false, now)?,
            Body::Classic { .. } => {}
            Body::Meta(meta) => self.lose_old(meta.key, meta.flags.binary, now)?,
        }
        self.add(Counter::TooLarge, 1);
        out.extend_from_slice(b"SERVER_ERROR object too large for cache\r\n");
        Ok(())
    }

    /// Answers `delete`.
    pub fn delete(&self, key: &[u8], now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let hit = self.store().delete(key, now)? == Outcome::Done;
        self.count_delete(hit);
        out.extend_from_slice(match hit {
            true => b"DELETED\r\n",
            false => b"NOT_FOUND\r\n",
        });
        Ok(())
    }

    /// Answers `incr` (`up`) and `decr`.
    pub fn count(
        &self,
        key: &[u8],
        delta: u64,
        up: bool,
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let (outcome, longer) = self.store().count(key, delta, up, now, scratch)?;
        if longer {
            self.note(key, false);
        }
        match outcome {
            Outcome::Number(number) => {
                self.count_step(up, true);
                number::write(out, number);
                out.extend_from_slice(b"\r\n");
            }
            Outcome::NotNumber => {
                out.extend_from_slice(b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
            }
            _ => {
                self.count_step(up, false);
                out.extend_from_slice(b"NOT_FOUND\r\n");
            }
        }
        Ok(())
    }

    /// Answers `flush_all`.
    pub fn flush_all(&self, delay: i64, now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let at = item::expiry(delay, now);
        self.store().flush(Some(at).filter(|&at| at > now))?;
        self.add(Counter::Flushes, 1);
        out.extend_from_slice(b"OK\r\n");
        Ok(())
    }
}
