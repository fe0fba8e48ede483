//! A schedule in which each thread runs for long, and some are stalled.
//!
//! Now and then the running thread is stalled, wherever it is: between a store and its fence, or with a lock. The
//! others run meanwhile, long enough for whole operations: they meet its stores that are not durable yet, and return
//! before it continues. Schedules that choose a thread at each access rarely do that.

use crate::Random;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// At one in this many accesses a thread is stalled...
const STALL_ONE_IN: u64 = 32;
/// ...for this many accesses of the others, at most.
const MAX_STALL: u64 = 400;
/// At one in this many accesses another thread continues without a stall.
const SWITCH_ONE_IN: u64 = 64;

/// The scheduler.
pub(super) struct Stalls {
    seed: u64,
    random: Random,
    /// The stalled thread, and the accesses of the others left until it continues.
    aside: Option<(TaskId, u64)>,
    runs_left: u32,
}

impl Stalls {
    /// Creates the schedule of a seed, for one run.
    pub(super) fn new(seed: u64) -> Stalls {
        Stalls {
            seed,
            random: Random(seed),
            aside: None,
            runs_left: 1,
        }
    }

    /// Chooses which of these runs next, after `current`.
    fn choose(&mut self, runnable: &[TaskId], current: Option<TaskId>, waits: bool) -> Option<TaskId> {
        let current = current.filter(|current| runnable.contains(current));
        if self.aside.is_none()
            && let Some(current) = current
            && runnable.len() > 1
            && self.random.below(STALL_ONE_IN) == 0
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
