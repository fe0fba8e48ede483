//! A directory of the file system.

#[cfg(not(test))]
use super::platform::sync;
use super::platform::{allocate, read_singly, sync_data};
use super::{Disk, DiskError, DiskFile, FileMapping};
use rustix::fs::{self, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
#[cfg(test)]
use tests::sync;

/// Bytes per write of zeros: one page. A page cache with large folios keeps bytes written at once together, and a
/// store through a mapping then dirties all of them.
const ZEROS: usize = 4096;

/// Bytes per read before a mapping.
const READ: usize = 64 << 10;

/// A directory of the file system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    fd: OwnedFd,
}

/// An open file of a [`Directory`].
#[derive(Debug)]
pub struct OpenFile {
    path: PathBuf,
    fd: OwnedFd,
}

impl Directory {
    /// Opens the directory at `path`. Creates it if it is missing, and makes the new name durable.
    ///
    /// # Errors
    ///
    /// The system call's error, with the path.
    pub fn open(path: impl Into<PathBuf>) -> Result<Directory, DiskError> {
        let path = path.into();
        match fs::mkdir(&path, Mode::from_raw_mode(0o777)) {
            Ok(()) => sync_parent(&path).inspect_err(|_| {
                // A failure leaves nothing, so the next attempt creates a new name, which another sync can make
                // durable.
                let _ = fs::unlinkat(fs::CWD, &path, fs::AtFlags::REMOVEDIR);
            })?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(&path, "mkdir", errno)),
        }
        let fd = open_directory(&path)?;
        Ok(Directory { path, fd })
    }

    /// Makes the directory's own name durable, as [`open`](Directory::open) does for a directory that it creates.
    ///
    /// # Errors
    ///
    /// The system call's error, with the path.
    pub fn sync_name(&self) -> Result<(), DiskError> {
        sync_parent(&self.path)
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_file(&self, name: &str, operation: &'static str, flags: OFlags) -> Result<OpenFile, DiskError> {
        let path = self.path.join(name);
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => {
                read_singly(&fd);
                Ok(OpenFile { path, fd })
            }
            Err(errno) => Err(failed(&path, operation, errno)),
        }
    }

    fn check(&self, name: &str, operation: &'static str, done: Result<(), Errno>) -> Result<(), DiskError> {
        done.map_err(|errno| failed(&self.path.join(name), operation, errno))
    }
}

impl Disk for Directory {
    type File = OpenFile;

    /// The file gets the directory's owner, group and mode as far as the process may set them.
    fn create(&self, name: &str) -> Result<OpenFile, DiskError> {
        let file = self.open_file(name, "create", OFlags::CREATE | OFlags::EXCL)?;
        let failed = |errno| failed(&file.path, "fchmod", errno);
        let own = fs::fstat(&self.fd).map_err(failed)?;
        let made = fs::fstat(&file.fd).map_err(failed)?;
        let mut mode = own.st_mode & 0o666;
        if (made.st_uid, made.st_gid) != (own.st_uid, own.st_gid) {
            let (owner, group) = (Uid::from_raw(own.st_uid), Gid::from_raw(own.st_gid));
            // Only root can change the owner. A group member can still set the group.
            let given = fs::fchown(&file.fd, Some(owner), Some(group))
                .or_else(|_| fs::fchown(&file.fd, None, Some(group)));
            if given.is_err() && made.st_gid != own.st_gid {
                mode &= !0o070;
            }
        }
        if made.st_mode & 0o777 != mode {
            fs::fchmod(&file.fd, Mode::from_raw_mode(mode)).map_err(failed)?;
        }
        Ok(file)
    }

    fn open(&self, name: &str) -> Result<OpenFile, DiskError> {
        self.open_file(name, "open", OFlags::empty())
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let names = std::fs::read_dir(&self.path).and_then(|entries| {
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            names.collect()
        });
        names.map_err(|source| DiskError {
            file: self.path.display().to_string(),
            operation: "list",
            source,
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.check(from, "rename", fs::renameat(&self.fd, from, &self.fd, to))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.check(name, "remove", fs::unlinkat(&self.fd, name, fs::AtFlags::empty()))
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.check("", "fsync of the directory", sync(&self.fd))
    }
}

impl DiskFile for OpenFile {
    type Mapping = FileMapping;

    fn len(&self) -> Result<u64, DiskError> {
        let status = fs::fstat(&self.fd).map_err(|errno| failed(&self.path, "stat", errno))?;
        Ok(status.st_size.max(0) as u64)
    }

    fn read_at(&self, mut at: u64, mut bytes: &mut [u8]) -> Result<(), DiskError> {
        while !bytes.is_empty() {
            match rustix::io::pread(&self.fd, &mut *bytes, at) {
                Ok(0) => return Err(ended(&self.path)),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    at += read as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(&self.path, "read", errno)),
            }
        }
        Ok(())
    }

    fn write_at(&self, mut at: u64, mut bytes: &[u8]) -> Result<(), DiskError> {
        while !bytes.is_empty() {
            match rustix::io::pwrite(&self.fd, bytes, at) {
                Ok(0) => return Err(failed(&self.path, "write", Errno::IO)),
                Ok(written) => {
                    bytes = &bytes[written..];
                    at += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(&self.path, "write", errno)),
            }
        }
        Ok(())
    }

    fn preallocate(&self, len: u64) -> Result<(), DiskError> {
        // Blocks first, in one piece if the file system can: a full disk is detected before anything is written.
        allocate(&self.fd, len).map_err(|errno| failed(&self.path, "allocate", errno))?;
        let zeros = [0; ZEROS];
        let mut at = 0;
        while at < len {
            let part = (len - at).min(ZEROS as u64);
            self.write_at(at, &zeros[..part as usize])?;
            at += part;
        }
        Ok(())
    }

    fn map(&self, len: u64) -> Result<FileMapping, DiskError> {
        // Reads the file into the page cache, so that a device error is reported here and not by a signal at a store.
        let mut bytes = vec![0; READ.min(len as usize)];
        let mut at = 0;
        while at < len {
            let part = (len - at).min(bytes.len() as u64);
            self.read_at(at, &mut bytes[..part as usize])?;
            at += part;
        }
        self.map_read(len)
    }

    fn map_read(&self, len: u64) -> Result<FileMapping, DiskError> {
        if self.len()? < len {
            return Err(ended(&self.path));
        }
        FileMapping::new(&self.fd, len).map_err(|errno| failed(&self.path, "map", errno))
    }

    fn sync(&self) -> Result<(), DiskError> {
        sync_data(&self.fd).map_err(|errno| failed(&self.path, "fdatasync", errno))
    }
}

fn failed(path: &Path, operation: &'static str, errno: Errno) -> DiskError {
    DiskError {
        file: path.display().to_string(),
        operation,
        source: errno.into(),
    }
}

fn ended(path: &Path) -> DiskError {
    DiskError {
        file: path.display().to_string(),
        operation: "read",
        source: std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "unexpected end of file"),
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, DiskError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::empty()).map_err(|errno| failed(path, "open", errno))
}

/// Makes the directory's own name durable.
fn sync_parent(path: &Path) -> Result<(), DiskError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let fd = open_directory(parent)?;
    sync(&fd).map_err(|errno| failed(parent, "fsync of the directory", errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::os::fd::AsFd;

    thread_local! {
        /// For each directory that this thread has synced: its number, and the names that were in it by then.
        static SYNCED: RefCell<Vec<(u64, Vec<String>)>> = const { RefCell::new(Vec::new()) };
    }

    /// Syncs the directory, and records its content.
    pub(super) fn sync(directory: impl AsFd) -> Result<(), Errno> {
        let names = fs::Dir::read_from(&directory)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_, Errno>>()?;
        super::super::platform::sync(&directory)?;
        let number = fs::fstat(&directory)?.st_ino;
        SYNCED.with_borrow_mut(|synced| synced.push((number, names)));
        Ok(())
    }

    /// Whether this thread has synced the directory since the last call, when it had the name.
    fn was_synced(directory: &Path, name: &str) -> bool {
        let number = fs::stat(directory).expect("it exists").st_ino;
        let synced = SYNCED.take();
        synced
            .iter()
            .any(|(of, names)| *of == number && names.iter().any(|known| known == name))
    }

    /// The name of a directory is durable when `open` has created it, and after `sync_name`.
    #[test]
    fn the_directory_s_own_name_is_durable() {
        let parent = tempfile::tempdir().expect("a directory");
        let path = parent.path().join("log");
        let directory = Directory::open(&path).expect("room");
        assert!(was_synced(parent.path(), "log"));
        directory.sync_name().expect("it can be synced");
        assert!(was_synced(parent.path(), "log"));
    }
}
