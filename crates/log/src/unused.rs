//! Determines, by reading alone, to which log files belong, and whether an interrupted creation has left them.

use crate::fragment::{Key, Kind};
use crate::segment::{self, Files, Header, log_name, spare_name};
use crate::walk::each_fragment;
use crate::{Disk, DiskFile, Error, Log};

/// The traces of a log in a directory, as far as they can be determined without opening it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remains {
    /// No file of a log.
    Nothing,
    /// Files of a log, none of them a segment with changes. An interrupted creation leaves such files; so may a log all
    /// of whose changes were dropped.
    Unused,
    /// Files of a log with changes; the name of a file that has some.
    Used(String),
}

impl<D: Disk> Log<D> {
    /// Whether there is a segment of the log with this id. An unreadable one does not count.
    ///
    /// # Errors
    ///
    /// The disk's error in listing the names.
    pub fn has_segment_of(disk: &D, id: u128) -> Result<bool, Error> {
        let files = Files::list(disk)?;
        let is_its = |name: String| match disk.open(&name) {
            Ok(file) => Header::read(&file, &name).is_ok_and(|header| header.id == id),
            Err(_) => false,
        };
        Ok(files.logs.iter().any(|&number| is_its(log_name(number))))
    }

    /// Looks for the files of a log, and for records of changes in them: a creation that a crash interrupted leaves
    /// none. Changes no file.
    ///
    /// # Errors
    ///
    /// [`Error::NotALog`] if a file has the name of a segment or of a spare but is neither; [`Error::Newer`],
    /// [`Error::Damaged`] or [`Error::Foreign`] if a segment's header cannot be read, or is of another log than the
    /// other segments'. None of these files may be removed. Also errors of the disk.
    pub fn trace(disk: &D) -> Result<Remains, Error> {
        let files = Files::list(disk)?;
        for &number in &files.spares {
            let name = spare_name(number);
            segment::check_spare(&disk.open(&name)?, &name)?;
        }
        let mut id = None;
        for &number in &files.logs {
            let name = log_name(number);
            let file = disk.open(&name)?;
            // S1: a file with this name has a complete header, whatever crash came; perhaps that of a later segment
            // (S2).
            let header = Header::read(&file, &name)?;
            let number = header.number;
            let header = header.check(&name, *id.get_or_insert(header.id), number)?;
            let mut bytes = vec![0; header.geometry.size() as usize];
            file.read_at(0, &mut bytes)?;
            // All places of the segment, and not only the chain of records: a damaged record hides none behind it.
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
                return Ok(Remains::Used(name));
            }
        }
        match files.logs.is_empty() && files.spares.is_empty() {
            true => Ok(Remains::Nothing),
            false => Ok(Remains::Unused),
        }
    }
}
