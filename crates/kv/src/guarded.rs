//! Indexes as maps have them: each write comes through the database's [`Gate`], and what it replaces is kept for the
//! snapshots that there are, and told to who watches.
//!
//! Reads go straight to the index.

use crate::befores::Befores;
use crate::gate::{Closed, Gate};
use crate::watch::Watches;
use heap::{Guard, Heap};
use index::{Action, Direction, Edit, Edits, Error, Faults, Index, Merges, Still, Value, Visit};
use pmem::Media;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// What the maps of a database have in common.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub gate: Gate,
    pub befores: Befores,
    pub watches: Watches,
}

/// An index behind the gate.
pub(crate) trait MapIndex: Index {
    /// Writes, for who has closed the gate.
    fn write_alone(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error>;

    /// Closes the database's gate.
    fn close_gate(&self) -> Result<Closed<'_>, Error>;

    /// The database's.
    fn traffic(&self) -> &Arc<Traffic>;
}

/// An index behind the gate, by its type.
pub(crate) struct Guarded<I, M: Media> {
    pub index: I,
    pub name: Arc<str>,
    pub traffic: Arc<Traffic>,
    pub heap: Heap<M>,
}

impl<I: Index, M: Media> Guarded<I, M> {
    fn try_write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let media = self.heap.media();
        let _pass = self.traffic.gate.enter(media)?;
        let _lane = self.traffic.watches.lane(key, media);
        // Pinned, so that the heap does not wait for recovery, which may wait for a guard of who waits at the gate.
        let _guard = heap::pin();
        self.write_alone(key, edit)
    }
}

impl<I: Index, M: Media> Guarded<I, M> {
    /// What follows a write, or some, that have changed something.
    fn wrote(&self) {
        self.index.rest();
        // A batch has set apart what it counts on.
        if self.heap.has_too_much() {
            self.heap.give_back_some();
        }
    }
}

/// So many keys of several come with one pass of the gate and under one guard: for no more do snapshots and batches wait, and what
/// these replace can then serve others.
const PASS: usize = 64;

/// Edits of several keys, on their way.
struct Group<'e> {
    edits: &'e mut dyn Edits,
    /// The first of those behind the present pass of the gate.
    first: usize,
    /// How many are done.
    done: usize,
    changed: bool,
    /// Whether the others are to be left out.
    ended: bool,
}

impl Group<'_> {
    fn end(&mut self, done: Result<Action, Error>) -> ControlFlow<()> {
        self.changed |= matches!(done, Ok(Action::Put | Action::Remove));
        let flow = self.edits.done(self.done, done);
        self.done += 1;
        self.ended = flow.is_break();
        flow
    }
}

impl Edits for Group<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        self.edits.edit(self.first + i)
    }

    fn done(&mut self, _: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        match done {
            // To be tried again without the guard, which keeps back what the others have retired.
            Err(Error::Heap(heap::Error::Full { .. })) => ControlFlow::Break(()),
            done => self.end(done),
        }
    }
}

impl<I: Index, M: Media> MapIndex for Guarded<I, M> {
    fn write_alone(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let Traffic { befores, watches, .. } = &*self.traffic;
        let action = if befores.are_kept() {
            self.index
                .write(key, &mut befores.keeping(&self.name, key, edit))?
        } else {
            self.index.write(key, edit)?
        };
        if action != Action::Keep && watches.are_there() {
            watches.tell(&self.name, key, action, edit);
        }
        Ok(action)
    }

    fn close_gate(&self) -> Result<Closed<'_>, Error> {
        self.traffic.gate.close(self.heap.media())
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

impl<I: Index, M: Media> Index for Guarded<I, M> {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        self.index.get(key, guard)
    }

    fn multi_get<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        self.index.multi_get(keys, guard, found)
    }

    fn fetch(&self, keys: &[&[u8]], guard: &Guard) {
        self.index.fetch(keys, guard);
    }

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let action = match self.try_write(key, edit) {
            Err(Error::Heap(heap::Error::Full { .. })) if self.heap.wait_for_room() => {
                self.try_write(key, edit)?
            }
            done => done?,
        };
        if action != Action::Keep {
            self.wrote();
        }
        Ok(action)
    }

    fn write_many(&self, keys: &[&[u8]], edits: &mut dyn Edits) {
        let Traffic {
            gate,
            befores,
            watches,
        } = &*self.traffic;
        let mut group = Group {
            edits,
            first: 0,
            done: 0,
            changed: false,
            ended: false,
        };
        while group.done < keys.len() && !group.ended {
            let end = keys.len().min(group.done + PASS);
            // While a pass is held, no snapshot and no watch begins.
            if let Ok(_pass) = gate.enter(self.heap.media())
                && !befores.are_kept()
                && !watches.are_there()
            {
                let _guard = heap::pin();
                group.first = group.done;
                self.index.write_many(&keys[group.first..end], &mut group);
            }
            // What is noted or told, and what failed for want of room or may not be, goes by itself.
            if group.done < end && !group.ended {
                let done = self.write(keys[group.done], group.edits.edit(group.done));
                let _ = group.end(done);
            }
        }
        if group.changed {
            self.wrote();
        }
    }

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        self.index.scan(lower, upper, direction, guard, visit)
    }

    fn check(&self) -> Result<Faults, Error> {
        self.index.check()
    }

    fn settle(&self) -> Result<(), Error> {
        self.index.settle()
    }

    fn hold_still(&self) -> Box<dyn Still + '_> {
        self.index.hold_still()
    }

    fn merges(&self) -> Option<Merges> {
        self.index.merges()
    }

    fn rest(&self) {
        self.index.rest();
    }
}
