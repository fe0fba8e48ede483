//! Kills amid a commit: a process kills itself at one of the first stores, of any thread, after a commit was published.

use super::Random;
use pmem::watched::{ObservedStep, Observer};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Where a process kills itself.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// The number of a commit of several keys, from 1.
    pub commits: u64,
    /// The number of a store after that commit was published, from 1; those of all threads count.
    pub stores: u64,
}

impl Aim {
    pub const NOWHERE: Aim = Aim {
        commits: u64::MAX,
        stores: u64::MAX,
    };

    pub fn random(random: &mut Random) -> Aim {
        Aim {
            commits: 1 + random.below(200),
            stores: 1 + random.below(24),
        }
    }
}

/// Watches for the aimed store.
#[derive(Debug)]
pub struct Trigger {
    commits: AtomicU64,
    stores: AtomicU64,
}

impl Trigger {
    pub fn new(aim: Aim) -> Trigger {
        Trigger {
            commits: AtomicU64::new(aim.commits),
            stores: AtomicU64::new(aim.stores),
        }
    }
}

impl Observer for Trigger {
    fn before(&self, step: &ObservedStep) {
        let has_come = self.commits.load(SeqCst) == 0;
        if has_come && step.stores() && self.stores.fetch_sub(1, SeqCst) == 1 {
            // On failure the process continues, which the parent notices.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }

    fn comes_to(&self, step: &'static str) {
        if step == "batch: changes made" {
            let one_less = |left: u64| left.checked_sub(1);
            let _ = self.commits.fetch_update(SeqCst, SeqCst, one_less);
        }
    }
}
