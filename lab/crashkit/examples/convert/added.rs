//! The code that the conversion adds to the tree, by [`Step`].

use super::node::{Record, Root, counts, follows};
use super::step::{Mends, Step};
use super::tree::{At, BLink, KIND, RECORD, ROOT, damaged, node_at, object};
use heap::{Access, Error, Guard, Trace, footprint};
use pmem::{
    CommitWord, Fault, Flushed, GenerationLock, Link, Locked, Media, PSlot, PersistBatch, Persistent, Tag,
};

impl<M: Media, S: Step> BLink<M, S> {
    // Ordered stores (steps 1 and 2).

    /// Makes what the batch has written durable before the next store.
    pub fn persist(&self, batch: PersistBatch<'_, '_, M>) {
        if S::PERSISTS {
            batch.fence();
        }
    }

    /// Stores `value`: the store by which a change of a node takes effect.
    pub fn store(&self, word: &CommitWord, value: u64) {
        self.media().site("blink: state");
        let stored = word.publish::<S::Marks, M>(self.media(), value);
        if S::PERSISTS {
            let _durable = stored.commit();
        }
    }

    /// Stores a link to a new object: the store by which a change takes effect.
    pub fn swing<'t, 'e, T: Persistent>(
        &'t self,
        slot: &'t PSlot,
        new: Flushed<'e, '_, T>,
        tag: Tag,
        batch: PersistBatch<'e, 't, M>,
    ) {
        if S::PERSISTS {
            let new = new.persisted(&batch.fence());
            let _durable = slot.publish::<S::Marks, M, T>(self.media(), new, tag).commit();
        } else {
            let _ = slot.place::<S::Marks, M, T>(new, tag, &batch);
        }
    }

    // Half a split (step 3).

    /// Takes a lock that guards only what no crash leaves half done.
    pub fn take<'t>(&'t self, lock: &'t GenerationLock) -> Result<Locked<'t, M>, Fault> {
        let held = lock.lock(self.media(), self.heap.generation());
        let mut held =
            held.map_err(|_| damaged("a lock of the tree belongs to a replaced object", Link::NULL))?;
        if held.is_stale() {
            held.repaired();
        }
        Ok(held)
    }

    /// Takes a node's lock. Its first holder after a restart mends the node.
    pub fn lock<'t>(&'t self, at: At<'t>) -> Result<Locked<'t, M>, Fault> {
        let held = at.node.lock.lock(self.media(), self.heap.generation());
        self.locked(
            at,
            held.map_err(|_| damaged("a node of the tree was replaced", at.link))?,
        )
    }

    fn locked<'t>(&'t self, at: At<'t>, mut held: Locked<'t, M>) -> Result<Locked<'t, M>, Fault> {
        if held.is_stale() {
            if S::MENDS != Mends::Never {
                self.mend(at)?;
            }
            held.repaired();
        }
        Ok(held)
    }

    /// Clears marks, and completes a split that stopped before its second store. The caller holds the lock, so what it
    /// reads is current.
    fn mend(&self, at: At<'_>) -> Result<(), Fault> {
        let (media, node) = (self.media(), at.node);
        let (state, next) = (node.state.settle(media), node.next.settle(media));
        for (_, entry) in node.sorted(media, state) {
            node.entries[entry].slot.settle(media);
        }
        if !next.is_null() {
            let own = node.below(media, state, node_at(&self.heap, next)?.low);
            if own != counts(state) {
                self.store(&node.state, follows(state, own));
            }
        }
        Ok(())
    }

    /// Completes half a split that a writer meets on its way from a node to its sibling.
    pub fn help(&self, at: At<'_>, next: At<'_>) -> Result<(), Error> {
        let (media, node) = (self.media(), at.node);
        if S::MENDS == Mends::Never {
            return Ok(());
        }
        let state = node.state.load(media);
        let own = node.below(media, state, next.low);
        if own != counts(state) {
            match S::MENDS {
                // A splitter in progress completes it before the lock is free; taking the lock mends what a crash has
                // left.
                Mends::LookingAgain | Mends::Never => drop(self.lock(at)?),
                Mends::AsSeenBefore => {
                    let _held = self.lock(at)?;
                    self.store(&node.state, follows(state, own));
                }
                Mends::PassingBy => {
                    if let Ok(Some(held)) = node.lock.try_lock(media, self.heap.generation()) {
                        drop(self.locked(at, held)?);
                    }
                }
            }
        }
        self.link_up(next)
    }

    // Memory (step 4).

    /// Retires a record, which the caller has unlinked under the guard.
    pub fn retire(&self, record: Link, guard: &Guard) {
        if let (true, Some(offset), Some(len)) = (S::RETIRES, record.offset(), footprint::<Record>(0)) {
            // SAFETY: the caller has unlinked the record, alone, under the node's lock.
            unsafe { self.heap.retire(guard, offset, len) };
        }
    }
}

/// Reports live objects to the heap. The left sibling reports a node; the first node of the level above, or for the top
/// level the root, reports the first of a level.
pub struct Tracer;

// SAFETY: each record is reported by the leaf in which it counts, each node as said above: all that readers reach.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        let media = heap.media();
        if link.tag() == RECORD {
            object::<M, Record>(heap, link, RECORD)?;
            return Ok(size_of::<Record>() as u64);
        }
        if link.tag() == ROOT {
            children.push(object::<M, Root>(heap, link, ROOT)?.top.load(media));
            return Ok(size_of::<Root>() as u64);
        }
        let at = node_at(heap, link)?;
        let entries = at.node.state.read_stable(media, |state| {
            let sorted = at.node.sorted(media, state).into_iter();
            sorted
                .map(|(key, entry)| (key, at.node.entries[entry].slot.load(media)))
                .collect::<Vec<_>>()
        });
        // Loaded last: it leads to the entries that a split has moved out meanwhile.
        let next = at.node.next.load(media);
        // Entries that half a split has left belong to the sibling, which reports them.
        let high = match next.is_null() {
            true => None,
            false => Some(node_at(heap, next)?.low),
        };
        let own = entries
            .into_iter()
            .filter(|(key, _)| high.is_none_or(|high| *key < high));
        let reported = match (at.level, at.low) {
            (0, _) => usize::MAX,
            (_, 0) => 1,
            _ => 0,
        };
        children.extend(own.take(reported).map(|(_, link)| link));
        children.extend([next].into_iter().filter(|next| !next.is_null()));
        Ok(footprint::<super::node::Node>(0).unwrap_or_default() as u64)
    }
}
