//! Backups: all maps at one moment as a [stream](crate::stream), the format of checkpoint runs, and databases restored
//! from them. A stream that ends before its end record, or a record whose checksum does not match, is refused.

mod file;
mod restore;
mod sum;
mod version1;

use crate::stream::{StreamError, Writer};
use crate::{Error, MAX_NAME, Media, Snapshot};
use serde::Serialize;
use std::io::Write;

/// Entries between two progress reports.
const STRIDE: u64 = 256;

/// Progress of a backup or a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Maps begun so far.
    pub maps: u64,
    /// Entries copied so far.
    pub entries: u64,
    /// Bytes of the stream, or of keys and values where there is no stream.
    pub bytes: u64,
}

impl Copied {
    fn entry(&mut self, progress: &mut impl FnMut(&Copied)) {
        self.entries += 1;
        if self.entries.is_multiple_of(STRIDE) {
            progress(self);
        }
    }
}

impl<M: Media> Snapshot<M> {
    /// Writes all maps, as of the snapshot, to `out`, and flushes it. Other threads may write to the database
    /// meanwhile. Calls `progress` at intervals and at the end.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// db.map("letters")?.upsert("a", "alpha")?;
    /// let mut bytes = Vec::new();
    /// db.snapshot()?.backup(&mut bytes, |_| {})?;
    ///
    /// let other = wollemi::Db::anonymous()?;
    /// let copied = other.restore(&mut &bytes[..], |_| {})?;
    /// assert_eq!((copied.maps, copied.entries), (1, 1));
    /// assert_eq!(other.map("letters")?.get("a")?, Some(b"alpha".to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backup`] if `out` fails; [`Error::SnapshotOutgrown`]; [`Error::OtherKind`] if a map's index is unknown
    /// to this version; [`Error::MapNotText`]; an index's error if the pool is damaged.
    pub fn backup(&self, out: &mut impl Write, mut progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
        self.refuse_non_utf8_names()?;
        let mut copied = Copied::default();
        let mut out = Writer::new(0, out)?;
        for info in self.maps() {
            let Some(view) = self.find_view(&info.name)? else {
                continue;
            };
            out.map(&info.name, view.index_kind().name())?;
            copied.maps += 1;
            for entry in view.iter() {
                let (key, value) = entry?;
                out.entry(&key, Some(&value))?;
                copied.bytes = out.totals().bytes;
                copied.entry(&mut progress);
            }
        }
        let (_, totals) = out.finish()?;
        copied.bytes = totals.bytes;
        progress(&copied);
        Ok(copied)
    }
}

const _: () = assert!(MAX_NAME <= u8::MAX as usize, "a name's length fits its byte");

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        match error {
            StreamError::Io(error) => Error::Backup(error),
            error => Error::NotBackup(error.to_string()),
        }
    }
}
