//! Locks: write exclusion (ROWEX), from the child upward.

use super::walk::Step;
use super::write::Writer;
use art::{Missed, Tries, damaged, same_object};
use pmem::{Fault, Link, Locked, Media, Obsolete};

/// The root or a node, locked, and its slot from which something hangs.
#[derive(Debug)]
pub(super) struct Parent<'a, M: Media> {
    pub(super) step: Step<'a>,
    pub(super) locked: Locked<'a, M>,
}

impl<'a, M: Media> Writer<'a, M> {
    /// Takes the lock of what a walk has passed. Its first holder in a generation takes away the marks that a crash has
    /// left.
    pub(super) fn lock(&self, step: &Step<'a>) -> Result<Locked<'a, M>, Obsolete> {
        let media = self.media();
        let mut locked = step.lock.lock(media, self.heap.generation())?;
        if locked.is_stale() {
            step.slots.iter().for_each(|slot| _ = slot.settle(media));
            locked.repaired();
        }
        Ok(locked)
    }

    /// Locks what `child` hangs from. The caller holds the child's lock and the child is not obsolete, so it hangs
    /// somewhere on the key's way and stays there until the caller changes that; `step` is where it was met.
    pub(super) fn lock_parent(&self, child: Link, step: &Step<'a>) -> Result<Parent<'a, M>, Fault> {
        let mut tries = Tries::default();
        let mut step = *step;
        loop {
            // Where nodes went from the way, what was once above may be a node that the thread has locked.
            if same_object(step.link, child)
                && let Ok(locked) = self.lock(&step)
                && same_object(step.slot().load(self.media()), child)
            {
                return Ok(Parent { step, locked });
            }
            // It was replaced, or the child hangs from another one by now.
            loop {
                if !tries.go_on(Missed::Lost, self.media()) {
                    return Err(damaged("node without a parent", child));
                }
                let path = self.index.walk(self.key)?;
                if let Some(parent) = path.steps.iter().find(|step| same_object(step.link, child)) {
                    step = *parent;
                    break;
                }
            }
        }
    }
}
