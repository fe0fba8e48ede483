//! Answers requests that need no further input from the client, each in one call. A call waits for no client, but it
//! may wait for the databases' gate.

use super::super::http::note_hangup;
use super::dialect::VERSION;
use super::growth::growth;
use super::handler::Handler;
use crate::items::memory::Room;
use crate::items::store::Failure;
use crate::proto::memcached::request::{Body, Request};

/// Whether the connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It continues.
    GoOn,
    /// It ends, once its answers are sent.
    Close,
}

impl Handler {
    /// Answers a request, except those that are answered piece by piece or in groups (`get`, `set`, `gat`: see
    /// `lookups`, `sets`, `touch`).
    pub fn answer(&self, request: &Request<'_>, noreply: bool, now: u64, out: &mut Vec<u8>) -> Next {
        let next = match *request {
            Request::Stats { what } => {
                self.answer_stats(what, noreply, now, out);
                Next::GoOn
            }
            _ => self.answer_in_gate(request, noreply, now, out),
        };
        self.timed(request, now);
        next
    }

    /// Answers `stats`. It may take long and need not be one consistent state, so the gate is held only for the tick,
    /// and transactions do not wait for it.
    fn answer_stats(&self, what: &[u8], noreply: bool, now: u64, out: &mut Vec<u8>) {
        let ticked = {
            let _shared = self.shared().databases.shared();
            self.store().tick(now)
        };
        match ticked {
            Ok(()) => self.stats(what, out),
            Err(error) => self.fail(&error.into(), noreply, out),
        }
    }

    /// Answers a request while it holds the databases' gate.
    fn answer_in_gate(&self, request: &Request<'_>, noreply: bool, now: u64, out: &mut Vec<u8>) -> Next {
        let begin = out.len();
        let _alone;
        let _shared;
        if let Request::FlushAll { .. } = request {
            _alone = self.shared().databases.alone();
        } else {
            _shared = self.shared().databases.shared();
        }
        match self.try_answer(request, now, out) {
            Ok(next) => {
                if noreply {
                    out.truncate(begin);
                }
                next
            }
            Err(failure) => {
                out.truncate(begin);
                self.fail(&failure, noreply, out);
                Next::GoOn
            }
        }
    }

    fn try_answer(&self, request: &Request<'_>, now: u64, out: &mut Vec<u8>) -> Result<Next, Failure> {
        self.store().tick(now)?;
        let _room = self.room(request, now)?;
        match *request {
            Request::Store { ref body, data } => match *body {
                Body::Meta(ref meta) => self.meta_set(meta, data, now, out)?,
                Body::Classic {
                    verb,
                    key,
                    flags,
                    lifetime,
                } => self.store_if(verb, key, (flags, lifetime), data, now, out)?,
                Body::Set { .. } => {} // Executed by `set_all`.
            },
            Request::TooLarge(ref body) => self.too_large(body, now, out)?,
            Request::MetaNothing => out.extend_from_slice(b"MN\r\n"),
            Request::Meta(ref meta) => self.meta(meta, now, out)?,
            Request::MetaDebug { key, binary } => self.meta_debug(key, binary, now, out)?,
            Request::Delete { key } => self.delete(key, now, out)?,
            Request::Count { key, delta, up } => self.count(key, delta, up, now, out)?,
            Request::Touch { key, lifetime } => self.answer_touch(key, lifetime, now, out)?,
            Request::FlushAll { delay } => self.flush_all(delay, now, out)?,
            Request::Version => {
                out.extend_from_slice(b"VERSION ");
                out.extend_from_slice(VERSION.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Request::Verbosity => out.extend_from_slice(b"OK\r\n"),
            Request::MemoryLimit(bytes) => {
                self.shared().databases.memory().set_limit(bytes);
                out.extend_from_slice(b"OK\r\n");
            }
            Request::Wrong(answer) => out.extend_from_slice(answer.as_bytes()),
            Request::LineTooLong => {
                out.extend_from_slice(b"CLIENT_ERROR line too long\r\n");
                return Ok(Next::Close);
            }
            Request::Http => {
                note_hangup(&self.worker, &self.client);
                return Ok(Next::Close);
            }
            Request::Quit => return Ok(Next::Close),
            // `answer` handles `Stats`; the connection answers the others, piece by piece or in groups.
            Request::Stats { .. } | Request::Get { .. } | Request::GetAndTouch { .. } => {}
        }
        Ok(Next::GoOn)
    }

    /// Reserves room for what a request may add to the items. If there is no room for an `ms`, the key's old item is
    /// deleted, as memcached does.
    fn room(&self, request: &Request<'_>, now: u64) -> Result<Room<'_>, Failure> {
        self.shared()
            .databases
            .room(growth(request), now)
            .or_else(|failure| {
                if let Request::Store {
                    body: Body::Meta(meta),
                    ..
                } = request
                {
                    self.lose_old(meta.key, meta.flags.binary, now)?;
                }
                Err(failure)
            })
    }
}
