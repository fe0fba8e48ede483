//! Requests to answers: everything a worker does without waiting.

mod meta;
mod stats;

use super::parse::{Body, Flags, MAX_KEY, Request, Verb};
use crate::access::Seen;
use crate::connection::ENOUGH;
use crate::counters::Counter;
use crate::item::{self, AWAITED, Item, STALE};
use crate::number;
use crate::shared::{Shared, Worker};
use crate::store::{Failure, Outcome};
use meta::Shown;
use std::rc::Rc;

/// Keys that are looked up together.
pub const BATCH: usize = 64;

/// What `version` answers. Clients read there which memcached they speak with, and some refuse a major version of zero.
pub const VERSION: &str = concat!("1.6.18-wollemi-", env!("CARGO_PKG_VERSION"));

/// A connection's means to answer requests.
pub struct Session {
    worker: Rc<Worker>,
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It does.
    GoOn,
    /// It ends, after what has been answered.
    Close,
}

/// Keys of consecutive `get`s and `mg`s, in order.
#[derive(Debug, Default)]
pub struct Lookups<'b> {
    keys: Vec<&'b [u8]>,
    marks: Vec<Mark<'b>>,
    done: usize,
    /// Why keys of the request whose last key is still to come could not be read: the answer ends with this.
    failed: Option<Failure>,
}

/// How the answer for a key looks.
#[derive(Debug)]
enum Mark<'b> {
    /// As for `get`: whether it shows the unique, and whether it ends with this key.
    Get { unique: bool, last: bool },
    /// As for `mg`.
    Meta(Flags<'b>),
}

impl Mark<'_> {
    fn is_last(&self) -> bool {
        matches!(self, Mark::Get { last: true, .. } | Mark::Meta(_))
    }
}

impl<'b> Lookups<'b> {
    /// Adds a key of a `get`.
    pub fn push(&mut self, key: &'b [u8], unique: bool, last: bool) {
        self.keys.push(key);
        self.marks.push(Mark::Get { unique, last });
    }

    /// Adds the key of an `mg`.
    pub fn push_meta(&mut self, key: &'b [u8], flags: Flags<'b>) {
        self.keys.push(key);
        self.marks.push(Mark::Meta(flags));
    }

    /// Keys without an answer yet.
    pub fn waiting(&self) -> usize {
        self.keys.len() - self.done
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.marks.clear();
        self.done = 0;
    }
}

impl Session {
    pub fn new(worker: Rc<Worker>) -> Session {
        Session { worker }
    }

    fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    fn add(&self, counter: Counter, by: u64) {
        self.worker.add(counter, by);
    }

    /// Answers lookups, up to [`BATCH`] keys and about [`ENOUGH`] bytes of answers at a time.
    pub fn look_up(&self, lookups: &mut Lookups<'_>, now: u64, out: &mut Vec<u8>) {
        let from = lookups.done;
        let to = lookups.keys.len().min(from + BATCH);
        let keys = &lookups.keys[from..to];
        let marks = &lookups.marks[from..to];
        let mut dead = Vec::new();
        let mut changing = None;
        let (mut hits, mut misses) = (0, 0);
        let answered = {
            let guard = heap::pin();
            let mut found = [const { None }; BATCH];
            let found = &mut found[..keys.len()];
            let store = &self.shared().store;
            let read = store
                .tick(now)
                .map_err(Failure::from)
                .and_then(|()| store.get(keys, now, &guard, &mut dead, found));
            if let Err(failure) = read {
                // An answer that has begun cannot be taken back: the error stands in the place of its end.
                for _ in marks.iter().filter(|mark| mark.is_last()) {
                    self.fail(&failure, false, out);
                }
                let goes_on = marks.last().is_some_and(|mark| !mark.is_last());
                lookups.failed = goes_on.then_some(failure);
                keys.len()
            } else {
                let mut answered = 0;
                for ((key, value), mark) in keys.iter().zip(&*found).zip(marks) {
                    if out.len() >= ENOUGH {
                        break;
                    }
                    let item = value.as_ref().and_then(|value| Item::read(value));
                    if let (Mark::Meta(_), Some(item)) = (mark, &item)
                        && item.header.marks & (STALE | AWAITED) == STALE
                    {
                        // The first to see it is told to replace it, which is an edit.
                        changing = Some(answered);
                        break;
                    }
                    match &item {
                        Some(item) => {
                            hits += 1;
                            self.show(key, item, mark, now, out);
                        }
                        None => {
                            misses += 1;
                            if let Mark::Meta(flags) = mark {
                                meta::miss(key, flags, out);
                            }
                        }
                    }
                    if let Mark::Get { last: true, .. } = mark {
                        match lookups.failed.take() {
                            Some(failure) => self.fail(&failure, false, out),
                            None => out.extend_from_slice(b"END\r\n"),
                        }
                    }
                    answered += 1;
                }
                answered
            }
        };
        let mut answered = answered;
        if let Some(i) = changing
            && let Mark::Meta(flags) = &marks[i]
        {
            if let Err(failure) = self.meta_get(keys[i], flags, now, out) {
                self.fail(&failure, false, out);
            }
            answered += 1;
        }
        let mut buried = 0;
        for i in dead.into_iter().filter(|&i| i < answered) {
            // Whoever comes next will try again.
            buried += u64::from(self.shared().store.bury(keys[i], now).unwrap_or(false));
        }
        self.add(Counter::Gets, hits + misses);
        self.add(Counter::GetHits, hits);
        self.add(Counter::GetMisses, misses);
        self.add(Counter::GetDead, buried);
        lookups.done += answered;
        if lookups.waiting() == 0 {
            lookups.clear();
        }
    }

    /// Answers any other request.
    pub fn answer(&self, request: &Request<'_>, noreply: bool, now: u64, out: &mut Vec<u8>) -> Next {
        let begin = out.len();
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

    fn fail(&self, failure: &Failure, noreply: bool, out: &mut Vec<u8>) {
        self.add(Counter::Failures, 1);
        if !noreply {
            let text = failure.to_string().replace(['\r', '\n'], " ");
            out.extend_from_slice(b"SERVER_ERROR ");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }

    fn try_answer(&self, request: &Request<'_>, now: u64, out: &mut Vec<u8>) -> Result<Next, Failure> {
        let store = &self.shared().store;
        store.tick(now)?;
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
                self.count_store(verb, outcome);
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
                // As in memcached, a `set` that fails leaves no older value behind, and an `ms` in no mode.
                match body {
                    Body::Classic {
                        verb: Verb::Set, key, ..
                    } => drop(store.delete(key, now)?),
                    Body::Classic { .. } => {}
                    Body::Meta(meta) => {
                        let space = &mut [0; MAX_KEY];
                        store.delete(Self::meta_key(meta.key, meta.flags.binary, space), now)?;
                    }
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
                let outcome = store.count(key, delta, up, now, scratch)?;
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
            Request::Stats { what } => return Ok(self.stats(what, out)),
            Request::Version => {
                out.extend_from_slice(b"VERSION ");
                out.extend_from_slice(VERSION.as_bytes());
                b"\r\n"
            }
            Request::Verbosity => b"OK\r\n",
            Request::Wrong(answer) => answer.as_bytes(),
            Request::LineTooLong => {
                out.extend_from_slice(b"CLIENT_ERROR line too long\r\n");
                return Ok(Next::Close);
            }
            Request::Quit => return Ok(Next::Close),
            // The connection answers these piece by piece.
            Request::Get { .. } | Request::GetAndTouch { .. } => b"",
        };
        out.extend_from_slice(text);
        Ok(Next::GoOn)
    }

    /// The part of a `gat` for one key; whether the request goes on.
    pub fn get_and_touch(
        &self,
        key: &[u8],
        lifetime: i64,
        unique: bool,
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let touched = self
            .shared()
            .store
            .tick(now)
            .map_err(Failure::from)
            .and_then(|()| self.touch(key, lifetime, now, scratch));
        self.add(Counter::Gets, 1);
        match touched {
            Ok(Outcome::Done) => {
                self.add(Counter::GetHits, 1);
                // What was put is still in the scratch space.
                if let Some(item) = Item::read(scratch) {
                    show(key, &item, unique, out);
                }
                Ok(())
            }
            Ok(_) => {
                self.add(Counter::GetMisses, 1);
                Ok(())
            }
            Err(failure) => {
                self.fail(&failure, false, out);
                Err(())
            }
        }
    }

    fn touch(&self, key: &[u8], lifetime: i64, now: u64, scratch: &mut Vec<u8>) -> Result<Outcome, Failure> {
        let outcome = self
            .shared()
            .store
            .touch(key, item::expiry(lifetime, now), now, scratch)?;
        self.count_touch(outcome == Outcome::Done);
        if outcome == Outcome::Done {
            self.note(key, true);
        }
        Ok(outcome)
    }

    fn count_touch(&self, hit: bool) {
        self.add(Counter::Touches, 1);
        self.add(
            if hit {
                Counter::TouchHits
            } else {
                Counter::TouchMisses
            },
            1,
        );
    }

    /// The second, counted from the server's start.
    fn second(&self) -> u64 {
        self.shared().started.elapsed().as_secs()
    }

    /// Notes that a key was asked for, or else stored.
    fn note(&self, key: &[u8], fetched: bool) {
        let second = self.second();
        self.shared().access.set(key, Seen { fetched, second });
    }

    /// Appends an item as its request wants it shown.
    fn show(&self, key: &[u8], item: &Item<'_>, mark: &Mark<'_>, now: u64, out: &mut Vec<u8>) {
        match mark {
            Mark::Get { unique, .. } => show(key, item, *unique, out),
            Mark::Meta(flags) => {
                let shown = Shown {
                    key,
                    data: item.data,
                    seen: self.shared().access.get(key),
                    now,
                    second: self.second(),
                };
                meta::show(flags, &shown, &mut { item.header }, false, out);
            }
        }
        self.note(key, true);
    }

    fn count_store(&self, verb: Verb, outcome: Outcome) {
        self.add(Counter::Sets, 1);
        if let Verb::Cas(_) = verb {
            let counter = match outcome {
                Outcome::Done => Counter::CasHits,
                Outcome::Exists => Counter::CasBadValue,
                _ => Counter::CasMisses,
            };
            self.add(counter, 1);
        }
    }
}

/// How a meta command's answer begins.
fn outcome_of(outcome: Outcome) -> &'static [u8] {
    match outcome {
        Outcome::Done | Outcome::Number(_) => b"HD",
        Outcome::NotStored | Outcome::NotNumber => b"NS",
        Outcome::Exists => b"EX",
        Outcome::NotFound => b"NF",
    }
}

/// Appends an item as `get` shows it.
fn show(key: &[u8], item: &Item<'_>, unique: bool, out: &mut Vec<u8>) {
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
