//! Appending: reserves space and copies the record under one short lock.
//!
//! A1 A record begins where the last one ended, or in the next segment if the rest of this one is too short for a
//!    fragment; and `appended` advances only when all of the record has been stored.
//! A2 All segments that a record reaches are ready before its first byte is stored, so that a failed append has
//!    changed nothing.
//! A3 The holder of the tail's lock never waits for the disk.

use crate::change::{Body, SMALL};
use crate::fragment::{self, Key, Kind, Part};
use crate::geometry::{Geometry, Plan};
use crate::hash::hash;
use crate::lock::lock;
use crate::log::MappingOf;
use crate::tail::{BULK, STEP, Tail};
use crate::{Change, Disk, Error, Log, Lsn, Mapping};
use std::sync::atomic::Ordering;
use xxhash_rust::xxh3::Xxh3;

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

    /// Like [`append`](Log::append), but the log may exceed its limit: for records that an opening must write before a
    /// checkpoint can be taken, and for records that undo others.
    ///
    /// # Errors
    ///
    /// As for [`append`](Log::append), except for [`Error::LogFull`].
    pub fn append_beyond_limit(&self, changes: &[Change<'_>]) -> Result<Lsn, Error> {
        self.append_changes(changes, u64::MAX)
    }

    #[inline]
    fn append_changes(&self, changes: &[Change<'_>], limit: u64) -> Result<Lsn, Error> {
        let body = Body::new(changes)?;
        // The smallest buffer that fits: zeroing the largest would take as long as copying a short record.
        match fragment::HEADER as u64 + body.len() {
            0..=64 => self.append_small(&body, &mut [0; 64], limit),
            65..=192 => self.append_small(&body, &mut [0; 192], limit),
            193..=MAX_SMALL => self.append_small(&body, &mut [0; MAX_SMALL as usize], limit),
            _ => self.append_large(&body, limit),
        }
    }

    fn append_large(&self, body: &Body<'_>, limit: u64) -> Result<Lsn, Error> {
        self.check_spread(body)?;
        self.append_source(Source::new(body), Kind::Changes, None, limit)
    }

    /// Refuses a record that does not fit below the limit. (A small one fits, since the limit is at least four
    /// segments.)
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
        let body = Body::new(&[])?;
        self.append_source(Source::new(&body), Kind::Opened, Some(incarnation), u64::MAX)
    }

    /// Appends a small record, which is gathered in `small`.
    fn append_small(&self, body: &Body<'_>, small: &mut [u8], limit: u64) -> Result<Lsn, Error> {
        let len = fragment::HEADER + body.len() as usize;
        let bytes = &mut small[..len];
        body.gather(&mut bytes[fragment::HEADER..]);
        let hash = hash(&bytes[fragment::HEADER..]);
        // The usual case: it fits in the current segment.
        let mut guard = lock(&self.tail);
        let tail = &mut *guard;
        let start = self.geometry.place(tail.end);
        let (segment, offset) = (self.geometry.segment(start), self.geometry.offset(start));
        let end = Lsn(start.0 + fragment::footprint(body.len()));
        if let Some((current, mapping)) = &mut tail.current
            && *current == segment
            && body.len() <= self.geometry.capacity(start)
        {
            self.check_failed()?;
            self.check_limit(tail.end, end, limit)?;
            let durable = self.ends.durable();
            let header = fragment::Header {
                len: body.len() as u32,
                part: Part::Whole,
                kind: Kind::Changes,
                behind: behind(start, durable),
                incarnation: tail.incarnation,
            };
            bytes[..fragment::HEADER].copy_from_slice(&self.key.encode(start, header, hash));
            mapping.store(offset, bytes);
            self.finish(tail, start, end, durable);
            return Ok(end);
        }
        drop(guard);
        self.append_source(Source::Flat { bytes, hash }, Kind::Changes, None, limit)
    }

    /// Returns an error if a record that reaches from the log's end to `to` exceeds the limit.
    fn check_limit(&self, end: Lsn, to: Lsn, limit: u64) -> Result<(), Error> {
        if to.0 > self.kept.start(self.geometry).0.saturating_add(limit) {
            self.counters.at_limit.fetch_add(1, Ordering::Relaxed);
            let needed = to.0 - end.0;
            return Err(Error::LogFull { limit, needed });
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
            self.check_limit(tail.end, plan.end, limit)?;
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
        if end.0 - durable.0 >= BULK && end.0 + STEP / 2 > tail.prepared.0 {
            tail.prepare_stores(self.geometry);
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
    /// The body in pieces, and its hash, if its length fits the field of a single fragment.
    Pieces { body: &'s Body<'s>, hash: Option<u64> },
}

impl<'s> Source<'s> {
    /// Hashes a body that may fit into a single fragment, before the tail's lock is taken.
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
