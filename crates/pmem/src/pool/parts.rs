//! Files that get their name only when they are complete.
//!
//! I1 While a file is being written it is locked, and its name is that of the final file (200 bytes of it at most)
//!    with a dot before it and `.wollemi-` and 16 random hexadecimal digits after it. Such a name does not clash with a
//!    user's.
//! I2 A regular file with such a name that is not locked was left by an interrupted process, or its creator has not
//!    locked it yet. That creator fails if another process locks or removes the file first ([`create_part`]).

use super::lock_named;
use crate::platform;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Separates the name from the digits.
const MARK: &[u8] = b".wollemi-";

/// Random digits.
const DIGITS: usize = 16;

/// Bytes of the name that are kept, so that the whole fits a file system's limit on names.
const KEPT: usize = 200;

/// A path that leads through this many symbolic links counts as a cycle.
const LINKS: usize = 40;

/// Returns a temporary name for the file that is to become `path`; no file has it. Removes files that interrupted
/// processes have left for the same path.
///
/// # Errors
///
/// If another process is writing a file for this path, and on errors of the file system.
pub fn part_of(path: &Path) -> io::Result<PathBuf> {
    let begin = begin(path)?;
    // If the folder is not readable, nothing left behind is found.
    for left in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = left.file_name();
        if is_part(&name, &begin) && left.file_type().is_ok_and(|kind| kind.is_file()) {
            remove_left(&path.with_file_name(name))?;
        }
    }
    let number = u128::from_ne_bytes(platform::random()?) as u64;
    let mut name = begin;
    name.extend(format!("{number:0DIGITS$x}").bytes());
    Ok(path.with_file_name(OsString::from_vec(name)))
}

/// Creates a file with this mode under a [temporary name](part_of) for `path`, and locks it.
///
/// # Errors
///
/// As for [`part_of`], and if another process has removed or locked the file before it was locked here.
pub fn create_part(path: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    let part = part_of(path)?;
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&part)?;
    // Fails if another process has taken the file for one left behind before it was locked.
    lock_named(&file, &part)?;
    Ok((file, part))
}

/// The path of the file that `path` leads to: another one if `path` is a symbolic link. A replacement of the file must
/// have its name, not the link's. The file need not exist.
///
/// # Errors
///
/// If links form a cycle, and on errors of the file system.
pub fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => path = folder_of(&path).join(fs::read_link(&path)?),
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(error);
            }
            _ => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Makes changes of the names in a file's folder durable.
///
/// # Errors
///
/// Errors of the file system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The common prefix of the names of all files that are to become `path`.
fn begin(path: &Path) -> io::Result<Vec<u8>> {
    let no_name = || io::Error::new(ErrorKind::InvalidInput, "not the name of a file");
    let name = path.file_name().ok_or_else(no_name)?.as_bytes();
    Ok([b".", &name[..name.len().min(KEPT)], MARK].concat())
}

fn is_part(name: &OsStr, begin: &[u8]) -> bool {
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = name.as_bytes().strip_prefix(begin);
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(digit))
}

fn remove_left(part: &Path) -> io::Result<()> {
    match File::open(part) {
        Ok(left) => {
            lock_named(&left, part)
                .map_err(|error| io::Error::new(error.kind(), format!("'{}': {error}", part.display())))?;
            fs::remove_file(part)
        }
        // It was renamed, or belongs to another user, who can remove it.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the files beside a path, only those that interrupted processes have left for it are removed.
    #[test]
    fn only_parts_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pool");
        let others = [
            "a.pool.part",
            ".a.pool.wollemi-",
            ".a.pool.wollemi-0123456789abcdeF",
            ".a.pool.wollemi-0123456789abcdef0",
            ".b.pool.wollemi-0123456789abcdef",
        ];
        for name in others {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let of_folder = folder.path().join(".a.pool.wollemi-0000000000000000");
        fs::create_dir(&of_folder).expect("made");
        let left = folder.path().join(".a.pool.wollemi-0123456789abcdef");
        fs::write(&left, "left").expect("written");

        let (file, part) = create_part(&path, 0o600).expect("made");
        assert!(!left.exists());
        assert!(is_part(
            part.file_name().expect("a name"),
            &begin(&path).expect("a name")
        ));
        assert!(of_folder.exists());
        for name in others {
            assert!(folder.path().join(name).exists(), "{name}");
        }
        let busy = part_of(&path).expect_err("one is being written");
        assert!(busy.to_string().contains("another process"), "{busy}");
        drop(file);
        part_of(&path).expect("it was left");
        assert!(!part.exists());
    }

    /// The name of a part is no longer than a file system allows, and not shortened without need.
    #[test]
    fn long_names_have_parts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x".repeat(255));
        let (_, part) = create_part(&path, 0o600).expect("made");
        fs::rename(part, &path).expect("renamed");
    }

    /// Links are followed to where a file is, or would be.
    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).expect("linked");
        link("second", "first");
        link("there/file", "second");
        link("circle", "circle");
        assert_eq!(behind_links(&at("first")).expect("leads on"), at("there/file"));
        assert_eq!(behind_links(&at("other")).expect("itself"), at("other"));
        behind_links(&at("circle")).expect_err("leads nowhere");
    }
}
