//! Reading records in order, beside appends.

use crate::change::Changes;
use crate::fragment::Kind;
use crate::kept::Pin;
use crate::lock::lock;
use crate::segment::{Header, damaged, log_name};
use crate::walk::{Step, Walk, Whole};
use crate::{Disk, DiskFile, Error, Log, Lsn};
use std::ops::Range;
use std::sync::Arc;

/// The records of a part of a log, in order: see [`Log::scan`].
pub struct Scan<'l, D: Disk> {
    log: &'l Log<D>,
    /// Keeps the segments.
    _pin: Pin<'l>,
    /// Records that begin below are skipped.
    from: Lsn,
    to: Lsn,
    /// The current segment, and the position in it.
    at: Option<(u64, Walk)>,
    /// The segment's bytes, as far as they are needed.
    bytes: Vec<u8>,
    /// The body of a record of several fragments.
    gathered: Vec<u8>,
}

/// A record of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    /// Its beginning.
    pub start: Lsn,
    /// Its end, as returned by [`Log::append`].
    pub end: Lsn,
    /// Its changes.
    pub changes: Changes<'a>,
}

/// The place of a record's body.
enum Place {
    InSegment(Range<usize>),
    Gathered,
}

impl<D: Disk> Log<D> {
    /// The records of `range`, in order; `range.start` is the beginning or the end of a record, `range.end` the end of
    /// one, at most [`appended`](Log::appended). Other threads may append meanwhile. Uses memory for one segment, and
    /// for the largest record that spans segments.
    ///
    /// # Errors
    ///
    /// [`Error::Position`] if the log begins after `range.start` or ends before `range.end`.
    pub fn scan(&self, range: Range<Lsn>) -> Result<Scan<'_, D>, Error> {
        if range.end > self.appended() {
            return Err(Error::Position {
                lsn: range.end,
                what: "beyond the end of the log",
            });
        }
        Ok(Scan {
            log: self,
            _pin: Pin::new(&self.kept, range.start)?,
            from: range.start,
            to: range.end,
            at: None,
            bytes: Vec::new(),
            gathered: Vec::new(),
        })
    }
}

impl<D: Disk> Scan<'_, D> {
    /// The next record, borrowed from the scan's buffer.
    ///
    /// # Errors
    ///
    /// Damage, a missing segment, or an error of the disk. The scan must not be used any further then.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the scan")]
    pub fn next(&mut self) -> Result<Option<LogRecord<'_>>, Error> {
        let Some((whole, place)) = self.find()? else {
            return Ok(None);
        };
        let body = match place {
            Place::InSegment(range) => &self.bytes[range],
            Place::Gathered => &self.gathered,
        };
        let Some(changes) = Changes::parse(body) else {
            let geometry = self.log.geometry;
            let file = log_name(geometry.segment(whole.start));
            return Err(damaged(
                &file,
                geometry.offset(whole.start),
                "invalid changes in a record",
            ));
        };
        Ok(Some(LogRecord {
            start: whole.start,
            end: whole.end,
            changes,
        }))
    }

    fn find(&mut self) -> Result<Option<(Whole, Place)>, Error> {
        let geometry = self.log.geometry;
        loop {
            let (number, walk) = match &mut self.at {
                None if self.from >= self.to => return Ok(None),
                None => {
                    self.begin()?;
                    continue;
                }
                Some((_, walk)) if walk.end >= self.to => return Ok(None),
                Some((number, walk)) => (number, walk),
            };
            let fragment = match walk.look(*number, &self.bytes) {
                Step::Fragment(fragment) => fragment,
                Step::SegmentEnd => {
                    *number += 1;
                    let number = *number;
                    self.read(number)?;
                    continue;
                }
                Step::Nothing => {
                    let offset = geometry.offset(walk.at);
                    return Err(damaged(
                        &log_name(*number),
                        offset,
                        "a record that was appended is missing",
                    ));
                }
            };
            // The walk does not compare the checksums of fragments before `from`. A record begins there, so a fragment
            // that reaches beyond has a damaged length.
            if fragment.lsn < self.from && geometry.place(fragment.end()) > geometry.place(self.from) {
                let offset = geometry.offset(fragment.lsn);
                return Err(damaged(&log_name(*number), offset, "the length of a record"));
            }
            let part = fragment.header.part;
            let offset = geometry.offset(fragment.lsn) as usize + crate::fragment::HEADER;
            let range = offset..offset + fragment.body.len();
            if part.begins() {
                self.gathered.clear();
            }
            if !(part.begins() && part.ends()) {
                self.gathered.extend_from_slice(fragment.body);
            }
            let whole = walk.pass(&fragment);
            let place = match part.begins() {
                true => Place::InSegment(range),
                false => Place::Gathered,
            };
            if let Some(whole) = whole
                && whole.start >= self.from
                && whole.kind == Kind::Changes
            {
                return Ok(Some((whole, place)));
            }
        }
    }

    /// Starts with the segment of the first record.
    fn begin(&mut self) -> Result<(), Error> {
        let geometry = self.log.geometry;
        let number = geometry.segment(geometry.place(self.from));
        let header = self.read(number)?;
        let walk = Walk::begin(self.log.key, geometry, number, header.incarnation, self.from);
        self.at = Some((number, walk));
        Ok(())
    }

    /// Reads a segment, as far as the scan needs it.
    fn read(&mut self, number: u64) -> Result<Header, Error> {
        let file = self.file(number)?;
        let start = self.log.geometry.start(number);
        let len = self.log.geometry.size().min(self.to.0.saturating_sub(start.0));
        self.bytes.resize(len as usize, 0);
        file.read_at(0, &mut self.bytes)?;
        let name = log_name(number);
        Header::read(&*file, &name)?.check(&name, self.log.id, number)
    }

    /// A segment's file. The pin keeps its name.
    fn file(&self, number: u64) -> Result<Arc<D::File>, Error> {
        let segments = lock(&self.log.segments);
        let segment = segments.iter().find(|segment| segment.number == number);
        let file = segment.map(|segment| segment.file.clone());
        drop(segments);
        match file {
            Some(Some(file)) => Ok(file),
            Some(None) => Ok(Arc::new(self.log.disk.open(&log_name(number))?)),
            None => Err(Error::Missing {
                file: log_name(number),
                needed: self.to,
            }),
        }
    }
}
