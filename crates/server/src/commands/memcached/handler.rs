//! Requests to answers: everything a worker does without waiting.

use super::growth::growth;
use super::parse::{Body, MAX_KEY, Request};
use crate::counters::Counter;
use crate::items::access::Seen;
use crate::items::item::{self, Item};
use crate::items::number;
use crate::items::store::classic::Verb;
use crate::items::store::{Failure, Outcome};
use crate::net::clients::Client;
use crate::ops::rate_limit;
use crate::ops::shared::{Shared, Worker};
use crate::proto::http::note_hangup;
use std::rc::Rc;
use std::sync::Arc;

/// What `version` answers. Clients read there which memcached they speak with, and some refuse a major version of zero.
pub const VERSION: &str = concat!("1.6.18-wollemi-", env!("CARGO_PKG_VERSION"));

/// A connection's means to answer requests.
pub struct Session {
    pub worker: Rc<Worker>,
    pub client: Arc<Client>,
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It does.
    GoOn,
    /// It ends, after what has been answered.
    Close,
}

impl Session {
    pub fn new(worker: Rc<Worker>, client: Arc<Client>) -> Session {
        Session { worker, client }
    }

    pub fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    pub fn add(&self, counter: Counter, by: u64) {
        self.worker.add(counter, by);
    }

    /// Whether the request says who the client is, as memcached's `-Y` wants it: a `set` of any key to a user's name
    /// and password, with a blank between.
    pub fn let_in(&self, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
        let said = match request {
            Request::Store {
                body: Body::Set { .. },
                data,
            } => data,
            _ => &[][..],
        };
        let blank = said.iter().position(|&byte| byte == b' ');
        let known = blank.is_some_and(|blank| {
            let (user, password) = (&said[..blank], &said[blank + 1..]);
            self.shared().passwords.let_in(user, password)
        });
        out.extend_from_slice(match known {
            true => b"STORED\r\n",
            false => b"CLIENT_ERROR unauthenticated\r\n",
        });
        known
    }

    /// Answers any other request.
    pub fn answer(&self, request: &Request<'_>, noreply: bool, now: u64, out: &mut Vec<u8>) -> Next {
        let begin = out.len();
        if let Request::Stats { what } = *request {
            // Telling may take long, and what it tells changes beside it anyway: transactions do not wait for it.
            let ticked = {
                let _shared = self.shared().databases.shared();
                self.shared().databases.first().tick(now)
            };
            let next = match ticked {
                Ok(()) => self.stats(what, out),
                Err(error) => {
                    self.fail(&error.into(), noreply, out);
                    Next::GoOn
                }
            };
            self.timed(request, now);
            return next;
        }
        let _alone;
        let _shared;
        if let Request::FlushAll { .. } = request {
            _alone = self.shared().databases.alone();
        } else {
            _shared = self.shared().databases.shared();
        }
        let next = match self.try_answer(request, now, out) {
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
        };
        self.timed(request, now);
        next
    }

    pub fn fail(&self, failure: &Failure, noreply: bool, out: &mut Vec<u8>) {
        self.add(Counter::Failures, 1);
        rate_limit::failed("memcached", failure);
        if !noreply {
            server_error(&failure.to_string(), out);
        }
    }

    pub fn try_answer(&self, request: &Request<'_>, now: u64, out: &mut Vec<u8>) -> Result<Next, Failure> {
        let store = self.shared().databases.first();
        store.tick(now)?;
        let _room = match self.shared().databases.room(growth(request), now) {
            Ok(room) => room,
            Err(failure) => {
                if let Request::Store {
                    body: Body::Meta(meta),
                    ..
                } = request
                {
                    self.lose_old(meta.key, meta.flags.binary, now)?;
                }
                return Err(failure);
            }
        };
        let text: &[u8] = match *request {
            Request::Store {
                body: Body::Meta(ref meta),
                data,
            } => {
                self.meta_set(meta, data, now, out)?;
                b""
            }
            Request::Store {
                body:
                    Body::Classic {
                        verb,
                        key,
                        flags,
                        lifetime,
                    },
                data,
            } => {
                let expiry = item::expiry(lifetime, now);
                let scratch = &mut *self.worker.scratch.borrow_mut();
                let outcome = store.store(verb, key, (flags, expiry), data, now, scratch)?;
                self.count_store(Some(verb), outcome);
                match outcome {
                    Outcome::Exists => b"EXISTS\r\n",
                    Outcome::NotFound => b"NOT_FOUND\r\n",
                    Outcome::Done => {
                        self.note(key, false);
                        b"STORED\r\n"
                    }
                    _ => b"NOT_STORED\r\n",
                }
            }
            Request::TooLarge(ref body) => {
                match body {
                    Body::Set { key, .. } => self.lose_old(key, false, now)?,
                    Body::Classic { .. } => {}
                    Body::Meta(meta) => self.lose_old(meta.key, meta.flags.binary, now)?,
                }
                self.add(Counter::TooLarge, 1);
                b"SERVER_ERROR object too large for cache\r\n"
            }
            Request::MetaNothing => b"MN\r\n",
            Request::Meta(ref meta) => {
                self.meta(meta, now, out)?;
                b""
            }
            Request::MetaDebug { key, binary } => {
                self.meta_debug(key, binary, now, out)?;
                b""
            }
            Request::Delete { key } => match store.delete(key, now)? {
                Outcome::Done => {
                    self.add(Counter::DeleteHits, 1);
                    b"DELETED\r\n"
                }
                _ => {
                    self.add(Counter::DeleteMisses, 1);
                    b"NOT_FOUND\r\n"
                }
            },
            Request::Count { key, delta, up } => {
                let scratch = &mut *self.worker.scratch.borrow_mut();
                let (outcome, longer) = store.count(key, delta, up, now, scratch)?;
                if longer {
                    self.note(key, false);
                }
                let (hits, misses) = match up {
                    true => (Counter::IncrHits, Counter::IncrMisses),
                    false => (Counter::DecrHits, Counter::DecrMisses),
                };
                match outcome {
                    Outcome::Number(number) => {
                        self.add(hits, 1);
                        number::write(out, number);
                        b"\r\n"
                    }
                    Outcome::NotNumber => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
                    _ => {
                        self.add(misses, 1);
                        b"NOT_FOUND\r\n"
                    }
                }
            }
            Request::Touch { key, lifetime } => {
                let scratch = &mut *self.worker.scratch.borrow_mut();
                match self.touch(key, lifetime, now, scratch)? {
                    Outcome::Done => b"TOUCHED\r\n",
                    _ => b"NOT_FOUND\r\n",
                }
            }
            Request::FlushAll { delay } => {
                let at = item::expiry(delay, now);
                store.flush(Some(at).filter(|&at| at > now))?;
                self.add(Counter::Flushes, 1);
                b"OK\r\n"
            }
            Request::Version => {
                out.extend_from_slice(b"VERSION ");
                out.extend_from_slice(VERSION.as_bytes());
                b"\r\n"
            }
            Request::Verbosity => b"OK\r\n",
            Request::MemoryLimit(bytes) => {
                self.shared().databases.memory().set_limit(bytes);
                b"OK\r\n"
            }
            Request::Wrong(answer) => answer.as_bytes(),
            Request::LineTooLong => {
                out.extend_from_slice(b"CLIENT_ERROR line too long\r\n");
                return Ok(Next::Close);
            }
            Request::Http => {
                note_hangup(&self.worker, &self.client);
                return Ok(Next::Close);
            }
            Request::Quit => return Ok(Next::Close),
            // `answer` has done the first, and the connection answers the others piece by piece, or together.
            Request::Stats { .. }
            | Request::Get { .. }
            | Request::GetAndTouch { .. }
            | Request::Store {
                body: Body::Set { .. },
                ..
            } => b"",
        };
        out.extend_from_slice(text);
        Ok(Next::GoOn)
    }

    /// As in memcached, a `set` that there is no room for leaves no older value behind, nor does an `ms` in any mode.
    pub fn lose_old(&self, key: &[u8], binary: bool, now: u64) -> Result<(), Failure> {
        let space = &mut [0; MAX_KEY];
        let key = Self::meta_key(key, binary, space);
        self.shared().databases.first().delete(key, now).map(drop)
    }

    /// The second, counted from the server's start.
    pub fn second(&self) -> u64 {
        self.shared().started.elapsed().as_secs()
    }

    /// Notes that a key was asked for, or else stored.
    pub fn note(&self, key: &[u8], fetched: bool) {
        let second = self.second();
        self.shared().access.set(key, Seen { fetched, second });
    }

    /// Counts what came of a storage command; of no verb: in any case.
    pub fn count_store(&self, verb: Option<Verb>, outcome: Outcome) {
        self.add(Counter::Sets, 1);
        if let Some(Verb::Cas(_)) = verb {
            let counter = match outcome {
                Outcome::Done => Counter::CasHits,
                Outcome::Exists => Counter::CasBadValue,
                _ => Counter::CasMisses,
            };
            self.add(counter, 1);
        }
    }
}

/// Appends an error of the server's.
pub fn server_error(why: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"SERVER_ERROR ");
    out.extend_from_slice(why.replace(['\r', '\n'], " ").as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends an item as `get` shows it.
pub fn show(key: &[u8], item: &Item<'_>, unique: bool, out: &mut Vec<u8>) {
    out.reserve(key.len() + item.data.len() + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number::write(out, u64::from(item.header.flags));
    out.push(b' ');
    number::write(out, item.data.len() as u64);
    if unique {
        out.push(b' ');
        number::write(out, item.header.unique);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(item.data);
    out.extend_from_slice(b"\r\n");
}
