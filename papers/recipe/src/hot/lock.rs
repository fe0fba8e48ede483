//! Locks: write exclusion (ROWEX), taken from the child upward.

use super::walk::Step;
use super::write::Writer;
use art::{Missed, Tries, damaged, same_object};
use pmem::{Fault, Link, Locked, Media, Obsolete};

/// The root or a node, locked, and one of its slots.
#[derive(Debug)]
pub(super) struct Parent<'a, M: Media> {
    pub(super) step: Step<'a>,
    pub(super) locked: Locked<'a, M>,
}

impl<'a, M: Media> Writer<'a, M> {
    /// Takes the lock of the root or node that a walk has passed. Its first holder in a generation clears the marks
    /// that a crash has left.
    pub(super) fn lock(&self, step: &Step<'a>) -> Result<Locked<'a, M>, Obsolete> {
        let media = self.media();
        let mut locked = step.lock.lock(media, self.heap.generation())?;
        if locked.is_stale() {
            step.slots.iter().for_each(|slot| _ = slot.settle(media));
            locked.repaired();
        }
        Ok(locked)
    }

    /// Locks the parent of `child`. The caller holds the child's lock and the child is not obsolete, so it hangs
    /// somewhere on the key's path and stays there until the caller changes that; `step` is where the walk met it.
    pub(super) fn lock_parent(&self, child: Link, step: &Step<'a>) -> Result<Parent<'a, M>, Fault> {
        let mut tries = Tries::default();
        let mut step = *step;
        loop {
            // After removals of nodes on the path, the node that was above when the walk passed may be one that this
            // thread has locked, and would wait for forever.
            if same_object(step.link, child)
                && let Ok(locked) = self.lock(&step)
                && same_object(step.slot().load(self.media()), child)
            {
                return Ok(Parent { step, locked });
            }
            // The parent was replaced, or the child has another one by now.
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
