//! Dirty reads: answers that depend on stores that are not durable yet.
//!
//! An operation that loads a word stored by another thread, and answers while a crash may still lose that store, has
//! shown its caller a state that may be lost (ROART §2.3.1). Detecting this takes no crash.
//!
//! I1 These are not checked: loads for hints ([`Media::peek`](pmem::Media::peek)); loads whose value a later load of
//!    another word has made invalid, so that the operation does not use it
//!    ([`Media::disregard`](pmem::Media::disregard)); stores that change only bits that recovery ignores; volatile
//!    words; and non-temporal stores.

use crate::log::{EventKind, EventLog, LogEvent};
use crate::model::Tracker;

/// The loads of non-durable stores on which the operations in flight depend.
#[derive(Debug, Default)]
pub(crate) struct DirtyReads {
    threads: Vec<Vec<Dependency>>,
}

#[derive(Clone, Copy, Debug)]
struct Dependency {
    word: u32,
    /// The places of the store and of the load in the log.
    store: u32,
    load: u32,
}

impl DirtyReads {
    /// Checks an event before the tracker applies it. The error names the dirty read.
    pub(crate) fn step(
        &mut self,
        tracker: &Tracker,
        log: &EventLog,
        place: usize,
        event: &LogEvent,
    ) -> Result<(), String> {
        let thread = event.thread as usize;
        match event.kind {
            EventKind::Load { word } => {
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
            EventKind::Disregarded { word } => self.of(thread).retain(|read| read.word != word),
            EventKind::Invoke(_) => self.of(thread).clear(),
            EventKind::Ack(_) => {
                for read in self.of(thread).drain(..) {
                    if tracker.is_pending(read.word, read.store) {
                        let site = |place: u32| log.events[place as usize].site;
                        return Err(format!(
                            "dirty read: the operation answers, but its load at {} saw the store at {}, which is not \
                             durable",
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
    use crate::log::StoreKind;
    use crate::model::MemoryModel;
    use std::panic::Location;

    /// Returns the verdict on these events, each with its thread.
    fn judged(events: &[(u32, EventKind)]) -> Result<(), String> {
        let site = Location::caller();
        let log = EventLog {
            events: events
                .iter()
                .map(|&(thread, kind)| LogEvent { kind, thread, site })
                .collect(),
            ..EventLog::default()
        };
        let (mut tracker, mut reads) = (Tracker::new(MemoryModel::default()), DirtyReads::default());
        for (place, event) in log.events.iter().enumerate() {
            reads.step(&tracker, &log, place, event)?;
            tracker.step(place as u32, event, &mut ());
        }
        Ok(())
    }

    /// An answer is dirty if it depends on another thread's store that is not durable. It is clean if the operation
    /// disregards the load or the store becomes durable first.
    #[test]
    fn answers_depend_on_what_is_not_disregarded() {
        let store = EventKind::Store {
            word: 9,
            value: 1,
            kind: StoreKind::Plain,
        };
        let (load, disregard) = (EventKind::Load { word: 9 }, EventKind::Disregarded { word: 9 });
        let persist = [EventKind::WriteBack { line: 1, joins: 0 }, EventKind::Fence];
        let read = |between: &[EventKind]| {
            let mut events = vec![
                (1, EventKind::Invoke(0)),
                (1, store),
                (2, EventKind::Invoke(1)),
                (2, load),
            ];
            events.extend(between.iter().map(|&kind| (2, kind)));
            events.push((2, EventKind::Ack(1)));
            judged(&events)
        };
        assert!(read(&[]).is_err());
        assert_eq!(read(&[disregard]), Ok(()));
        assert_eq!(read(&persist), Ok(()));
        assert!(read(&[disregard, load]).is_err());
        assert!(read(&[EventKind::Disregarded { word: 8 }]).is_err());
    }
}
