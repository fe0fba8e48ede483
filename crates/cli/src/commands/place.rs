//! Files written by commands: a file gets its name when it is complete and on the medium; until then the previous file
//! of that name stays.

use crate::exit::Failure;
use pmem::pool::{Permissions, behind_links, create_part, lock_named, sync_folder};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes per write.
const BUFFER: usize = 1 << 18;

/// A buffered output file whose writes stop once it is no longer wanted.
pub type Out<'e> = BufWriter<Ending<'e>>;

/// A file whose writes fail once `ended` does.
pub struct Ending<'e> {
    file: File,
    ended: &'e dyn Fn() -> io::Result<()>,
}

impl Write for Ending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.ended)()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Lets `write` write a file with the pool's data. A replacement keeps the owner and the mode of the file it replaces;
/// a new file gets those of the pool. Through a symbolic link, its target is replaced. Pipes and devices are written to
/// directly. Fails soon after `ended` does.
pub fn write_file<T>(
    path: &Path,
    pool: &Path,
    what: &str,
    ended: &dyn Fn() -> io::Result<()>,
    write: impl FnOnce(&mut Out<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = &behind_links(path).map_err(failed(path))?;
    let old = match fs::metadata(path) {
        Ok(old) if identity(pool).is_ok_and(|pool| pool == (old.dev(), old.ino())) => {
            let name = path.display();
            return Err(Failure::Usage(format!(
                "'{name}' is the pool: {what} needs a file of its own"
            )));
        }
        // A link in `/proc` leads to an open file, whose name may have changed.
        Ok(old) if !old.is_file() || !file.exists() => {
            let file = File::options().write(true).open(path).map_err(failed(path))?;
            return write_to(Ending { file, ended }, path, write).map(|(done, _)| done);
        }
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed(path)(error)),
    };
    let access = match Permissions::of(if old { file } else { pool }) {
        Ok(access) => Some(access),
        // The name of an open pool may be gone. Then only its owner may read the copy.
        Err(_) if !old => None,
        Err(error) => return Err(failed(path)(error)),
    };
    let (part_file, part) = &create_part(file, 0o600).map_err(failed(file))?;
    // The permissions are set before the file holds data.
    let refused = access.map_or(Vec::new(), |access| access.give_to(part));
    if old {
        warn_refused(refused, part);
    }
    let made = part_file.try_clone().map_err(failed(part)).and_then(|file| {
        let (done, file) = write_to(Ending { file, ended }, part, write)?;
        file.sync_all().map_err(failed(part))?;
        Ok(done)
    });
    let made = made.and_then(|done| {
        fs::rename(part, file).map_err(failed(file))?;
        Ok(done)
    });
    match made {
        // The new file has the name, whether or not that is durable.
        Ok(done) => sync_folder(file).map_err(failed(file)).map(|()| done),
        Err(failure) => {
            // The original failure is the one to report.
            let _ = fs::remove_file(part);
            Err(failure)
        }
    }
}

fn write_to<'e, T>(
    file: Ending<'e>,
    name: &Path,
    write: impl FnOnce(&mut Out<'e>) -> Result<T, Failure>,
) -> Result<(T, File), Failure> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    let done = write(&mut out).map_err(|failure| match failure {
        Failure::Output(error) => failed(name)(error),
        other => other,
    })?;
    let written = out.into_inner();
    let Ending { file, .. } = written.map_err(|error| failed(name)(error.into_error()))?;
    Ok((done, file))
}

/// Lets `make` create and close a pool under another name, and then renames it to `path` with `name`. On failure the
/// existing file stays.
pub fn make_pool<T>(
    path: &Path,
    part: &Path,
    name: impl FnOnce(&Path, &Path) -> io::Result<()>,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let made = make().and_then(|done| {
        // The pool is locked until it has its name. The sync covers its owner and mode, too. It comes only after `make`
        // has succeeded: after a sync that failed there, this one could succeed and prove nothing.
        let file = File::open(part).map_err(failed(part))?;
        lock_named(&file, part).map_err(failed(part))?;
        file.sync_all().map_err(failed(part))?;
        name(part, path).map_err(failed(path))?;
        Ok(done)
    });
    match made {
        Ok(done) => sync_folder(path).map_err(failed(path)).map(|()| done),
        Err(failure) => {
            // The original failure is the one to report; the file may not exist.
            let _ = fs::remove_file(part);
            Err(failure)
        }
    }
}

/// Reports which properties of the old file the new one cannot have.
pub fn warn_refused(refused: Vec<(String, io::Error)>, new: &Path) {
    for (what, error) in refused {
        let name = new.display();
        // If the warning cannot be printed, it is lost: the content of the file is right all the same.
        let _ = writeln!(
            io::stderr(),
            "'{name}' cannot have {what} of the old file: {error}"
        );
    }
}

/// Returns a function that turns an I/O error of this file into a failure.
pub fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let name = format!("'{}'", path.display());
    move |error| Failure::input(name.clone(), error)
}

/// Returns the device and the inode of a path's file, which identify it.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// Returns whether an interrupted write to this path leaves a temporary file to remove.
pub fn is_replaced(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |old| old.is_file())
}

/// Returns whether a path means the standard input or output.
pub fn is_std(path: &Path) -> bool {
    path == Path::new("-")
}
