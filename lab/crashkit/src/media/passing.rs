//! The calls of the media. A read touches its line first, and a change saves it first. While a run is recorded, stores,
//! drafts, write-backs, locked instructions and fences are logged, and loads of what another thread stored last.

use super::{AccessKind, Crash, MAX_TURNS, Point};
use crate::log::{EventKind, LogEvent, Named, Site, StoreKind};
use pmem::{LINE, Media, Purpose};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Crash {
    #[inline(always)]
    #[track_caller]
    pub(super) fn event(&self, kind: EventKind) {
        if self.0.recording.load(Relaxed) {
            self.push(kind, Location::caller());
        }
    }

    #[cold]
    #[inline(never)]
    fn push(&self, kind: EventKind, site: Site) {
        let thread = self.thread();
        self.slow().log.events.push(LogEvent { kind, thread, site });
    }

    #[inline(always)]
    #[track_caller]
    fn stored(&self, word: Option<u32>, value: u64, kind: StoreKind) {
        if let Some(word) = word {
            self.event(EventKind::Store { word, value, kind });
            if self.0.threaded.load(Relaxed) {
                let thread = self.thread();
                self.slow().sharing.stored(word, thread);
            }
        }
    }

    /// Returns the current thread's own non-temporal store to a word, if no other thread sees it yet. Logs a load if
    /// another thread stored into the word last: the operation may then depend on a store that a crash loses (`dirty`).
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn shared_load(&self, word: &AtomicU64) -> Option<u64> {
        let word = (self.within(word.as_ptr().cast())? / 8) as u32;
        let thread = self.thread();
        let (own, of_another) = {
            let slow = self.slow();
            (
                slow.sharing.own(word, thread),
                slow.sharing.is_of_another(word, thread),
            )
        };
        if of_another {
            self.event(EventKind::Load { word });
        }
        own
    }

    /// Returns the thread's own non-temporal store to a word, if no other thread sees it yet.
    #[cold]
    #[inline(never)]
    fn own_past_cache(&self, word: &AtomicU64) -> Option<u64> {
        let word = (self.within(word.as_ptr().cast())? / 8) as u32;
        self.slow().sharing.own(word, self.thread())
    }

    /// Makes the thread's non-temporal stores visible to all threads.
    fn drain(&self) {
        if self.0.threaded.load(Relaxed) {
            let thread = self.thread();
            let drained = self.slow().sharing.drain(thread);
            for (word, value) in drained {
                self.words()[word as usize].store(value, Relaxed);
            }
        }
    }

    #[track_caller]
    fn exchange(&self, word: &AtomicU64, old: u64, new: u64, kind: StoreKind) -> Result<u64, u64> {
        let place = self.touch_for_store(word);
        self.event(EventKind::Locked);
        self.drain();
        // An exchange that changes only bits that recovery ignores, or takes a lock, depends on no store that matters
        // after a crash.
        if kind == StoreKind::Plain && self.0.threaded.load(Relaxed) {
            self.shared_load(word);
        }
        let result = word.compare_exchange(old, new, Relaxed, Relaxed);
        if result.is_ok() {
            self.stored(place, new, kind);
        }
        result
    }
}

// SAFETY: one OS thread at a time uses the media, so every order is kept. Each access is the atomic operation of the
// same name, except that between logical threads a non-temporal store is kept aside, where its own thread alone sees
// it, up to that thread's next fence or exchange (`drain`). The media promises only the durability of the model,
// against which it is tested.
unsafe impl Media for Crash {
    const TAKES_TURNS: bool = true;
    const REUSES_AT_ONCE: bool = true;

    #[inline]
    fn load(&self, word: &AtomicU64) -> u64 {
        self.touch_for_load(word);
        if self.0.threaded.load(Relaxed)
            && let Some(own) = self.shared_load(word)
        {
            return own;
        }
        word.load(Relaxed)
    }

    #[inline]
    fn peek(&self, word: &AtomicU64) -> u64 {
        self.touch_for_load(word);
        if self.0.threaded.load(Relaxed)
            && let Some(own) = self.own_past_cache(word)
        {
            return own;
        }
        word.load(Relaxed)
    }

    fn disregard(&self, word: &AtomicU64) {
        if self.0.threaded.load(Relaxed)
            && let Some(offset) = self.within(word.as_ptr().cast())
        {
            self.event(EventKind::Disregarded {
                word: (offset / 8) as u32,
            });
        }
    }

    #[inline]
    fn store(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, StoreKind::Plain);
        word.store(value, Relaxed);
    }

    #[inline]
    fn store_unpersisted(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, StoreKind::Unpersisted);
        word.store(value, Relaxed);
    }

    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(word, old, new, StoreKind::Plain)
    }

    fn compare_exchange_unpersisted(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(word, old, new, StoreKind::Unpersisted)
    }

    fn store_nt(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, StoreKind::NonTemporal);
        match place {
            Some(place) if self.0.threaded.load(Relaxed) => {
                let thread = self.thread();
                self.slow().sharing.past_cache.push((thread, place, value));
            }
            _ => word.store(value, Relaxed),
        }
    }

    #[track_caller]
    fn touched(&self, start: *const u8, len: usize) {
        self.count_access(AccessKind::Other, start);
        let Some(offset) = self.within(start) else {
            return;
        };
        for line in offset / LINE..(offset + len).div_ceil(LINE).min(self.0.lines.len()) {
            if self.has_freed(line) {
                let words = offset / 8..(offset + len).div_ceil(8);
                self.must_not_be_freed(words.start.max(line * 8)..words.end.min(line * 8 + 8), "reads");
            }
            self.touch(line);
        }
    }

    fn freed(&self, start: *const u8, len: usize, site: Site) {
        if let Some(offset) = self.within(start) {
            self.free(offset, len, site);
        }
    }

    fn has_room(&self) -> bool {
        !self.draw_refusal()
    }

    fn drafting(&self, start: *const u8, len: usize) {
        self.count_access(AccessKind::Other, start);
        let Some(offset) = self.within(start) else {
            return;
        };
        self.unfree(offset, len);
        for line in offset / LINE..(offset + len).div_ceil(LINE) {
            if offset <= line * LINE && (line + 1) * LINE <= offset + len {
                // The draft overwrites the line unread.
                self.0.lines[line].touched.store(self.run(), Relaxed);
            }
            self.save(line);
        }
    }

    fn drafted(&self, start: *const u8, len: usize) {
        if !self.0.recording.load(Relaxed) {
            return;
        }
        let Some(offset) = self.within(start) else {
            return;
        };
        let words = offset / 8..(offset + len).div_ceil(8);
        self.event(EventKind::Drafted {
            word: words.start as u32,
            words: words.len() as u32,
        });
        for word in words {
            let value = self.words()[word].load(Relaxed);
            self.stored(Some(word as u32), value, StoreKind::Draft);
        }
    }

    fn write_back(&self, word: &AtomicU64, _purpose: Purpose) {
        let at = word.as_ptr().cast_const().cast();
        self.count_access(AccessKind::Other, at);
        if let Some(offset) = self.within(at) {
            self.event(EventKind::WriteBack {
                line: (offset / LINE) as u32,
                joins: 0,
            });
        }
    }

    fn joined(&self, at: *const u8, len: usize) {
        if !self.0.recording.load(Relaxed) {
            return;
        }
        let Some(offset) = self.within(at) else {
            return;
        };
        let site = Location::caller();
        let mut slow = self.slow();
        for line in offset / LINE..(offset + len.max(1)).div_ceil(LINE) {
            let joins = slow.joins.entry(key(self.thread(), line)).or_default();
            if !joins.contains(&site) {
                joins.push(site);
            }
        }
    }

    unsafe fn write_back_joined(&self, at: *const u8, _purpose: Purpose) {
        self.count_access(AccessKind::Other, at);
        if !self.0.recording.load(Relaxed) {
            return;
        }
        let Some(offset) = self.within(at) else {
            return;
        };
        let mut slow = self.slow();
        let slow = &mut *slow;
        let line = offset / LINE;
        let key = key(self.thread(), line);
        // A batch may write back a line to make room for others that join with it, and again at its fence.
        let asked = slow.joins.remove(&key).or_else(|| slow.issued.remove(&key));
        let mut sites = asked.unwrap_or_else(|| vec![Location::caller()]);
        slow.issued.insert(key, sites.clone());
        let site = sites.remove(0);
        let joins = if sites.is_empty() {
            0
        } else {
            slow.log.joins.push(sites);
            slow.log.joins.len() as u32 - 1
        };
        let kind = EventKind::WriteBack {
            line: line as u32,
            joins,
        };
        slow.log.events.push(LogEvent {
            kind,
            thread: self.thread(),
            site,
        });
    }

    fn fence(&self, _purpose: Purpose) {
        self.count_access(AccessKind::Other, std::ptr::null());
        self.event(EventKind::Fence);
        self.drain();
    }

    #[inline]
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.touch_for_load(word);
        word.load(Relaxed)
    }

    #[inline]
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, StoreKind::Volatile);
        word.store(value, Relaxed);
    }

    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(word, old, new, StoreKind::Lock)
    }

    fn site(&self, name: &'static str) {
        if self.0.recording.load(Relaxed) {
            let (site, thread) = (Location::caller(), self.thread());
            let mut slow = self.slow();
            let waiting = slow.joins.iter().filter(|&(&key, _)| is_of(key, thread));
            let before = waiting.flat_map(|(_, sites)| sites.iter().copied()).collect();
            let log = &mut slow.log;
            log.named.push(Named {
                name,
                place: log.events.len(),
                thread,
                site,
                before,
            });
        }
    }

    fn comes_to(&self, step: &'static str) {
        if self.0.recording.load(Relaxed) {
            let log = &mut self.slow().log;
            log.steps.push((log.events.len(), step));
        }
    }

    fn wait(&self, turn: u32) {
        if self.0.threaded.load(Relaxed) {
            self.switch(Point::Wait);
        } else if turn >= MAX_TURNS {
            self.hang();
        }
        let left = self.0.steps.load(Relaxed);
        if left == 0 {
            self.hang();
        }
        self.0.steps.store(left.saturating_sub(1), Relaxed);
    }
}

fn key(thread: u32, line: usize) -> u64 {
    u64::from(thread) << 32 | line as u64
}

/// Returns whether a key belongs to this thread.
fn is_of(key: u64, thread: u32) -> bool {
    key >> 32 == u64::from(thread)
}
