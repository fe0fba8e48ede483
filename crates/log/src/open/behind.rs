//! What lies behind the end of the chain: claims, and files that are not the segments that they are named after.
//!
//! B1 A claim is true of the log in whichever file it stands, so the claims of all files count (O1).
//! B2 A file may have the header of another segment. An opening has made it a spare, but the sync of the directory
//!    failed; a later process has used the spare, and a crash brings the old name back. That process had first made the
//!    mark of its own incarnation durable (O3), so all that the file held as the segment of its name is of an earlier
//!    incarnation than the end. What it holds as the segment of its header is read under that segment's name, is not
//!    kept, or was never acknowledged, since the name was not durable (S1). Such a file counts as absent.
//!    (Where an opening uses the spare for the very segment of its mark, and another crash comes before the mark is
//!    durable, records that were cut off are taken for missing ones.)
//! B3 Otherwise the header is damaged, or files have changed names: if the file, or a later one, has a fragment of the
//!    end's incarnation or of a later one that is read under no other name. Before that fragment was stored, the file's
//!    segment had its name and its header, durable (M1).

use super::Recovery;
use crate::segment::{Header, damaged, log_name};
use crate::walk::{Walk, each_fragment};
use crate::{Disk, DiskFile, Error, Lsn};

/// What was found behind the end of the chain.
#[derive(Default)]
pub(super) struct Behind {
    /// The highest claim of any fragment or segment header.
    pub(super) claimed: Lsn,
    /// The files that have the header of another segment, by the numbers in their names.
    pub(super) misnamed: Vec<u64>,
}

impl<D: Disk> Recovery<'_, D> {
    /// Looks at all that is behind the end of the chain. `bytes` are those of segment `number`, where the walk ended.
    pub(super) fn look_behind(&self, walk: &Walk, number: u64, bytes: &mut [u8]) -> Result<Behind, Error> {
        let mut behind = Behind::default();
        let offset = match self.geometry.segment(walk.at) == number {
            true => self.geometry.offset(walk.at),
            false => self.geometry.size(),
        };
        behind.claimed = self.newest(number, bytes, offset).claimed;
        for &later in self.files.logs.range(number + 1..) {
            let (file, header) = self.read_header(later)?;
            file.read_at(0, bytes)?;
            let mut newest = self.newest(later, bytes, 0);
            if header.number != later {
                behind.misnamed.push(later);
                let other = self.newest(header.number, bytes, 0);
                newest.claimed = newest.claimed.max(other.claimed);
                if !self.is_elsewhere(&header)? {
                    newest.incarnation = newest.incarnation.max(other.incarnation);
                }
            }
            behind.claimed = behind.claimed.max(newest.claimed).max(header.durable);
            if let Some(&first) = behind.misnamed.first()
                && newest.incarnation >= Some(walk.incarnation)
            {
                return Err(damaged(&log_name(first), 32, "its header is another segment's"));
            }
        }
        Ok(behind)
    }

    /// Whether the records of the segment that a misnamed file's header states are read under the segment's own name,
    /// or not kept (B2).
    fn is_elsewhere(&self, header: &Header) -> Result<bool, Error> {
        let keep = self.geometry.segment(self.geometry.place(self.needs.keep));
        Ok(header.number < keep || self.segment(header.number)?.is_some())
    }

    /// The highest claim and the highest incarnation of the fragments at or behind `offset` of a segment.
    fn newest(&self, number: u64, bytes: &[u8], offset: u64) -> Newest {
        let mut newest = Newest::default();
        each_fragment(self.key, self.geometry, number, bytes, offset, |fragment| {
            newest.claimed = newest.claimed.max(fragment.claim());
            newest.incarnation = newest.incarnation.max(Some(fragment.header.incarnation));
        });
        newest
    }
}

/// The highest claim and the highest incarnation of some fragments.
#[derive(Default)]
struct Newest {
    claimed: Lsn,
    /// `None` if there is no fragment.
    incarnation: Option<u32>,
}
