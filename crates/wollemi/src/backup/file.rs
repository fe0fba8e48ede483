//! Backups in files.

use crate::{Copied, Error, Media, Snapshot};
use pmem::pool::rename_new;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

impl<M: Media> Snapshot<M> {
    /// As [`backup`](Self::backup), to a new file, which has its name when it is whole and on the medium: until then its
    /// name ends in `.part`. Where that fails, no file is left.
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
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = claim(&part).map_err(Error::Backup)?;
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

/// Makes a file that others leave alone while it is open. What an interrupted backup has left under its name goes.
fn claim(part: &Path) -> io::Result<File> {
    match File::open(part) {
        Ok(left_over) => {
            lock(&left_over)?;
            // Before it was locked, another process may have removed it, and made one of its own.
            if !is_named(&left_over, part)? {
                return Err(busy());
            }
            fs::remove_file(part)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = File::create_new(part)?;
    lock(&file)?;
    // Before it was locked, another process may have taken it for one that was left.
    match is_named(&file, part)? {
        true => Ok(file),
        false => Err(busy()),
    }
}

/// Whether the file has this name.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let (file, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    Ok((file.dev(), file.ino()) == (named.dev(), named.ino()))
}

fn busy() -> io::Error {
    io::Error::other("another process is writing this file")
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => busy(),
        TryLockError::Error(error) => error,
    })
}

/// Makes the name of a file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
