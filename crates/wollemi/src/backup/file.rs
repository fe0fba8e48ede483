//! Backups in files.

use crate::{Copied, Error, Media, Snapshot};
use pmem::pool::{lock_named, rename_new};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

impl<M: Media> Snapshot<M> {
    /// As [`backup`](Self::backup), to a new file, which has its name when it is whole and on the medium: until then its
    /// name ends in `.part`. Where that fails, no file is left, except where all that has failed is to make the name
    /// durable.
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
            lock_named(&left_over, part)?;
            fs::remove_file(part)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = File::create_new(part)?;
    // Before it was locked, another process may have taken it for one that was left.
    lock_named(&file, part)?;
    Ok(file)
}

/// Makes the name of a file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
