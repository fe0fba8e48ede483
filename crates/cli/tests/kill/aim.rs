//! Aimed kills: a process kills itself, as by `kill -9`, right before a chosen step in a chosen source file, or a
//! chosen number of steps after a change has reached a phase.

use pmem::watched::{ObservedStep, Observer, StepKind};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use wollemi::IndexKind;

/// Where a process kills itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Counts the stores, write-backs and fences whose source file has this in its path, or all of them once a change
    /// has reached the phase of this name.
    pub part: &'static str,
    /// The number of the step, from 1.
    pub nth: u64,
}

/// Phases of every merge.
const MERGE: &[&str] = &[
    "merge: front becomes middle",
    "merge: metadata",
    "merge: flip",
    "merge: collection",
    "merge: log emptied",
    "dptree/src/merge/write.rs",
    "dptree/src/merge/mod.rs",
    "dptree/src/log/",
    "dptree/src/base/",
];

/// Phases of some merges.
const MERGE_RARE: &[&str] = &[
    "merge: new leaf",
    "merge: leaf split",
    "merge: leaf without pairs",
    "merge: leaves consolidated",
    "merge: removal",
    ALLOCATION,
];

/// Allocation: a pool that has all of its pages no longer passes through it.
const ALLOCATION: &str = "heap/src/";

impl Aim {
    /// Returns the parts that random kills rarely hit, and that every child reaches: changes of structure, merges.
    pub fn parts(kind: IndexKind) -> &'static [&'static str] {
        match kind {
            IndexKind::DpTree => MERGE,
            _ => &["grow.rs", "shrink.rs", "build.rs"],
        }
    }

    /// Returns the parts that not every child reaches.
    fn rare(kind: IndexKind) -> &'static [&'static str] {
        match kind {
            IndexKind::DpTree => MERGE_RARE,
            _ => &[ALLOCATION],
        }
    }

    /// Returns all parts.
    pub fn all(kind: IndexKind) -> Vec<&'static str> {
        [Aim::parts(kind), Aim::rare(kind)].concat()
    }

    /// Returns the part of this name.
    pub fn named(kind: IndexKind, name: &str) -> Option<&'static str> {
        Aim::all(kind).into_iter().find(|&part| part == name)
    }
}

/// Watches for the aimed step.
#[derive(Debug)]
pub struct Trigger {
    part: &'static str,
    /// Whether a change has reached the phase of this name.
    in_phase: AtomicBool,
    left: AtomicU64,
}

impl Trigger {
    /// Creates the trigger for this aim; without one it never fires.
    pub fn new(aim: Option<Aim>) -> Trigger {
        let aim = aim.unwrap_or(Aim {
            part: "no such file",
            nth: u64::MAX,
        });
        Trigger {
            part: aim.part,
            in_phase: AtomicBool::new(false),
            left: AtomicU64::new(aim.nth),
        }
    }
}

impl Observer for Trigger {
    fn before(&self, step: &ObservedStep) {
        let persists = matches!(
            step.what,
            StepKind::WriteBack(_) | StepKind::WriteBackJoined(_) | StepKind::Fence(_)
        );
        if (persists || step.stores())
            && (self.in_phase.load(Relaxed) || step.site.file().contains(self.part))
            && self.left.fetch_sub(1, Relaxed) == 1
        {
            // On failure the process continues, which the parent notices.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }

    fn comes_to(&self, step: &'static str) {
        if step == self.part {
            self.in_phase.store(true, Relaxed);
        }
    }
}
