//! Retirements before recovery has swept the pages of earlier generations.
//!
//! | stage | retired chunk of an old page | of a new page |
//! |---|---|---|
//! | before the trace | left to the sweep, unmarked: the trace cannot reach it | freed when its guards are gone |
//! | while the trace runs | kept in a list | kept in the same list |
//! | between trace and sweep | marked, and freed when its guards are gone | the same |
//! | afterwards | freed when its guards are gone | the same |
//!
//! [`retire`](crate::reclaim::retire) puts objects here and takes them out. The list exists while tracers run, which
//! wait for nothing. `docs/design.md` has the proof.
//!
//! I1 A retirement reads the stage under the lock that changes it. So an object retired before the trace was unlinked
//!    before any tracer reads a slot, and a mark was set before the sweep.

use crate::Error;
use crate::alloc::reuse::Site;
use crate::lock::lock;
use pmem::Offset;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// An object, its footprint, and the line that took it out of use.
pub(crate) type Retired = (Offset, usize, Site);

#[derive(Debug)]
pub(crate) enum Stage {
    BeforeTrace,
    Tracing(Vec<Retired>),
    /// With the error of the first object that could not be marked.
    Settling(Option<Error>),
    Swept,
}

/// The stage, and the objects kept until the trace has ended.
#[derive(Debug)]
pub(crate) struct Quarantine {
    pub(crate) stage: Mutex<Stage>,
    /// Whether the stage matters: false once retirement works as usual.
    pub(crate) is_active: AtomicBool,
}

impl Quarantine {
    /// `has_old`: whether there are pages of earlier generations.
    pub(crate) fn new(has_old: bool) -> Quarantine {
        Quarantine {
            stage: Mutex::new(if has_old { Stage::BeforeTrace } else { Stage::Swept }),
            is_active: AtomicBool::new(has_old),
        }
    }

    pub(crate) fn enter(&self, stage: Stage) -> Stage {
        std::mem::replace(&mut *lock(&self.stage), stage)
    }
}
