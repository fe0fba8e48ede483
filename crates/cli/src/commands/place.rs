//! The files that commands write: a file has its name when it is whole and on the medium, and until then what had the
//! name before stays.

use crate::exit::Failure;
use pmem::pool::{Permissions, behind_links, create_part, lock_named, sync_folder};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How large the pieces are that are written at once.
const BUFFER: usize = 1 << 18;

/// Where a file is written to, until something says that it is no longer wanted.
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

/// Has `write` write a file of the pool's data. It has the owner and the mode of the one that it replaces; a new one has
/// those of the pool. Through a symbolic link, the file that it leads to is replaced. What is no regular file, such as a
/// pipe or a device, is written to as it is. Fails soon after `ended` does.
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
        // A link of `/proc` leads to an open file, which need not have the name that it says.
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
        // The name of a pool that is open may be gone. Its owner alone may read the copy then.
        Err(_) if !old => None,
        Err(error) => return Err(failed(path)(error)),
    };
    let (part_file, part) = &create_part(file, 0o600).map_err(failed(file))?;
    // Before there is anything in it.
    let refused = access.map_or(Vec::new(), |access| access.give_to(part));
    if old {
        tell_refused(refused, part);
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
        // Its name is the new file's, whether or not that is durable.
        Ok(done) => sync_folder(file).map_err(failed(file)).map(|()| done),
        Err(failure) => {
            // The failure is what there is to say.
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

/// Has `make` make a pool under another name, which it closes, and gives it the name `path` by `name`. Where that fails,
/// what there was stays.
pub fn make_pool<T>(
    path: &Path,
    part: &Path,
    name: impl FnOnce(&Path, &Path) -> io::Result<()>,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let made = make().and_then(|done| {
        // Locked until it has its name. Its owner and mode go to the medium, too: the pool is there, or `make` has
        // failed, since a sync after one that failed would succeed and prove nothing.
        let file = File::open(part).map_err(failed(part))?;
        lock_named(&file, part).map_err(failed(part))?;
        file.sync_all().map_err(failed(part))?;
        name(part, path).map_err(failed(path))?;
        Ok(done)
    });
    match made {
        Ok(done) => sync_folder(path).map_err(failed(path)).map(|()| done),
        Err(failure) => {
            // The failure is what there is to say; a file that is not there is none.
            let _ = fs::remove_file(part);
            Err(failure)
        }
    }
}

/// Says which of an old file's properties a new one cannot have.
pub fn tell_refused(refused: Vec<(String, io::Error)>, new: &Path) {
    for (what, error) in refused {
        let name = new.display();
        // A file of another owner holds the same.
        let _ = writeln!(
            io::stderr(),
            "'{name}' cannot have {what} of the old file: {error}"
        );
    }
}

/// What went wrong with a file.
pub fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let name = format!("'{}'", path.display());
    move |error| Failure::input(name.clone(), error)
}

/// What tells the file that a path leads to from others: its device and its inode.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// Whether writing a file there leaves something to remove where it is interrupted, and not just an end.
pub fn is_replaced(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |old| old.is_file())
}

/// Whether a path stands for the standard input or output.
pub fn is_std(path: &Path) -> bool {
    path == Path::new("-")
}
