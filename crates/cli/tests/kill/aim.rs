//! Kills that are aimed: a process ends itself, as by `kill -9`, just before a chosen step of a chosen part of the
//! sources, or a chosen number of steps after a change has come to a phase of it.

use pmem::watched::{Step, Watch, What};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use wollemi::IndexKind;

/// Where a process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Steps whose source file has this in its path; or all steps once a change has come to the phase of this name.
    pub part: &'static str,
    /// The how-manieth of them, from 1.
    pub nth: u64,
}

/// What a merge comes to, each time.
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

/// What merges come to now and then.
const MERGE_SELDOM: &[&str] = &[
    "merge: new leaf",
    "merge: leaf split",
    "merge: leaf without pairs",
    "merge: leaves consolidated",
    "merge: removal",
    ALLOCATION,
];

/// Allocation: what a pool that has its pages comes to no more.
const ALLOCATION: &str = "heap/src/";

impl Aim {
    /// The parts that are rarely met by chance, and that any child comes to: changes of structure, merges.
    pub fn parts(kind: IndexKind) -> &'static [&'static str] {
        match kind {
            IndexKind::DpTree => MERGE,
            _ => &["grow.rs", "shrink.rs", "build.rs"],
        }
    }

    /// Those that not every child comes to.
    fn seldom(kind: IndexKind) -> &'static [&'static str] {
        match kind {
            IndexKind::DpTree => MERGE_SELDOM,
            _ => &[ALLOCATION],
        }
    }

    /// All of them.
    pub fn all(kind: IndexKind) -> Vec<&'static str> {
        [Aim::parts(kind), Aim::seldom(kind)].concat()
    }

    /// The part of this name.
    pub fn named(kind: IndexKind, name: &str) -> Option<&'static str> {
        Aim::all(kind).into_iter().find(|&part| part == name)
    }
}

/// What watches for the moment.
#[derive(Debug)]
pub struct Trigger {
    part: &'static str,
    /// A change has come to the phase of this name.
    in_phase: AtomicBool,
    left: AtomicU64,
}

impl Trigger {
    /// For this aim; without one, nothing ever happens.
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

impl Watch for Trigger {
    fn before(&self, step: &Step) {
        let persists = matches!(
            step.what,
            What::WriteBack(_) | What::WriteBackJoined(_) | What::Fence(_)
        );
        if (persists || step.stores())
            && (self.in_phase.load(Relaxed) || step.site.file().contains(self.part))
            && self.left.fetch_sub(1, Relaxed) == 1
        {
            // Nothing can be done about a failure but to work on, which the parent notices.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }

    fn comes_to(&self, step: &'static str) {
        if step == self.part {
            self.in_phase.store(true, Relaxed);
        }
    }
}
