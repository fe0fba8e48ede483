//! Whose the files of a log are, and whether they are what an interrupted creation has left: found by reading alone.

use crate::fragment::{Key, Kind};
use crate::segment::{self, Files, Header, log_name, spare_name};
use crate::walk::each_fragment;
use crate::{Disk, DiskFile, Error, Log};

/// What a directory holds of a log, as far as it can be told without opening it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// No file of a log.
    Nothing,
    /// Files of a log to which no record of changes was ever appended.
    Unused,
    /// Files of a log with such records, which this one has.
    Used(String),
}

impl<D: Disk> Log<D> {
    /// Whether there is a segment of the log that has this id. One that cannot be read is not taken for one.
    ///
    /// # Errors
    ///
    /// What the disk said of its names.
    pub fn has_segment_of(disk: &D, id: u128) -> Result<bool, Error> {
        let files = Files::list(disk)?;
        let is_its = |name: String| match disk.open(&name) {
            Ok(file) => Header::read(&file, &name).is_ok_and(|header| header.id == id),
            Err(_) => false,
        };
        Ok(files.logs.iter().any(|&number| is_its(log_name(number))))
    }

    /// Looks for the files of a log, and for records of changes in them: a creation that a crash interrupted leaves none.
    /// Changes no file.
    ///
    /// # Errors
    ///
    /// [`Error::NotALog`] and the like where a file has the name of a segment and is none, so that it is not to be
    /// removed; or what the disk said.
    pub fn trace(disk: &D) -> Result<Trace, Error> {
        let files = Files::list(disk)?;
        for &number in &files.spares {
            let name = spare_name(number);
            segment::check_spare(&disk.open(&name)?, &name)?;
        }
        let mut id = None;
        for &number in &files.logs {
            let name = log_name(number);
            let file = disk.open(&name)?;
            // S1: the header is whole under this name, whatever crash came.
            let header = Header::read(&file, &name)?;
            let header = header.check(&name, *id.get_or_insert(header.id), number)?;
            let mut bytes = vec![0; header.geometry.size() as usize];
            file.read_at(0, &mut bytes)?;
            // All places of the segment, and not only the chain of records: one that is damaged hides none behind it.
            let mut is_used = false;
            each_fragment(
                Key::new(header.id),
                header.geometry,
                number,
                &bytes,
                0,
                |fragment| {
                    is_used |= fragment.header.kind == Kind::Changes;
                },
            );
            if is_used {
                return Ok(Trace::Used(name));
            }
        }
        match files.logs.is_empty() && files.spares.is_empty() {
            true => Ok(Trace::Nothing),
            false => Ok(Trace::Unused),
        }
    }
}
