//! Backups in files.

use crate::{Copied, Error, Media, Snapshot};
use pmem::pool::{Permissions, create_part, rename_new, sync_folder};
use std::fs;
use std::io::{BufWriter, ErrorKind};
use std::path::Path;

impl<M: Media> Snapshot<M> {
    /// Like [`backup`](Self::backup), to a new file, which gets its name only when it is complete and on the medium;
    /// until then it has [a temporary one](pmem::pool::part_of). The file gets the permissions of the pool's file. On
    /// failure no file remains, unless only the sync of the name failed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().map_err(wollemi::Error::Backup)?;
    /// # let path = folder.path().join("letters.backup");
    /// let db = wollemi::Db::anonymous()?;
    /// db.map("letters")?.upsert("a", "alpha")?;
    /// db.snapshot()?.backup_to(&path, |_| {})?;
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`backup`](Self::backup); [`Error::Backup`] also if the name exists, or if another process is writing a
    /// file to that name.
    pub fn backup_to(&self, path: impl AsRef<Path>, progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
        let path = path.as_ref();
        // The rename below refuses an existing name in any case; this avoids writing the whole file first.
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::Backup(ErrorKind::AlreadyExists.into()));
        }
        let path_of_pool = self.pool_path();
        // The pool's file may have lost its name. Then only the copy's owner may read the copy.
        let pool = path_of_pool.and_then(|pool| Permissions::of(pool).ok());
        let mode = if path_of_pool.is_some() { 0o600 } else { 0o666 };
        let (file, part) = create_part(path, mode).map_err(Error::Backup)?;
        if let Some(pool) = pool {
            // If some cannot be set, the backup continues: fewer users can read the copy then.
            let _ = pool.give_to(&part);
        }
        let mut out = BufWriter::with_capacity(1 << 18, &file);
        let made = self.backup(&mut out, progress).and_then(|copied| {
            file.sync_all().map_err(Error::Backup)?;
            rename_new(&part, path).map_err(Error::Backup)?;
            Ok(copied)
        });
        if made.is_err() {
            // The original failure is the one to report.
            let _ = fs::remove_file(&part);
        }
        let copied = made?;
        sync_folder(path).map_err(Error::Backup)?;
        Ok(copied)
    }
}
