//! Keys of consecutive requests, looked up together.

use super::meta::{self, Shown};
use super::parse::Flags;
use super::timing::number;
use super::{Session, show};
use crate::counters::Counter;
use crate::items::item::{AWAITED, Item, STALE};
use crate::items::store::{BATCH, Failure};
use crate::net::connection::ENOUGH;

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
    /// Answers lookups, up to [`BATCH`] keys and about [`ENOUGH`] bytes of answers at a time.
    pub fn look_up(&self, lookups: &mut Lookups<'_>, now: u64, out: &mut Vec<u8>) {
        let from = lookups.done;
        let to = lookups.keys.len().min(from + BATCH);
        let keys = &lookups.keys[from..to];
        let marks = &lookups.marks[from..to];
        let mut dead = Vec::new();
        let mut changing = None;
        let (mut hits, mut misses) = (0, 0);
        self.shared().access.prefetch(keys);
        let answered = {
            let databases = &self.shared().databases;
            let _shared = databases.shared();
            let store = databases.first();
            let ticked = store.tick(now).map_err(Failure::from);
            // Pinned last: at the gate and in the tick one may wait for recovery, which waits for guards.
            let guard = heap::pin();
            let mut found = [const { None }; BATCH];
            let found = &mut found[..keys.len()];
            let read = ticked.and_then(|()| store.get(keys, now, &guard, &mut dead, found));
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
                        // The first client to see it is asked to replace it, which is an edit.
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
            let _shared = self.shared().databases.shared();
            let begin = out.len();
            if let Err(failure) = self.meta_get(keys[i], flags, now, out) {
                // What the edit has shown did not come to be.
                out.truncate(begin);
                self.fail(&failure, false, out);
            }
            answered += 1;
        }
        let mut buried = 0;
        let shared = (!dead.is_empty()).then(|| self.shared().databases.shared());
        for i in dead.into_iter().filter(|&i| i < answered) {
            // Whoever comes next will try again.
            buried += u64::from(
                self.shared()
                    .databases
                    .first()
                    .bury(keys[i], now)
                    .unwrap_or(false),
            );
        }
        drop(shared);
        let (answered_keys, answered_marks) = (&keys[..answered], &marks[..answered]);
        let metas = answered_marks
            .iter()
            .filter(|mark| matches!(mark, Mark::Meta(_)))
            .count() as u64;
        let gets = answered_marks.iter().filter(|mark| mark.is_last()).count() as u64 - metas;
        let took = self.worker.lap();
        self.timed_as(const { number("get") }, took, gets, now, || {
            answered_keys.to_vec()
        });
        self.timed_as(const { number("mg") }, took, metas, now, || {
            answered_keys.to_vec()
        });
        self.add(Counter::Gets, hits + misses);
        self.add(Counter::GetHits, hits);
        self.add(Counter::GetMisses, misses);
        self.add(Counter::GetDead, buried);
        lookups.done += answered;
        if lookups.waiting() == 0 {
            lookups.clear();
        }
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
}
