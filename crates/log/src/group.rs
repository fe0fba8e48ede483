//! The threads that wait for a sync, in groups. The module `durable` has the protocol (G1 to G3).

use crate::lock::lock;
use crate::{Histogram, LogStats, Lsn};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The waiting threads, and their counts.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) state: Mutex<State>,
    pub(crate) turns: [Condvar; 2],
}

#[derive(Default)]
pub(crate) struct State {
    /// The position up to which the leader syncs, if there is one.
    pub(crate) syncing: Option<Lsn>,
    /// The index of the condition variable on which the leader's group waits.
    pub(crate) turn: usize,
    /// Records appended up to the position that the last successful leader synced.
    pub(crate) records: u64,
    pub(crate) waits: u64,
    pub(crate) syncs: u64,
    pub(crate) sync_time: Duration,
    pub(crate) sync_micros: Histogram,
    pub(crate) group_sizes: Histogram,
}

impl Group {
    pub(crate) fn count(&self, stats: &mut LogStats) {
        let state = lock(&self.state);
        stats.waits = state.waits;
        stats.synced = state.records;
        stats.syncs = state.syncs;
        stats.sync_time = state.sync_time;
        stats.sync_micros = state.sync_micros;
        stats.group_sizes = state.group_sizes;
    }

    /// Wakes all waiting threads. The caller holds the lock of the state.
    pub(crate) fn wake_all(&self) {
        self.turns.iter().for_each(Condvar::notify_all);
    }

    pub(crate) fn wait<'g>(&'g self, turn: usize, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.turns[turn]
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}
