//! Dirty reads: answers that depend on what is not durable yet.
//!
//! An operation that loads a word which another thread has stored, and answers while a crash may still lose that store,
//! has shown the outside what perhaps never was (ROART §2.3.1). No crash is needed to see it.
//!
//! I1 Loads for hints are not looked at ([`Media::peek`](pmem::Media::peek)), nor stores that change only bits that
//!    recovery ignores.

use crate::log::{Event, Log, What};
use crate::model::Tracker;

/// What the operations in flight depend on.
#[derive(Debug, Default)]
pub(crate) struct DirtyReads {
    threads: Vec<Vec<Dependency>>,
}

#[derive(Clone, Copy, Debug)]
struct Dependency {
    word: u32,
    /// Places in the log.
    store: u32,
    load: u32,
}

impl DirtyReads {
    /// Looks at an event before the tracker carries it out. The error names the read.
    pub(crate) fn step(
        &mut self,
        tracker: &Tracker,
        log: &Log,
        place: usize,
        event: &Event,
    ) -> Result<(), String> {
        let thread = event.thread as usize;
        match event.what {
            What::Load { word } => {
                if let Some(store) = tracker.pending_store(word)
                    && log.events[store as usize].thread != event.thread
                {
                    self.of(thread).push(Dependency {
                        word,
                        store,
                        load: place as u32,
                    });
                }
            }
            What::Invoke(_) => self.of(thread).clear(),
            What::Ack(_) => {
                for read in self.of(thread).drain(..) {
                    if tracker.is_pending(read.word, read.store) {
                        let site = |place: u32| log.events[place as usize].site;
                        return Err(format!(
                            "dirty read: it answers after it has read, at {}, what was stored at {} and is not durable",
                            site(read.load),
                            site(read.store),
                        ));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn of(&mut self, thread: usize) -> &mut Vec<Dependency> {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        &mut self.threads[thread]
    }
}
