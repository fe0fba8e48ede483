//! Keys of consecutive requests, looked up together.

use super::dialect::number;
use super::handler::Handler;
use super::meta::show::{self, Shown};
use crate::counters::Counter;
use crate::items::item::{AWAITED, Item, STALE};
use crate::items::store::{BATCH, Failure};
use crate::net::connection::ENOUGH;
use crate::proto::memcached::answer;
use crate::proto::memcached::request::Flags;

/// Keys of consecutive `get`s and `mg`s, in order.
#[derive(Debug, Default)]
pub struct Lookups<'b> {
    keys: Vec<&'b [u8]>,
    marks: Vec<Mark<'b>>,
    done: usize,
    /// Why some keys of a `get` could not be read whose last key is still waiting. Its answer will end with this error.
    failed: Option<Failure>,
}

/// The form of the answer for a key.
#[derive(Debug)]
enum Mark<'b> {
    /// As for `get`. It shows the `unique` if that is asked for, and ends with the `last` key.
    Get { unique: bool, last: bool },
    /// As for `mg`.
    Meta(Flags<'b>),
}

impl Mark<'_> {
    /// Returns whether a request ends with this key.
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

    /// Returns the number of keys that have no answer yet.
    pub fn waiting(&self) -> usize {
        self.keys.len() - self.done
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.marks.clear();
        self.done = 0;
    }
}

/// The results of a group of lookups.
#[derive(Default)]
struct Met {
    /// The number of keys that have been answered.
    answered: usize,
    hits: u64,
    misses: u64,
    /// The places of keys whose items are dead.
    dead: Vec<usize>,
    /// Whether the first key without an answer needs an edit: its item is stale, and the first client to see that is
    /// asked to replace it.
    needs_edit: bool,
}

impl Handler {
    /// Answers lookups, up to [`BATCH`] keys and about [`ENOUGH`] bytes of answers at a time.
    pub fn look_up(&self, lookups: &mut Lookups<'_>, now: u64, out: &mut Vec<u8>) {
        let from = lookups.done;
        let to = lookups.keys.len().min(from + BATCH);
        let keys = &lookups.keys[from..to];
        let marks = &lookups.marks[from..to];
        self.shared().access.prefetch(keys);
        let mut met = self.answer_some(keys, marks, &mut lookups.failed, now, out);
        if met.needs_edit
            && let Mark::Meta(flags) = &marks[met.answered]
        {
            let _shared = self.shared().databases.shared();
            let begin = out.len();
            if let Err(failure) = self.meta_get(keys[met.answered], flags, now, out) {
                // The answer shows an edit that did not happen.
                out.truncate(begin);
                self.fail(&failure, false, out);
            }
            met.answered += 1;
        }
        let buried = self.bury_dead(keys, &met, now);
        self.record(&keys[..met.answered], &marks[..met.answered], now);
        self.add(Counter::Gets, met.hits + met.misses);
        self.add(Counter::GetHits, met.hits);
        self.add(Counter::GetMisses, met.misses);
        self.add(Counter::GetDead, buried);
        lookups.done += met.answered;
        if lookups.waiting() == 0 {
            lookups.clear();
        }
    }

    /// Looks up these keys together, and answers the first of them, until there are enough answers or a key needs an
    /// edit. If the keys cannot be read, the answers are errors, and `failed` is set if the last key's request has
    /// further keys.
    fn answer_some(
        &self,
        keys: &[&[u8]],
        marks: &[Mark<'_>],
        failed: &mut Option<Failure>,
        now: u64,
        out: &mut Vec<u8>,
    ) -> Met {
        let mut met = Met::default();
        let _shared = self.shared().databases.shared();
        let store = self.store();
        let ticked = store.tick(now).map_err(Failure::from);
        // Pinned last: the gate and the tick may wait for recovery, which waits for guards.
        let guard = heap::pin();
        let mut found = [const { None }; BATCH];
        let found = &mut found[..keys.len()];
        let read = ticked.and_then(|()| store.get(keys, now, &guard, &mut met.dead, found));
        if let Err(failure) = read {
            // An answer that has begun cannot be taken back: the error stands in the place of its end.
            for _ in marks.iter().filter(|mark| mark.is_last()) {
                self.fail(&failure, false, out);
            }
            let goes_on = marks.last().is_some_and(|mark| !mark.is_last());
            *failed = goes_on.then_some(failure);
            met.answered = keys.len();
            return met;
        }
        for ((key, value), mark) in keys.iter().zip(&*found).zip(marks) {
            if out.len() >= ENOUGH {
                break;
            }
            let item = value.as_ref().and_then(|value| Item::read(value));
            if let (Mark::Meta(_), Some(item)) = (mark, &item)
                && item.header.marks & (STALE | AWAITED) == STALE
            {
                met.needs_edit = true;
                break;
            }
            met.hits += u64::from(item.is_some());
            met.misses += u64::from(item.is_none());
            self.answer_key(key, item.as_ref(), mark, now, out);
            if let Mark::Get { last: true, .. } = mark {
                match failed.take() {
                    Some(failure) => self.fail(&failure, false, out),
                    None => out.extend_from_slice(b"END\r\n"),
                }
            }
            met.answered += 1;
        }
        met
    }

    /// Appends the answer for a key, in the form that its request wants.
    fn answer_key(&self, key: &[u8], item: Option<&Item<'_>>, mark: &Mark<'_>, now: u64, out: &mut Vec<u8>) {
        match (mark, item) {
            (Mark::Get { .. }, None) => return,
            (Mark::Meta(flags), None) => return answer::miss(key, flags, out),
            (Mark::Get { unique, .. }, Some(item)) => answer::value(key, item, *unique, out),
            (Mark::Meta(flags), Some(item)) => {
                let shown = Shown {
                    key,
                    data: item.data,
                    seen: self.shared().access.get(key),
                    now,
                    second: self.second(),
                };
                show::show(flags, &shown, &mut { item.header }, false, out);
            }
        }
        self.note(key, true);
    }

    /// Removes the dead items of answered keys. Returns how many it has removed.
    fn bury_dead(&self, keys: &[&[u8]], met: &Met, now: u64) -> u64 {
        if met.dead.is_empty() {
            return 0;
        }
        let _shared = self.shared().databases.shared();
        let answered = met.dead.iter().filter(|&&i| i < met.answered);
        // An item that cannot be removed now stays for the next command that meets it.
        let buried = answered.map(|&i| self.store().bury(keys[i], now).unwrap_or(false));
        buried.map(u64::from).sum()
    }

    /// Records the duration of the requests that ended with these keys.
    fn record(&self, keys: &[&[u8]], marks: &[Mark<'_>], now: u64) {
        let is_meta = |mark: &&Mark<'_>| matches!(mark, Mark::Meta(_));
        let metas = marks.iter().filter(is_meta).count() as u64;
        let gets = marks.iter().filter(|mark| mark.is_last()).count() as u64 - metas;
        let took = self.worker.lap();
        self.timed_as(const { number("get") }, took, gets, now, || keys.to_vec());
        self.timed_as(const { number("mg") }, took, metas, now, || keys.to_vec());
    }
}
