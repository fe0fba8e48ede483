//! Dirty reads: answers that depend on stores that are not durable yet.
//!
//! An operation that loads a word stored by another thread, and answers while a crash may still lose that store, has
//! shown its caller a state that may be lost (ROART §2.3.1). Detecting this takes no crash.
//!
//! I1 Not checked are loads for hints ([`Media::peek`](pmem::Media::peek)), loads that the caller has read again and
//!    does not use ([`Media::disregard`](pmem::Media::disregard)), and stores that change only bits that recovery
//!    ignores.

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
            What::Disregarded { word } => self.of(thread).retain(|read| read.word != word),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Store;
    use crate::model::Model;
    use std::panic::Location;

    /// What comes of these events, each with its thread.
    fn judged(events: &[(u32, What)]) -> Result<(), String> {
        let site = Location::caller();
        let log = Log {
            events: events
                .iter()
                .map(|&(thread, what)| Event { what, thread, site })
                .collect(),
            ..Log::default()
        };
        let (mut tracker, mut reads) = (Tracker::new(Model::default()), DirtyReads::default());
        for (place, event) in log.events.iter().enumerate() {
            reads.step(&tracker, &log, place, event)?;
            tracker.step(place as u32, event, &mut ());
        }
        Ok(())
    }

    /// An answer is dirty if it depends on another thread's store that is not durable; not if it does not depend on it,
    /// or if it was made durable first.
    #[test]
    fn answers_depend_on_what_is_not_disregarded() {
        let store = What::Store {
            word: 9,
            value: 1,
            kind: Store::Plain,
        };
        let (load, disregard) = (What::Load { word: 9 }, What::Disregarded { word: 9 });
        let persist = [What::WriteBack { line: 1, joins: 0 }, What::Fence];
        let read = |between: &[What]| {
            let mut events = vec![(1, What::Invoke(0)), (1, store), (2, What::Invoke(1)), (2, load)];
            events.extend(between.iter().map(|&what| (2, what)));
            events.push((2, What::Ack(1)));
            judged(&events)
        };
        assert!(read(&[]).is_err());
        assert_eq!(read(&[disregard]), Ok(()));
        assert_eq!(read(&persist), Ok(()));
        assert!(read(&[disregard, load]).is_err());
        assert!(read(&[What::Disregarded { word: 8 }]).is_err());
    }
}
