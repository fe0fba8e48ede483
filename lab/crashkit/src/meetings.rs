//! Meetings of logical threads: which words two of them have touched, in which orders, and how often one was stopped
//! during an operation so that another could go on.
//!
//! Two accesses of a word meet where they are by different threads, one after the other with none to that word between
//! them, and at least one of them stores. An *order* is a pair of lines of source that have met, the first one first.

use crate::log::Site;
use crate::model::LineHasher;
use crate::point::{Does, Point};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasherDefault;

type Hashed = BuildHasherDefault<LineHasher>;

/// The meetings of one run.
#[derive(Default)]
pub(crate) struct Meetings {
    /// The thread that runs.
    running: u32,
    /// The threads that are in the middle of an operation.
    amid: BTreeSet<u32>,
    /// The last access of each word.
    last: HashMap<u64, (u32, bool, Site), Hashed>,
    words: HashSet<u64, Hashed>,
    preemptions: u64,
    orders: BTreeSet<(Site, Site)>,
}

impl Meetings {
    /// A thread comes to a point.
    pub(crate) fn stops(&mut self, thread: u32, point: &Point) {
        self.runs(thread);
        match point {
            Point::Access(_) => self.amid.insert(thread),
            Point::Invoke | Point::Wait => self.amid.remove(&thread),
        };
    }

    /// A thread does what it has come to.
    pub(crate) fn goes_on(&mut self, thread: u32, point: &Point) {
        self.runs(thread);
        let Point::Access(access) = point else {
            return;
        };
        if access.does == Does::Other {
            return;
        }
        let (word, stores) = (access.at as u64, access.does == Does::Store);
        let last = self.last.insert(word, (thread, stores, access.site));
        if let Some((other, stored, site)) = last
            && other != thread
            && (stored || stores)
        {
            self.words.insert(word);
            self.orders.insert((site, access.site));
        }
    }

    /// A thread has ended its operation.
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
    /// How often a thread was stopped during an operation, and another went on.
    pub preemptions: u64,
    /// Words that two threads have touched, at least one of them with a store: counted in each run.
    pub words: u64,
    /// The orders in which lines of source have met.
    orders: BTreeSet<(Site, Site)>,
}

impl Met {
    /// Adds those of another run.
    pub(crate) fn note(&mut self, run: Meetings) {
        self.schedules += 1;
        self.preemptions += run.preemptions;
        self.words += run.words.len() as u64;
        self.orders.extend(run.orders);
    }

    /// How many orders of two different lines of source there could be, of the pairs that have met; and how many of
    /// them have been seen.
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

    /// Two threads that store and load one word meet; the order that was not seen counts as one that could be.
    #[test]
    fn orders_are_counted() {
        let (load, store) = (Location::caller(), Location::caller());
        let access = |does, site| Point::Access(Access { at: 8, does, site });
        let mut run = Meetings::default();
        for (thread, point) in [
            (1, Point::Invoke),
            (1, access(Does::Store, store)),
            (2, Point::Invoke),
            (2, access(Does::Load, load)),
            (2, access(Does::Load, load)),
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
