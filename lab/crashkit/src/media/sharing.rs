//! Visibility among logical threads: which thread stored into a word last, and non-temporal stores that no other thread
//! sees yet.

use crate::model::LineHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Which stores logical threads see of each other.
#[derive(Default)]
pub(super) struct Sharing {
    /// Which thread stored into a word last.
    writers: HashMap<u32, u32, BuildHasherDefault<LineHasher>>,
    /// Non-temporal stores that only their own threads see yet: thread, word, value.
    pub(super) past_cache: Vec<(u32, u32, u64)>,
}

impl Sharing {
    /// Records a store, which replaces a waiting non-temporal store to the same word.
    pub(super) fn stored(&mut self, word: u32, thread: u32) {
        self.writers.insert(word, thread);
        self.past_cache.retain(|(_, place, _)| *place != word);
    }

    pub(super) fn is_of_another(&self, word: u32, thread: u32) -> bool {
        self.writers.get(&word).is_some_and(|writer| *writer != thread)
    }

    /// Returns the thread's own non-temporal store there that no other thread sees yet.
    pub(super) fn own(&self, word: u32, thread: u32) -> Option<u64> {
        let mut own = self
            .past_cache
            .iter()
            .rev()
            .filter(|(by, place, _)| (*by, *place) == (thread, word));
        own.next().map(|(.., value)| *value)
    }

    pub(super) fn drain(&mut self, thread: u32) -> Vec<(u32, u64)> {
        if self.past_cache.is_empty() {
            return Vec::new();
        }
        let (own, others) = self
            .past_cache
            .drain(..)
            .partition::<Vec<_>, _>(|(by, ..)| *by == thread);
        self.past_cache = others;
        own.into_iter().map(|(_, word, value)| (word, value)).collect()
    }
}
