//! Requests to answers: everything a worker does without waiting.

mod stats;

use crate::config::Config;
use crate::counters::{Counter, Counters};
use crate::item::{self, Item};
use crate::number;
use crate::parse::{Request, Verb};
use crate::store::{Failure, Outcome, Store};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Keys that are looked up together.
pub const BATCH: usize = 64;

/// Answers are sent once there are this many bytes of them, however many requests wait.
pub const ENOUGH: usize = 256 << 10;

/// What `version` answers. Clients read there which memcached they speak with, and some refuse a major version of zero.
pub const VERSION: &str = concat!("1.6.18-wollemi-", env!("CARGO_PKG_VERSION"));

/// The second since 1970.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    pub store: Store,
    pub config: Config,
    pub workers: Vec<Counters>,
    /// The connections that each worker serves.
    pub load: Vec<AtomicUsize>,
    pub rejected: AtomicU64,
    pub swept: AtomicU64,
    pub started: Instant,
}

impl Shared {
    /// The connections that are open.
    pub fn connections(&self) -> usize {
        self.load.iter().map(|load| load.load(Ordering::Relaxed)).sum()
    }
}

/// A worker's means to answer requests.
pub struct Session {
    shared: Arc<Shared>,
    worker: usize,
    /// Where values to put are made.
    scratch: RefCell<Vec<u8>>,
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It does.
    GoOn,
    /// It ends, after what has been answered.
    Close,
}

/// Keys of consecutive `get`s, in order.
#[derive(Debug, Default)]
pub struct Lookups<'b> {
    keys: Vec<&'b [u8]>,
    /// For each key whether the answer shows the unique, and whether it ends with this key.
    marks: Vec<(bool, bool)>,
    done: usize,
    /// Why keys of the request whose last key is still to come could not be read: the answer ends with this.
    failed: Option<Failure>,
}

impl<'b> Lookups<'b> {
    /// Adds a key.
    pub fn push(&mut self, key: &'b [u8], unique: bool, last: bool) {
        self.keys.push(key);
        self.marks.push((unique, last));
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
    pub fn new(shared: Arc<Shared>, worker: usize) -> Session {
        Session {
            shared,
            worker,
            scratch: RefCell::new(Vec::new()),
        }
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Counts for this worker.
    pub fn add(&self, counter: Counter, by: u64) {
        self.shared.workers[self.worker].add(counter, by);
    }

    /// Answers lookups, up to [`BATCH`] keys and about [`ENOUGH`] bytes of answers at a time.
    pub fn look_up(&self, lookups: &mut Lookups<'_>, now: u64, out: &mut Vec<u8>) {
        let from = lookups.done;
        let to = lookups.keys.len().min(from + BATCH);
        let keys = &lookups.keys[from..to];
        let marks = &lookups.marks[from..to];
        let mut dead = Vec::new();
        let (mut hits, mut misses) = (0, 0);
        let answered = {
            let guard = heap::pin();
            let mut found = [const { None }; BATCH];
            let found = &mut found[..keys.len()];
            let read = self
                .shared
                .store
                .tick(now)
                .map_err(Failure::from)
                .and_then(|()| self.shared.store.get(keys, now, &guard, &mut dead, found));
            if let Err(failure) = read {
                // An answer that has begun cannot be taken back: the error stands in the place of its end.
                for _ in marks.iter().filter(|(_, last)| *last) {
                    self.fail(&failure, false, out);
                }
                let goes_on = marks.last().is_some_and(|(_, last)| !last);
                lookups.failed = goes_on.then_some(failure);
                keys.len()
            } else {
                let mut answered = 0;
                for ((key, value), (unique, last)) in keys.iter().zip(&*found).zip(marks) {
                    if out.len() >= ENOUGH {
                        break;
                    }
                    match value.as_ref().and_then(|value| Item::read(value)) {
                        Some(item) => {
                            hits += 1;
                            show(key, &item, *unique, out);
                        }
                        None => misses += 1,
                    }
                    match lookups.failed.take_if(|_| *last) {
                        Some(failure) => self.fail(&failure, false, out),
                        None if *last => out.extend_from_slice(b"END\r\n"),
                        None => {}
                    }
                    answered += 1;
                }
                answered
            }
        };
        let mut buried = 0;
        for i in dead.into_iter().filter(|&i| i < answered) {
            // Whoever comes next will try again.
            buried += u64::from(self.shared.store.bury(keys[i], now).unwrap_or(false));
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
        let store = &self.shared.store;
        let scratch = &mut *self.scratch.borrow_mut();
        store.tick(now)?;
        let text: &[u8] = match *request {
            Request::Store {
                verb,
                key,
                flags,
                lifetime,
                data,
            } => {
                let outcome = store.store(
                    verb,
                    key,
                    (flags, item::expiry(lifetime, now)),
                    data,
                    now,
                    scratch,
                )?;
                self.count_store(verb, outcome);
                match outcome {
                    Outcome::Exists => b"EXISTS\r\n",
                    Outcome::NotFound => b"NOT_FOUND\r\n",
                    Outcome::Done => b"STORED\r\n",
                    _ => b"NOT_STORED\r\n",
                }
            }
            Request::TooLarge { verb, key } => {
                // As in memcached, a `set` that fails leaves no older value behind.
                if verb == Verb::Set {
                    store.delete(key, now)?;
                }
                self.add(Counter::TooLarge, 1);
                b"SERVER_ERROR object too large for cache\r\n"
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
            Request::Touch { key, lifetime } => match self.touch(key, lifetime, now, scratch)? {
                Outcome::Done => b"TOUCHED\r\n",
                _ => b"NOT_FOUND\r\n",
            },
            Request::FlushAll { delay } => {
                let at = u64::from(item::expiry(delay, now));
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
        let scratch = &mut *self.scratch.borrow_mut();
        let touched = self
            .shared
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
            .shared
            .store
            .touch(key, item::expiry(lifetime, now), now, scratch)?;
        self.add(Counter::Touches, 1);
        let hit = outcome == Outcome::Done;
        self.add(
            if hit {
                Counter::TouchHits
            } else {
                Counter::TouchMisses
            },
            1,
        );
        Ok(outcome)
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
