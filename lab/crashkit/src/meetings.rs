//! Meetings of logical threads: which words two of them have touched, in which orders, and how often one was stopped
//! during an operation so that another could go on.
//!
//! Two accesses of a word *meet* if different threads make them, no other access of that word comes between them, and
//! at least one of them stores. An *order* is a pair of source lines that have met, the first one first.

use crate::log::Site;
use crate::model::LineHasher;
use crate::point::{AccessKind, Point};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasherDefault;

type Hashed = BuildHasherDefault<LineHasher>;

/// The meetings of one run.
#[derive(Default)]
pub(crate) struct Meetings {
    /// The thread that runs.
    running: u32,
    /// The threads that are in the middle of an operation and do not wait for another thread.
    amid: BTreeSet<u32>,
    /// The last access of each word.
    last: HashMap<u64, (u32, bool, Site), Hashed>,
    words: HashSet<u64, Hashed>,
    preemptions: u64,
    orders: BTreeSet<(Site, Site)>,
}

impl Meetings {
    /// Records that a thread has come to a point.
    pub(crate) fn stops(&mut self, thread: u32, point: &Point) {
        self.runs(thread);
        match point {
            Point::Access(_) => self.amid.insert(thread),
            Point::Invoke | Point::Wait => self.amid.remove(&thread),
        };
    }

    /// Records that a thread continues from a point, and its access there.
    pub(crate) fn goes_on(&mut self, thread: u32, point: &Point) {
        self.runs(thread);
        let Point::Access(access) = point else {
            return;
        };
        if access.kind == AccessKind::Other {
            return;
        }
        let (word, stores) = (access.at as u64, access.kind == AccessKind::Store);
        let last = self.last.insert(word, (thread, stores, access.site));
        if let Some((other, stored, site)) = last
            && other != thread
            && (stored || stores)
        {
            self.words.insert(word);
            self.orders.insert((site, access.site));
        }
    }

    /// Records that a thread has ended its operation.
    pub(crate) fn ends(&mut self, thread: u32) {
        self.amid.remove(&thread);
    }

    fn runs(&mut self, thread: u32) {
        if self.running != thread {
            self.preemptions += u64::from(self.amid.contains(&self.running));
            self.running = thread;
        }
    }
}

/// The meetings of all runs of several threads.
#[derive(Clone, Debug, Default)]
pub struct Met {
    /// Runs of several threads.
    pub schedules: u64,
    /// How often a thread was stopped during an operation and another continued.
    pub preemptions: u64,
    /// Words that two threads touched, at least one of them by a store, added up over the runs.
    pub words: u64,
    /// The orders in which lines of source have met.
    orders: BTreeSet<(Site, Site)>,
}

impl Met {
    /// Adds the meetings of a run.
    pub(crate) fn note(&mut self, run: Meetings) {
        self.schedules += 1;
        self.preemptions += run.preemptions;
        self.words += run.words.len() as u64;
        self.orders.extend(run.orders);
    }

    /// Returns how many orders are possible for the pairs of different source lines that have met, and how many of them
    /// were seen.
    pub fn orders(&self) -> (u64, u64) {
        let of_two = || self.orders.iter().filter(|(first, then)| first != then);
        let both = of_two().filter(|&&(first, then)| self.orders.contains(&(then, first)));
        let (seen, both) = (of_two().count() as u64, both.count() as u64);
        (2 * (seen - both) + both, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Access;
    use std::panic::Location;

    /// Two threads that store and load one word meet; the reverse order counts as possible and not as seen.
    #[test]
    fn orders_are_counted() {
        let (load, store) = (Location::caller(), Location::caller());
        let access = |kind, site| Point::Access(Access { at: 8, kind, site });
        let mut run = Meetings::default();
        for (thread, point) in [
            (1, Point::Invoke),
            (1, access(AccessKind::Store, store)),
            (2, Point::Invoke),
            (2, access(AccessKind::Load, load)),
            (2, access(AccessKind::Load, load)),
        ] {
            run.stops(thread, &point);
            run.goes_on(thread, &point);
        }
        run.ends(2);
        let mut met = Met::default();
        met.note(run);
        assert_eq!((met.schedules, met.preemptions, met.words), (1, 1, 1));
        assert_eq!(met.orders(), (2, 1));
    }
}
