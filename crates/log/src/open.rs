//! Opening a log: finds its end, checks that nothing is missing, and makes all of it durable.
//!
//! O1 The log ends before the first incomplete record. A crash may have left this end if no fragment and no segment
//!    header claims that the record was durable (F3); otherwise it is damage.
//! O2 Records not known to be durable are rewritten before they are synced: a sync of an earlier process may have
//!    failed, and then the page cache holds pages as clean that the medium does not have.
//! O3 Before anything is appended, segments behind the end, and those of records that are not kept, have become spares
//!    or been removed, and the mark of the next incarnation is durable: nothing behind the end can ever follow a
//!    record that is appended later.
//! O4 No file is used under two names. After two renamings without a sync of the directory between them, a crash may
//!    keep the second and lose the first; the file then has both names. The number in its header shows this. Behind the
//!    end a sync must have failed for that (`behind`, B2). Such a name is gone, durably, before any other file is given
//!    up: the other name of its file shows that it is harmless.

mod behind;

use crate::create::Start;
use crate::fragment::Key;
use crate::geometry::Geometry;
use crate::log::SegmentOf;
use crate::segment::{Files, Header, Segment, damaged, log_name, spare_name};
use crate::walk::{Step, Walk};
use crate::{Disk, DiskFile, Error, Log, LogOptions, Lsn};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The requirements of an opening. All positions are beginnings or ends of records.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Records from here on are kept; segments below are dropped.
    pub keep: Lsn,
    /// Records from here on are checked now, and so are earlier ones that are not known to be durable. The others from
    /// `keep` on are checked when they are scanned.
    pub check: Lsn,
    /// The log must reach this position; it need not be durable up to there.
    pub reach: Lsn,
    /// The log is known to be durable up to here, since a sync has returned. Records below are not rewritten. At
    /// least `keep`, and perhaps less than `reach`: a kill leaves records that were never synced.
    pub durable: Lsn,
}

impl<D: Disk> Log<D> {
    /// Opens a log, which is complete and durable from `needs.check` on when this returns: an incomplete record at
    /// the end, left by a crash, is cut off, and records not known to be durable are rewritten and synced. A replay
    /// follows by [`scan`](Log::scan).
    ///
    /// # Errors
    ///
    /// A log of another database, a missing segment, damage, an end before a position in `needs`, no record at
    /// `needs.check`, a limit out of range, or an error of the disk. No record from `needs.keep` on has changed then.
    pub fn open(disk: Arc<D>, id: u128, needs: Needs, options: LogOptions) -> Result<Log<D>, Error> {
        let files = Files::list(&*disk)?;
        let geometry = find_geometry(&*disk, id, &files)?;
        let recovery = Recovery {
            disk: &*disk,
            id,
            key: Key::new(id),
            geometry,
            files: &files,
            needs,
        };
        let found = recovery.find_end()?;
        let segments = recovery.make_durable(&found)?;
        let spares = recovery.clear(&segments, &found.misnamed, options.spares)?;
        let place = geometry.segment(geometry.place(found.end));
        let current = match segments.back().filter(|segment| segment.number == place) {
            Some(segment) => Some((place, segment.file(&*disk)?.map_read(geometry.size())?)),
            None => None,
        };
        let start = Start {
            geometry,
            end: found.end,
            begin: needs.keep,
            incarnation: found.incarnation,
            segments,
            current,
            spares,
        };
        Self::begin_incarnation(disk, id, options, start)
    }
}

impl<D: Disk> Log<D> {
    /// Whether an opening of the log that keeps the records from a position on may drop segments, with the records
    /// below: whether there is a segment before that of the position.
    ///
    /// # Errors
    ///
    /// As for [`open`](Log::open), if a segment's header is invalid.
    pub fn gives_up(disk: &D, id: u128, keep: Lsn) -> Result<bool, Error> {
        let files = Files::list(disk)?;
        let geometry = find_geometry(disk, id, &files)?;
        let first = geometry.segment(geometry.place(keep));
        Ok(files.logs.range(..first).next().is_some())
    }
}

/// The size of segments, as stated by the oldest one that belongs to the log.
fn find_geometry<D: Disk>(disk: &D, id: u128, files: &Files) -> Result<Geometry, Error> {
    let mut first_error = None;
    for &number in &files.logs {
        let name = log_name(number);
        match Header::read(&disk.open(&name)?, &name).and_then(|header| header.check(&name, id, number)) {
            Ok(header) => return Ok(header.geometry),
            Err(error @ Error::Foreign { .. }) => return Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(Error::Missing {
        file: log_name(0),
        needed: Lsn(0),
    }))
}

struct Recovery<'r, D> {
    disk: &'r D,
    id: u128,
    key: Key,
    geometry: Geometry,
    files: &'r Files,
    needs: Needs,
}

/// The end of a log.
struct Found {
    end: Lsn,
    incarnation: u32,
    /// Position up to which fragments and segment headers state that the log was durable.
    claimed: Lsn,
    /// Files behind the end that have the header of another segment, by the numbers in their names.
    misnamed: Vec<u64>,
}

impl<D: Disk> Recovery<'_, D> {
    /// Finds the end (O1).
    fn find_end(&self) -> Result<Found, Error> {
        let check = self.geometry.place(self.needs.check);
        let mut first = self.geometry.segment(check);
        if self.segment(first)?.is_none() {
            // The log may end with the segment before.
            first = self.geometry.segment(Lsn(self.needs.check.0.saturating_sub(1)));
        }
        self.check_kept(first)?;
        loop {
            let found = self.walk(first)?;
            // Records not known to be durable are checked too, wherever they begin, since they are rewritten.
            let durable = found.claimed.max(self.needs.durable);
            let durable = self.geometry.segment(self.geometry.place(durable));
            if durable >= first || first == 0 || !self.files.logs.contains(&(first - 1)) {
                return Ok(found);
            }
            first -= 1;
        }
    }

    /// Checks that all segments exist from the first that is kept to the first that is checked.
    fn check_kept(&self, first: u64) -> Result<(), Error> {
        let keep = self
            .geometry
            .segment(self.geometry.place(self.needs.keep))
            .min(first);
        for number in keep..=first {
            if !self.files.logs.contains(&number) {
                return Err(Error::Missing {
                    file: log_name(number),
                    needed: self.needs.reach.max(self.needs.check),
                });
            }
            self.header(number)?;
        }
        Ok(())
    }

    /// The file and the header of a segment that must exist.
    fn header(&self, number: u64) -> Result<(D::File, Header), Error> {
        let (file, header) = self.read_header(number)?;
        Ok((file, header.check(&log_name(number), self.id, number)?))
    }

    /// The file and the header of a segment; `None` if there is no file of its name, or one with the header of another
    /// segment. (If the walk ends before such a file, [`look_behind`](Recovery::look_behind) judges it.)
    fn segment(&self, number: u64) -> Result<Option<(D::File, Header)>, Error> {
        if !self.files.logs.contains(&number) {
            return Ok(None);
        }
        let (file, header) = self.read_header(number)?;
        Ok((header.number == number).then_some((file, header)))
    }

    /// The file of this name, and its header, which may be that of another segment of the log.
    fn read_header(&self, number: u64) -> Result<(D::File, Header), Error> {
        let name = log_name(number);
        let file = self.disk.open(&name)?;
        let header = Header::read(&file, &name)?;
        let header = header.check(&name, self.id, header.number)?;
        if header.geometry != self.geometry {
            return Err(damaged(&name, 12, "its segment size differs from the others'"));
        }
        Ok((file, header))
    }

    /// Walks through the fragments from a segment on, to the end of their chain.
    fn walk(&self, first: u64) -> Result<Found, Error> {
        let check = self.geometry.place(self.needs.check);
        let mut bytes = vec![0; self.geometry.size() as usize];
        let mut number = first;
        let (file, header) = self.header(first)?;
        file.read_at(0, &mut bytes)?;
        // Records that may be rewritten are checked, wherever they begin.
        let checked = check.min(self.geometry.place(self.needs.durable));
        let mut walk = Walk::begin(self.key, self.geometry, first, header.incarnation, checked);
        let mut claimed = header.durable;
        let mut passed_check = false;
        loop {
            match walk.look(number, &bytes) {
                Step::Fragment(fragment) => {
                    claimed = claimed.max(fragment.claim());
                    passed_check |= fragment.lsn == check && fragment.header.part.begins();
                    walk.pass(&fragment);
                    continue;
                }
                Step::Nothing => break,
                Step::SegmentEnd => {}
            }
            let Some((file, header)) = self.segment(number + 1)? else {
                break;
            };
            number += 1;
            file.read_at(0, &mut bytes)?;
            claimed = claimed.max(header.durable);
            if header.incarnation != walk.incarnation {
                break;
            }
        }
        let behind = self.look_behind(&walk, number, &mut bytes)?;
        let found = Found {
            end: walk.end,
            incarnation: walk.incarnation,
            claimed: claimed.max(behind.claimed),
            misnamed: behind.misnamed,
        };
        self.judge(&walk, &found)?;
        if !passed_check && self.geometry.place(found.end) != check {
            return Err(Error::Position {
                lsn: self.needs.check,
                what: "no record begins there",
            });
        }
        Ok(found)
    }

    /// Checks that a crash may have left this end, and that it is late enough.
    fn judge(&self, walk: &Walk, found: &Found) -> Result<(), Error> {
        let number = self.geometry.segment(walk.at);
        let Needs {
            keep,
            check,
            reach,
            durable,
        } = self.needs;
        let needed = reach.max(check).max(keep).max(durable);
        if found.claimed <= found.end && self.geometry.place(needed) <= self.geometry.place(found.end) {
            return Ok(());
        }
        let file = log_name(number);
        if !self.files.logs.contains(&number) {
            return Err(Error::Missing {
                file,
                needed: needed.max(found.claimed),
            });
        }
        if found.claimed > found.end {
            let what = "a record that was durable is invalid";
            return Err(damaged(&file, self.geometry.offset(walk.at), what));
        }
        Err(Error::Ends {
            file,
            end: found.end,
            needed,
        })
    }

    /// Reads the segments that are kept, and makes the log durable up to its end (O2).
    fn make_durable(&self, found: &Found) -> Result<VecDeque<SegmentOf<D>>, Error> {
        let keep = self.geometry.segment(self.geometry.place(self.needs.keep));
        let last = self.geometry.segment(Lsn(found.end.0 - 1));
        let mut segments = VecDeque::new();
        let durable = found.claimed.max(self.needs.durable);
        let mut bytes = Vec::new();
        for number in keep.min(last)..=last {
            let (file, _) = self.header(number)?;
            let start = self.geometry.start(number);
            let from = durable.max(start);
            let to = found.end.min(Lsn(start.0 + self.geometry.size()));
            if from < to {
                bytes.resize((to.0 - from.0) as usize, 0);
                let offset = self.geometry.offset(from);
                file.read_at(offset, &mut bytes)?;
                file.write_at(offset, &bytes)?;
                file.sync()?;
            }
            let file = (number == last).then(|| Arc::new(file));
            segments.push_back(Segment { number, file });
        }
        Ok(segments)
    }

    /// Turns the segments that are not in use into spares (O3, O4). Removes misnamed files, files of another length and
    /// those beyond the maximum number of spares.
    fn clear(
        &self,
        segments: &VecDeque<SegmentOf<D>>,
        misnamed: &[u64],
        spares: usize,
    ) -> Result<BTreeSet<u64>, Error> {
        for &number in misnamed {
            self.disk.remove(&log_name(number))?;
        }
        if !misnamed.is_empty() {
            self.disk.sync_dir()?;
        }
        let mut kept = BTreeSet::new();
        let mut numbers: BTreeSet<u64> = segments.iter().map(|segment| segment.number).collect();
        for &number in &self.files.spares {
            let name = spare_name(number);
            if kept.len() < spares && self.may_be_spare(&name, &mut numbers)? {
                kept.insert(number);
            } else {
                self.disk.remove(&name)?;
            }
        }
        let is_done = |number: &u64| {
            misnamed.contains(number) || segments.iter().any(|segment| segment.number == *number)
        };
        for number in self.files.logs.iter().copied().filter(|number| !is_done(number)) {
            let name = log_name(number);
            let is_free = kept.len() < spares && !kept.contains(&number);
            if is_free && self.may_be_spare(&name, &mut numbers)? {
                self.disk.rename(&name, &spare_name(number))?;
                kept.insert(number);
            } else {
                self.disk.remove(&name)?;
            }
        }
        self.disk.sync_dir()?;
        Ok(kept)
    }

    /// Returns whether a file has the length of a segment, and none of these numbers in its header (O4). Adds its
    /// number to them. Another file with the same number is only removed.
    fn may_be_spare(&self, name: &str, numbers: &mut BTreeSet<u64>) -> Result<bool, Error> {
        let file = self.disk.open(name)?;
        if file.len()? != self.geometry.size() {
            return Ok(false);
        }
        match Header::read(&file, name) {
            Ok(header) => Ok(numbers.insert(header.number)),
            Err(error @ Error::Disk(_)) => Err(error),
            // A crash came before its first header was durable, and so before it was renamed; or it is damaged.
            Err(_) => Ok(true),
        }
    }
}
