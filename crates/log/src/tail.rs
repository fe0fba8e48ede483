//! The log's end: the segment of the last record, and those made ready after it.

use crate::geometry::Geometry;
use crate::{Lsn, Mapping};
use std::collections::VecDeque;

/// Minimum growth of the log between two syncs, in bytes, for its pages to be mapped and unmapped in bulk.
pub(crate) const BULK: u64 = 256 << 10;

/// Bytes to map in one step.
pub(crate) const STEP: u64 = 128 << 10;

/// The end of the log.
pub(crate) struct Tail<M> {
    /// The end of the last record.
    pub(crate) end: Lsn,
    pub(crate) incarnation: u32,
    /// The segment of the last record; `None` before the first append since the opening, if that record goes into
    /// another segment.
    pub(crate) current: Option<(u64, M)>,
    /// The segments made ready that follow it.
    ready: VecDeque<Ready<M>>,
    /// The number of the next segment to make.
    pub(crate) next: u64,
    /// Mappings of full segments, to be unmapped by a thread that holds no lock.
    full: Vec<M>,
    /// Position up to which the mapping was prepared for stores.
    pub(crate) prepared: Lsn,
    /// The end of the last record that needs no segment after the full ones.
    full_end: End,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

/// A segment made ready.
struct Ready<M> {
    number: u64,
    mapping: M,
    /// Whether the whole mapping was prepared for stores.
    is_prepared: bool,
}

/// The end of a record, and the number of records appended up to there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) lsn: Lsn,
    pub(crate) records: u64,
}

impl<M: Mapping> Tail<M> {
    pub(crate) fn new(end: Lsn, incarnation: u32, current: Option<(u64, M)>, next: u64) -> Tail<M> {
        Tail {
            end,
            incarnation,
            current,
            ready: VecDeque::new(),
            next,
            full: Vec::new(),
            prepared: Lsn(0),
            full_end: End { lsn: end, records: 0 },
            records: 0,
            bytes: 0,
        }
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    pub(crate) fn end(&self) -> Lsn {
        self.end
    }

    /// The number of the next segment to make.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether no segment is ready after the current one.
    pub(crate) fn lacks_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// Adds a segment made ready; `is_prepared`: the whole mapping was prepared for stores.
    pub(crate) fn add_ready(&mut self, number: u64, mapping: M, is_prepared: bool) {
        self.ready.push_back(Ready {
            number,
            mapping,
            is_prepared,
        });
        self.next = number + 1;
    }

    /// The end of the last record that needs no segment after the full ones.
    pub(crate) fn full_end(&self) -> End {
        self.full_end
    }

    pub(crate) fn take_full(&mut self) -> Vec<M> {
        std::mem::take(&mut self.full)
    }

    /// Numbers of records and bytes appended.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.records, self.bytes)
    }

    /// Prepares the mapping for the next stores, of a log that grows by [`BULK`] between two syncs.
    pub(crate) fn prepare_stores(&mut self, geometry: Geometry) {
        let Some((number, mapping)) = &mut self.current else {
            return;
        };
        let last = geometry.start(*number + 1);
        if self.end < last && self.prepared < last && self.end.0 + STEP / 2 > self.prepared.0 {
            mapping.prepare_stores(geometry.offset(self.end), STEP);
            self.prepared = last.min(Lsn(self.end.0 + STEP));
        }
    }

    /// Prepares the mapping for a sync of [`BULK`] or more.
    pub(crate) fn prepare_sync(&mut self) {
        if let Some((_, mapping)) = &mut self.current {
            mapping.prepare_sync();
        }
        self.prepared = Lsn(0);
    }

    /// The mapping of a segment, which is the current one or a later one that is ready.
    pub(crate) fn enter(&mut self, segment: u64, geometry: Geometry) -> Option<&mut M> {
        while self.current.as_ref().is_none_or(|(number, _)| *number < segment) {
            let next = self.ready.pop_front()?;
            self.full_end = End {
                lsn: self.end,
                records: self.records,
            };
            self.prepared = match next.is_prepared {
                true => geometry.start(next.number + 1),
                false => Lsn(0),
            };
            if let Some((_, full)) = self.current.replace((next.number, next.mapping)) {
                self.full.push(full);
            }
        }
        self.current.as_mut().map(|(_, mapping)| mapping)
    }
}
