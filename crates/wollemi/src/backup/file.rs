//! Backups in files.

use crate::{Copied, Error, Media, Snapshot};
use pmem::pool::{Permissions, create_part, rename_new, sync_folder};
use std::fs;
use std::io::{BufWriter, ErrorKind};
use std::path::Path;

impl<M: Media> Snapshot<M> {
    /// As [`backup`](Self::backup), to a new file, which has its name when it is whole and on the medium: until then it
    /// has [one of its own](pmem::pool::part_of). Others may do with it what they may do with the pool's file. Where
    /// that fails, no file is left, except where all that has failed is to make the name durable.
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
    /// Those of [`backup`](Self::backup); [`Error::Backup`] also where the name is taken, or another process is writing a
    /// file to it.
    pub fn backup_to(&self, path: impl AsRef<Path>, progress: impl FnMut(&Copied)) -> Result<Copied, Error> {
        let path = path.as_ref();
        // It is refused for good when the file gets its name. There is no need to write all of it before.
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::Backup(ErrorKind::AlreadyExists.into()));
        }
        let path_of_pool = self.pool_path();
        // The pool's name may be gone. Its owner alone may read the copy then.
        let pool = path_of_pool.and_then(|pool| Permissions::of(pool).ok());
        let mode = if path_of_pool.is_some() { 0o600 } else { 0o666 };
        let (file, part) = create_part(path, mode).map_err(Error::Backup)?;
        if let Some(pool) = pool {
            // Of another owner, it holds the same.
            let _ = pool.give_to(&part);
        }
        let mut out = BufWriter::with_capacity(1 << 18, &file);
        let made = self.backup(&mut out, progress).and_then(|copied| {
            file.sync_all().map_err(Error::Backup)?;
            rename_new(&part, path).map_err(Error::Backup)?;
            Ok(copied)
        });
        if made.is_err() {
            // The failure is what there is to say.
            let _ = fs::remove_file(&part);
        }
        let copied = made?;
        sync_folder(path).map_err(Error::Backup)?;
        Ok(copied)
    }
}
