//! A schedule in which each thread runs for long, and some are stalled.
//!
//! Now and then the running thread is stalled, wherever it is: between a store and its fence, or with a lock. The
//! others run meanwhile, long enough for whole operations: they meet its stores that are not durable yet, and return
//! before it continues. Schedules that choose a thread at each access rarely do that.
//!
//! A run may also ask for a stall ([`Asked`]).

use crate::Random;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// At one in this many accesses a thread is stalled...
const STALL_ONE_IN: u64 = 32;
/// ...for this many accesses of the others, at most.
const MAX_STALL: u64 = 400;
/// At one in this many accesses another thread continues without a stall.
const SWITCH_ONE_IN: u64 = 64;

/// A request to stall the running thread at its next access.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<AtomicBool>);

impl Asked {
    /// Makes the request.
    pub(super) fn ask(&self) {
        self.0.store(true, Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}

/// The scheduler.
pub(super) struct Stalls {
    seed: u64,
    random: Random,
    asked: Asked,
    /// The stalled thread, and the accesses of the others left until it continues.
    aside: Option<(TaskId, u64)>,
    runs_left: u32,
}

impl Stalls {
    /// Creates the schedule of a seed, for one run.
    pub(super) fn new(seed: u64) -> Stalls {
        Stalls::asked(seed, Asked::default())
    }

    /// Likewise, with the stalls that a run asks for.
    pub(super) fn asked(seed: u64, asked: Asked) -> Stalls {
        Stalls {
            seed,
            random: Random(seed),
            asked,
            aside: None,
            runs_left: 1,
        }
    }

    /// Chooses which of these runs next, after `current`.
    fn choose(&mut self, runnable: &[TaskId], current: Option<TaskId>, waits: bool) -> Option<TaskId> {
        let current = current.filter(|current| runnable.contains(current));
        let asked = self.asked.take();
        if let Some(current) = current
            && runnable.len() > 1
            && (asked || self.aside.is_none() && self.random.below(STALL_ONE_IN) == 0)
        {
            self.aside = Some((current, 1 + self.random.below(MAX_STALL)));
        }
        let aside = self.aside.map(|(aside, _)| aside);
        let others: Vec<TaskId> = runnable.iter().copied().filter(|&id| Some(id) != aside).collect();
        self.aside = match self.aside {
            Some((aside, left)) if left > 1 && !others.is_empty() => Some((aside, left - 1)),
            _ => None,
        };
        let from = if others.is_empty() { runnable } else { &others };
        match current.filter(|current| from.contains(current)) {
            Some(current) if !waits && self.random.below(SWITCH_ONE_IN) > 0 => Some(current),
            _ => (!from.is_empty()).then(|| *self.random.pick(from)),
        }
    }
}

impl Scheduler for Stalls {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.runs_left = self.runs_left.checked_sub(1)?;
        Some(Schedule::new(self.seed))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, waits: bool) -> Option<TaskId> {
        let runnable: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        self.choose(&runnable, current, waits)
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of three threads runs; some are stalled for long, none forever; the same seed gives the same order.
    #[test]
    fn some_are_stalled() {
        let ids: Vec<TaskId> = (0..3).map(TaskId::from).collect();
        let order = |seed| {
            let mut stalls = Stalls::new(seed);
            let mut order = Vec::new();
            for _ in 0..10_000 {
                let current = order.last().copied();
                order.extend(stalls.choose(&ids, current, false));
            }
            order
        };
        let first = order(1);
        assert!(first == order(1) && first != order(2));
        for id in ids {
            let mut gaps = first.split(|other| *other == id).map(<[TaskId]>::len);
            assert!(gaps.clone().any(|gap| gap > 200), "{id}");
            assert!(gaps.all(|gap| gap < 4000), "{id}");
        }
    }

    /// A thread for which a stall is asked does not run next.
    #[test]
    fn a_stall_is_asked_for() {
        let ids: Vec<TaskId> = (0..3).map(TaskId::from).collect();
        let asked = Asked::default();
        let mut stalls = Stalls::asked(1, asked.clone());
        let mut current = None;
        for _ in 0..1000 {
            let was = current;
            asked.ask();
            current = stalls.choose(&ids, was, false);
            assert!(current.is_some() && (was.is_none() || current != was));
        }
    }

    /// A thread runs if it is the only runnable one, and a thread that waits lets another run.
    #[test]
    fn a_waiting_thread_lets_others_run() {
        let ids: Vec<TaskId> = (0..2).map(TaskId::from).collect();
        let mut stalls = Stalls::new(1);
        for _ in 0..1000 {
            assert_eq!(stalls.choose(&ids[..1], Some(ids[0]), true), Some(ids[0]));
        }
        assert_eq!(stalls.choose(&[], None, false), None);
        let both = (0..1000).filter_map(|_| stalls.choose(&ids, Some(ids[0]), true));
        assert!(both.filter(|id| *id == ids[1]).count() > 300);
    }
}
