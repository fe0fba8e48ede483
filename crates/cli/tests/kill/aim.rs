//! Kills that are aimed: a process ends itself, as by `kill -9`, just before a chosen step of a chosen part of the
//! sources.

use pmem::watched::{Step, Watch, What};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wollemi::IndexKind;

/// Where a process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Steps whose source file has this in its path.
    pub part: &'static str,
    /// The how-manieth of them, from 1.
    pub nth: u64,
}

impl Aim {
    /// The parts that are rarely met by chance, and that any child comes to: changes of structure, merges.
    pub fn parts(kind: IndexKind) -> &'static [&'static str] {
        match kind {
            IndexKind::DpTree => &[
                "dptree/src/merge/write.rs",
                "dptree/src/merge/mod.rs",
                "dptree/src/log/",
                "dptree/src/base/",
            ],
            _ => &["grow.rs", "shrink.rs", "build.rs"],
        }
    }

    /// Allocation: what a pool that has its pages comes to no more.
    pub const SELDOM: &str = "heap/src/";

    /// The part of this name.
    pub fn named(kind: IndexKind, name: &str) -> Option<&'static str> {
        let parts = Aim::parts(kind).iter().copied();
        parts.chain([Aim::SELDOM]).find(|&part| part == name)
    }
}

/// What watches for the moment.
#[derive(Debug)]
pub struct Trigger {
    part: &'static str,
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
            left: AtomicU64::new(aim.nth),
        }
    }
}

impl Watch for Trigger {
    const LOADS: bool = false;

    fn before(&self, step: &Step) {
        let persists = matches!(
            step.what,
            What::WriteBack(_) | What::WriteBackJoined(_) | What::Fence(_)
        );
        if (persists || step.stores())
            && step.site.file().contains(self.part)
            && self.left.fetch_sub(1, Relaxed) == 1
        {
            // Nothing can be done about a failure but to work on, which the parent notices.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
