//! Appending: reserves space and copies the record under one short lock.
//!
//! A1 A record begins where the last one ended, and `appended` advances only when all of it has been stored.
//! A2 All segments that a record reaches are ready before its first byte is stored, so that a failed append has
//!    changed nothing.
//! A3 The holder of the tail's lock never waits for the disk.

use crate::change::{Body, SMALL};
use crate::fragment::{self, Key, Kind, Part};
use crate::log::{MappingOf, lock};
use crate::lsn::{Geometry, Plan};
use crate::{Change, Disk, Error, Log, Lsn, Mapping};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Minimum growth of the log between two syncs, in bytes, for its pages to be mapped and unmapped in bulk.
pub(crate) const BULK: u64 = 256 << 10;

/// Bytes to map in one step.
const STEP: u64 = 128 << 10;

/// The end of the log.
pub(crate) struct Tail<M> {
    /// The end of the last record.
    end: Lsn,
    incarnation: u32,
    /// The segment of the last record; `None` if the next one goes into a segment that is not entered yet.
    current: Option<(u64, M)>,
    /// The segments made ready that follow it.
    ready: VecDeque<Ready<M>>,
    /// The number of the next segment to make.
    next: u64,
    /// Mappings of full segments, to be unmapped by a thread that holds no lock.
    full: Vec<M>,
    /// Position up to which the mapping was prepared for stores.
    expected: Lsn,
    /// The end of the last record that needs no segment after the full ones.
    full_end: End,
    records: u64,
    bytes: u64,
}

/// A segment made ready.
struct Ready<M> {
    number: u64,
    mapping: M,
    /// Whether the whole mapping was prepared for stores.
    is_expected: bool,
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
            expected: Lsn(0),
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

    /// Adds a segment made ready; `is_expected`: the whole mapping was prepared for stores.
    pub(crate) fn add_ready(&mut self, number: u64, mapping: M, is_expected: bool) {
        self.ready.push_back(Ready {
            number,
            mapping,
            is_expected,
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
    fn expect(&mut self, geometry: Geometry) {
        let Some((number, mapping)) = &mut self.current else {
            return;
        };
        let last = geometry.start(*number + 1);
        if self.end < last && self.expected < last && self.end.0 + STEP / 2 > self.expected.0 {
            mapping.expect(geometry.offset(self.end), STEP);
            self.expected = last.min(Lsn(self.end.0 + STEP));
        }
    }

    /// Prepares the mapping for a sync of [`BULK`] or more.
    pub(crate) fn prepare_sync(&mut self) {
        if let Some((_, mapping)) = &mut self.current {
            mapping.let_go();
        }
        self.expected = Lsn(0);
    }

    /// The mapping of a segment, which is the current one or a later one that is ready.
    fn enter(&mut self, segment: u64, geometry: Geometry) -> Option<&mut M> {
        while self.current.as_ref().is_none_or(|(number, _)| *number < segment) {
            let next = self.ready.pop_front()?;
            self.full_end = End {
                lsn: self.end,
                records: self.records,
            };
            self.expected = match next.is_expected {
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

impl<D: Disk> Log<D> {
    /// Appends a record and returns its end. Its changes take effect together or not at all. When this returns, the
    /// record survives the end of the process; [`wait_durable`](Log::wait_durable) with the returned position ensures
    /// that it survives a power loss. Waits for the disk only if the next segment was not prepared ahead.
    ///
    /// # Errors
    ///
    /// See [`Error`]; nothing is appended then.
    pub fn append(&self, changes: &[Change<'_>]) -> Result<Lsn, Error> {
        self.append_changes(changes, self.options.limit)
    }

    /// Like [`append`](Log::append), but ignores the limit: for records that an opening must write before a
    /// checkpoint can be taken, and for records that undo others.
    ///
    /// # Errors
    ///
    /// As for [`append`](Log::append).
    pub fn append_beyond_limit(&self, changes: &[Change<'_>]) -> Result<Lsn, Error> {
        self.append_changes(changes, u64::MAX)
    }

    #[inline]
    fn append_changes(&self, changes: &[Change<'_>], limit: u64) -> Result<Lsn, Error> {
        let body = Body::new(changes)?;
        if body.len() > SMALL as u64 {
            self.check_spread(&body)?;
        }
        self.append_record(&body, Kind::Changes, None, limit)
    }

    /// Refuses a record that does not fit below the limit. (A small one does, since the limit is at least four segments.)
    fn check_spread(&self, body: &Body<'_>) -> Result<(), Error> {
        let spread = self.geometry.plan(Lsn(0), body.len()).end.0;
        let max = self.options.limit - self.geometry.size();
        if spread > max {
            return Err(Error::TooLarge {
                bytes: body.len(),
                limit: self.options.limit,
                max,
            });
        }
        Ok(())
    }

    /// Appends the mark of an opening, which starts the given incarnation. Ignores the limit.
    pub(crate) fn append_opened(&self, incarnation: u32) -> Result<Lsn, Error> {
        self.append_record(&Body::new(&[])?, Kind::Opened, Some(incarnation), u64::MAX)
    }

    fn append_record(
        &self,
        body: &Body<'_>,
        kind: Kind,
        incarnation: Option<u32>,
        limit: u64,
    ) -> Result<Lsn, Error> {
        // The smallest buffer that fits: zeroing the largest would take as long as copying a short record.
        match fragment::HEADER as u64 + body.len() {
            0..=64 => self.append_by(body, &mut [0; 64], kind, incarnation, limit),
            65..=192 => self.append_by(body, &mut [0; 192], kind, incarnation, limit),
            193..=MAX_SMALL => self.append_by(body, &mut [0; MAX_SMALL as usize], kind, incarnation, limit),
            _ => self.append_source(Source::new(body), kind, incarnation, limit),
        }
    }

    /// Appends a small record, which is gathered in `small`.
    fn append_by<const N: usize>(
        &self,
        body: &Body<'_>,
        small: &mut [u8; N],
        kind: Kind,
        incarnation: Option<u32>,
        limit: u64,
    ) -> Result<Lsn, Error> {
        let len = fragment::HEADER + body.len() as usize;
        let bytes = &mut small[..len];
        body.gather(&mut bytes[fragment::HEADER..]);
        let hash = xxh3_64(&bytes[fragment::HEADER..]);
        // The usual case: it fits in the current segment.
        let mut guard = lock(&self.tail);
        let tail = &mut *guard;
        let start = self.geometry.place(tail.end);
        let (segment, offset) = (self.geometry.segment(start), self.geometry.offset(start));
        let end = Lsn(start.0 + fragment::footprint(body.len()));
        if let Some((current, mapping)) = &mut tail.current
            && *current == segment
            && body.len() <= self.geometry.capacity(start)
            && incarnation.is_none()
        {
            self.check_failed()?;
            self.check_limit(end, limit)?;
            let durable = self.ends.durable();
            let header = fragment::Header {
                len: body.len() as u32,
                part: Part::Whole,
                kind,
                behind: behind(start, durable),
                incarnation: tail.incarnation,
            };
            bytes[..fragment::HEADER].copy_from_slice(&self.key.encode(start, header, hash));
            mapping.store(offset, bytes);
            self.finish(tail, start, end, durable);
            return Ok(end);
        }
        drop(guard);
        self.append_source(Source::Flat { bytes, hash }, kind, incarnation, limit)
    }

    fn check_limit(&self, end: Lsn, limit: u64) -> Result<(), Error> {
        if end.0 > self.kept.start(self.geometry).0.saturating_add(limit) {
            self.counters.at_limit.fetch_add(1, Ordering::Relaxed);
            return Err(Error::LogFull { limit });
        }
        Ok(())
    }

    /// Appends a record that may reach into further segments.
    #[inline(never)]
    fn append_source(
        &self,
        source: Source<'_>,
        kind: Kind,
        incarnation: Option<u32>,
        limit: u64,
    ) -> Result<Lsn, Error> {
        loop {
            let mut tail = lock(&self.tail);
            self.check_failed()?;
            let plan = self.geometry.plan(tail.end, source.len());
            self.check_limit(plan.end, limit)?;
            if tail.next > plan.last_segment {
                tail.incarnation = incarnation.unwrap_or(tail.incarnation);
                return self.store(&mut tail, source, plan, kind);
            }
            drop(tail);
            self.counters.late.fetch_add(1, Ordering::Relaxed);
            self.make_ready(plan.last_segment)?;
        }
    }

    /// Stores a record at its planned place, and moves the log's end behind it.
    fn store(
        &self,
        tail: &mut Tail<MappingOf<D>>,
        source: Source<'_>,
        plan: Plan,
        kind: Kind,
    ) -> Result<Lsn, Error> {
        let durable = self.ends.durable();
        let mut pen = Pen {
            key: self.key,
            geometry: self.geometry,
            durable,
            kind,
            at: plan.start,
            left: source.len(),
            begun: false,
            tail,
        };
        pen.write(source)?;
        self.finish(tail, plan.start, plan.end, durable);
        Ok(plan.end)
    }

    /// Moves the log's end behind a record that is stored.
    #[inline]
    fn finish(&self, tail: &mut Tail<MappingOf<D>>, start: Lsn, end: Lsn, durable: Lsn) {
        tail.end = end;
        tail.records += 1;
        tail.bytes += end.0 - start.0;
        if end.0 - durable.0 >= BULK && end.0 + STEP / 2 > tail.expected.0 {
            tail.expect(self.geometry);
        }
        self.counters.records.store(tail.records, Ordering::Relaxed);
        self.ends.set_appended(end);
    }
}

/// Maximum bytes of a record that is gathered, with its header.
const MAX_SMALL: u64 = (fragment::HEADER + SMALL) as u64;

/// The distance from the durable end, as a fragment's header states it.
fn behind(at: Lsn, durable: Lsn) -> u32 {
    ((at.0 - durable.0) / 8) as u32
}

/// A record's bytes before they are stored.
enum Source<'s> {
    /// Room for the header, and the body.
    Flat { bytes: &'s mut [u8], hash: u64 },
    /// The body in pieces, and its hash, if it is short enough not to be divided.
    Pieces { body: &'s Body<'s>, hash: Option<u64> },
}

impl<'s> Source<'s> {
    /// Hashes what can be hashed before the lock is taken.
    fn new(body: &'s Body<'s>) -> Source<'s> {
        let hash = (body.len() <= fragment::MAX_BODY).then(|| {
            let mut hasher = Xxh3::new();
            body.each_piece(|piece| hasher.update(piece));
            hasher.digest()
        });
        Source::Pieces { body, hash }
    }

    fn len(&self) -> u64 {
        match self {
            Source::Flat { bytes, .. } => (bytes.len() - fragment::HEADER) as u64,
            Source::Pieces { body, .. } => body.len(),
        }
    }
}

/// Stores one record.
struct Pen<'t, M> {
    tail: &'t mut Tail<M>,
    key: Key,
    geometry: Geometry,
    durable: Lsn,
    kind: Kind,
    /// Position of the next fragment.
    at: Lsn,
    /// Bytes of the body that are in no finished fragment.
    left: u64,
    /// Whether a fragment is finished.
    begun: bool,
}

impl<M: Mapping> Pen<'_, M> {
    fn write(&mut self, source: Source<'_>) -> Result<(), Error> {
        let fits = self.left <= self.geometry.capacity(self.at);
        match source {
            Source::Flat { bytes, hash } if fits => {
                let header = self.header(self.left, hash);
                bytes[..fragment::HEADER].copy_from_slice(&header);
                let offset = self.geometry.offset(self.at);
                self.mapping()?.store(offset, bytes);
                Ok(())
            }
            Source::Flat { bytes, .. } => {
                let bytes = &bytes[fragment::HEADER..];
                self.divide(|put| put(bytes))
            }
            Source::Pieces {
                body,
                hash: Some(hash),
            } if fits => self.whole(body, hash),
            Source::Pieces { body, .. } => self.divide(|put| body.each_piece(put)),
        }
    }

    /// Stores a body, given in pieces, as one fragment.
    fn whole(&mut self, body: &Body<'_>, hash: u64) -> Result<(), Error> {
        let header = self.header(self.left, hash);
        let offset = self.geometry.offset(self.at);
        let mapping = self.mapping()?;
        let mut at = offset + fragment::HEADER as u64;
        body.each_piece(|piece| {
            mapping.store(at, piece);
            at += piece.len() as u64;
        });
        mapping.store(offset, &header);
        Ok(())
    }

    /// Stores a body, which `pieces` passes on in order, as one fragment in each of several segments.
    fn divide(&mut self, pieces: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Result<(), Error> {
        let (mut filled, mut hasher, mut result) = (0, Xxh3::new(), Ok(()));
        pieces(&mut |mut piece: &[u8]| {
            while !piece.is_empty() && result.is_ok() {
                let len = self.left.min(self.geometry.capacity(self.at));
                let now = piece.len().min((len - filled) as usize);
                let (part, rest) = piece.split_at(now);
                hasher.update(part);
                let offset = self.geometry.offset(self.at) + fragment::HEADER as u64 + filled;
                result = self.mapping().map(|mapping| mapping.store(offset, part));
                filled += now as u64;
                piece = rest;
                if filled == len && result.is_ok() {
                    result = self.finish(len, hasher.digest());
                    hasher.reset();
                    filled = 0;
                }
            }
        });
        result
    }

    /// Stores the header of a fragment whose body is stored, and advances behind it.
    fn finish(&mut self, len: u64, hash: u64) -> Result<(), Error> {
        let header = self.header(len, hash);
        let offset = self.geometry.offset(self.at);
        self.mapping()?.store(offset, &header);
        self.left -= len;
        self.begun = true;
        self.at = self.geometry.place(Lsn(self.at.0 + fragment::footprint(len)));
        Ok(())
    }

    fn header(&self, len: u64, hash: u64) -> [u8; fragment::HEADER] {
        let part = match (self.begun, len == self.left) {
            (false, true) => Part::Whole,
            (false, false) => Part::First,
            (true, false) => Part::Middle,
            (true, true) => Part::Last,
        };
        let header = fragment::Header {
            len: len as u32,
            part,
            kind: self.kind,
            behind: behind(self.at, self.durable),
            incarnation: self.tail.incarnation,
        };
        self.key.encode(self.at, header, hash)
    }

    fn mapping(&mut self) -> Result<&mut M, Error> {
        let segment = self.geometry.segment(self.at);
        // A2: the segment is ready.
        self.tail
            .enter(segment, self.geometry)
            .ok_or_else(|| Error::Failed("a segment is not ready".into()))
    }
}
