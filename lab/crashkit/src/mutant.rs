//! A program that lacks a persist.

mod swap;

use crate::log::{EventKind, EventLog, LogEvent, Named, Site};
use std::fmt;
use std::ops::Range;

/// What a mutant omits at one of the program's persists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lacks {
    /// The write-backs that its source line asked for, even where other call sites asked for the same.
    WriteBack,
    /// The fences of its source line.
    Fence,
    /// The order between the publication that its fences end and the next one of the same operation.
    Order,
}

/// A program without the persists of one line of source, or with one too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mutant {
    /// What it lacks.
    pub lacks: Lacks,
    /// The source line of the persist.
    pub site: Site,
}

impl Mutant {
    /// Returns whether the mutant omits the event.
    pub fn leaves_out(&self, log: &EventLog, event: &LogEvent) -> bool {
        match (self.lacks, event.kind) {
            (Lacks::WriteBack, EventKind::WriteBack { .. }) => log.sites(event).any(|site| site == self.site),
            (Lacks::Fence, EventKind::Fence) => event.site == self.site,
            _ => false,
        }
    }

    /// Returns the log with its order changed, and the changed ranges; `None` if the mutant changes no order.
    pub(crate) fn swapped(&self, log: &EventLog) -> Option<(EventLog, Vec<Range<usize>>)> {
        (self.lacks == Lacks::Order).then(|| swap::swapped(log, self.site))
    }

    /// Returns how many events of a log the mutant omits or delays.
    pub(crate) fn lacking(&self, log: &EventLog) -> u64 {
        match self.swapped(log) {
            Some((_, swapped)) => swapped.len() as u64,
            None => {
                let events = log.events.iter();
                events.filter(|event| self.leaves_out(log, event)).count() as u64
            }
        }
    }
}

impl EventLog {
    /// Returns the source lines that asked for the persists with this name: those of its thread and file up to the next
    /// fence.
    pub fn sites_of<'l>(&'l self, named: &'l Named, lacks: Lacks) -> impl Iterator<Item = Site> + 'l {
        let &Named {
            thread,
            site: given,
            place,
            ref before,
            ..
        } = named;
        let file = given.file();
        let own = self.events[place..]
            .iter()
            .filter(move |event| event.thread == thread);
        let is_fence = move |event: &&LogEvent| event.kind == EventKind::Fence && event.site.file() == file;
        let mut ended = false;
        let about = own.take_while(move |event| {
            let was = ended;
            ended |= is_fence(event);
            !was
        });
        about
            .filter(move |event| match lacks {
                Lacks::WriteBack => matches!(event.kind, EventKind::WriteBack { .. }),
                Lacks::Fence | Lacks::Order => event.kind == EventKind::Fence,
            })
            .flat_map(|event| self.sites(event))
            .filter(move |site| {
                let earlier = lacks == Lacks::WriteBack && before.contains(site);
                site.file() == file && !earlier
            })
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.lacks {
            Lacks::WriteBack => "write-back",
            Lacks::Fence => "fence",
            Lacks::Order => "order after the fence",
        };
        write!(f, "{what} at {}", self.site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Crash;
    use pmem::{
        Chunk, Draft, Lender, Media, Memory, Offset, PWord, Pool, PoolOptions, Purpose, persist_scope,
    };
    use std::panic::Location;

    fn crash() -> (Crash, Pool<Crash>) {
        let crash = Crash::new(Memory::new(2 << 20).expect("memory"));
        crash.begin(10_000);
        let options = PoolOptions {
            page_size: 64 << 10,
            ..PoolOptions::default()
        };
        let pool = Pool::create_in(crash.memory(), &options, crash.clone()).expect("a pool");
        (crash, pool)
    }

    fn at(line: u64) -> Offset {
        Offset::new((64 << 10) + 64 * line).expect("not zero")
    }

    struct Nobody;

    impl Lender for Nobody {
        fn give_back(&self, _: Offset, _: usize) {}
    }

    /// A line that a batch writes back twice, since it makes room for an object to which the line belongs as well, was
    /// asked for by the same lines of source both times.
    #[test]
    fn a_second_write_back_was_asked_for_too() {
        let (crash, pool) = crash();
        crash.record();
        persist_scope(&crash, Purpose::Node, |batch| {
            let draft = |from: u64, len: usize| {
                let offset = Offset::new(at(0).get() + from).expect("not zero");
                let start = pool.chunk_start(offset, len).expect("within");
                // SAFETY: the test makes two drafts, which do not overlap, and nothing else leads there.
                let chunk = unsafe { Chunk::new(start, offset, len, &Nobody) };
                Draft::new(chunk, PWord::new(1), &batch)
            };
            // As many lines as a batch holds back, of which line 1 goes when line 0 comes.
            let full = draft(64 + 16, 8 * 64 - 16).flush(&batch);
            let more = draft(0, 64 + 16).flush(&batch);
            batch.fence();
            drop((full, more));
        });
        let log = crash.recorded();
        crash.end();
        let write_backs = |wanted: u32| {
            let first = (64 << 10) / 64 + wanted;
            let of_line = log.events.iter().filter(
                move |event| matches!(event.kind, EventKind::WriteBack { line, .. } if line == first),
            );
            of_line.map(|event| log.sites(event).map(Location::line).collect::<Vec<_>>())
        };
        let twice: Vec<_> = write_backs(1).collect();
        assert_eq!(twice.len(), 2, "{twice:?}");
        assert_eq!(twice[0], twice[1]);
        assert_eq!(twice[0].len(), 2, "{twice:?}");
    }

    /// A name does not apply to a write-back that was asked for before it, even if the same fence completes it.
    #[test]
    fn what_was_asked_for_earlier_is_not_named() {
        let (crash, pool) = crash();
        let word = |line: u64| {
            // SAFETY: the test makes no drafts.
            unsafe { pool.at::<PWord>(at(line)) }.expect("within")
        };
        crash.record();
        persist_scope(&crash, Purpose::Node, |batch| {
            word(0).store(1, &batch);
            crash.site("second");
            word(1).store(1, &batch);
            let _durable = batch.fence().durable();
        });
        let log = crash.recorded();
        crash.end();
        let stores = log
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::Store { .. }));
        let [_, after] = stores.map(|event| event.site).collect::<Vec<_>>()[..] else {
            panic!("two stores: {:?}", log.events);
        };
        let named: Vec<Site> = log.sites_of(&log.named[0], Lacks::WriteBack).collect();
        assert_eq!(named, [after]);
    }
}
