//! `backup`, `restore` and `compact`: whole pools.

use super::{in_words, output};
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use pmem::pool::{lock_named, rename_new};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wollemi::{Copied, Db, Level, Snapshot};

/// The arguments of `backup`.
#[derive(Debug, clap::Args)]
pub struct Backup {
    /// The file to write, `-` for the standard output. It appears, and replaces an older one, once it is complete
    file: PathBuf,
}

/// The arguments of `restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The pool must not be there: restore makes it. It is there when it is whole.")]
pub struct Restore {
    /// The file to read, `-` for the standard input
    file: PathBuf,
}

/// The arguments of `compact`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Needs room for the new file beside the old one. The old one is replaced when the new one is whole; \
                  until then a crash or an error leaves it as it was. The new one has its owner, group, mode and access \
                  control list, but no other extended attribute of it."
)]
pub struct Compact {
    /// Only give the blocks of free pages back to the file system, without rewriting. Needs no disk space
    #[arg(long)]
    in_place: bool,
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    copied: Copied,
    seconds: f64,
    /// Bytes of the file before; for `compact` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
    /// Bytes of the file now, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
}

#[derive(Serialize)]
struct GivenBack {
    /// Bytes whose blocks the file system has again.
    given_back: u64,
}

impl Backup {
    /// Writes all maps to the file.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let db = context.open_to_read()?;
        let snapshot = db.snapshot()?;
        let started = Instant::now();
        let progress = spinner();
        if is_std(&self.file) {
            let mut out = output();
            snapshot.backup(&mut out, |copied| show(&progress, copied))?;
            progress.finish_and_clear();
            return Ok(Outcome::Done);
        }
        let pool = context.pool();
        let copied = to_file(&snapshot, &pool, &self.file, &|| false, |copied| {
            show(&progress, copied)
        })?;
        progress.finish_and_clear();
        summarize("backed up", copied, started, None, context.json)
    }
}

impl Restore {
    /// Makes a pool of a backup.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let pool = context.pool();
        if pool.exists() {
            return Err(Failure::Usage(format!(
                "'{}' is there: restore makes a new pool (--pool)",
                pool.display()
            )));
        }
        let log = log_of(&pool);
        if log.exists() {
            return Err(Failure::Usage(format!(
                "'{}' is there, of which the pool that it was beside would be made anew: remove it first, or restore \
                 elsewhere (--pool)",
                log.display()
            )));
        }
        let name = self.file.display().to_string();
        let mut input: Box<dyn io::Read> = if is_std(&self.file) {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(&self.file).map_err(|error| Failure::input(format!("'{name}'"), error))?;
            Box::new(file)
        };
        let started = Instant::now();
        let progress = spinner();
        let options = context.to_write()?;
        let level = context.level();
        // A log begins when the pool has its name.
        let before = match level {
            Level::Disk => Level::Process,
            level => level,
        };
        let copied = in_its_place(&pool, ".restore", rename_new, |part| {
            let db = options.clone().level(before).open(part)?;
            let mut input = BufReader::with_capacity(1 << 18, &mut input);
            Ok(db.restore(&mut input, |copied| show(&progress, copied))?)
        })?;
        if level == Level::Disk {
            options.create(false).open(&pool)?;
        }
        progress.finish_and_clear();
        summarize("restored", copied, started, None, context.json)
    }
}

impl Compact {
    /// Rewrites the pool, in key order and without holes.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let pool = context.pool();
        if self.in_place {
            return in_place(context);
        }
        let started = Instant::now();
        let progress = spinner();
        let options = context.to_write()?;
        // The file itself, so that a link to it stays one.
        let pool = fs::canonicalize(&pool).unwrap_or(pool);
        // It stays locked until the new one has its name. An opening that waits for the lock then opens the new one.
        let db = options.clone().create(false).recovery_threads(0).open(&pool)?;
        if db.level() == Level::Disk {
            return Err(Failure::Usage(format!(
                "'{}' has a log, which would not be the new file's: compact it at level `process` (`wollemi level --to \
                 process`, and afterwards `--to disk`), or with --in-place",
                pool.display()
            )));
        }
        let old = fs::metadata(&pool).map_err(failed(&pool))?;
        let before = old.len();
        let copied = in_its_place(&pool, ".compact", replace, |part| {
            let new: Db = options.page_size(db.stats()?.page_size).open(part)?;
            // Before there is anything in it.
            keep_access(&pool, &old, part);
            Ok(new.copy_from(&db.snapshot()?, |copied| show(&progress, copied))?)
        })?;
        progress.finish_and_clear();
        let after = fs::metadata(&pool).map_err(failed(&pool))?.len();
        summarize("compacted", copied, started, Some((before, after)), context.json)
    }
}

/// The directory of a pool's log.
fn log_of(pool: &Path) -> PathBuf {
    let mut name = pool.as_os_str().to_owned();
    name.push(".disk");
    name.into()
}

/// Gives a file the owner, group, mode and access control list of another. Says so where that is not permitted.
fn keep_access(pool: &Path, old: &fs::Metadata, new: &Path) {
    let (owner, group) = (old.uid(), old.gid());
    let owned = chown(new, Some(owner), Some(group)).inspect_err(|_| {
        // Its owner may give a file to a group of its own.
        let _ = chown(new, None, Some(group));
    });
    // Afterwards, as a change of the owner may change the mode.
    let permitted = fs::set_permissions(new, old.permissions());
    for (kept, what) in [
        (owned, format!("owner {owner} and group {group}")),
        (permitted, format!("mode {:o}", old.mode() & 0o7777)),
        (keep_acl(pool, new), "the access control list".into()),
    ] {
        if let Err(error) = kept {
            // A file of another owner holds the same.
            let _ = writeln!(
                io::stderr(),
                "'{}' cannot have {what} of the old file: {error}",
                new.display()
            );
        }
    }
}

/// Gives a file the access control list of another. Without one, it loses what it may have inherited from its
/// directory.
fn keep_acl(old: &Path, new: &Path) -> io::Result<()> {
    const ACL: &str = "system.posix_acl_access";
    // The longest that Linux takes.
    let mut acl = vec![0; 64 << 10];
    let kept = match rustix::fs::getxattr(old, ACL, &mut acl) {
        Ok(len) => rustix::fs::setxattr(new, ACL, &acl[..len], XattrFlags::empty()),
        Err(Errno::NODATA) => rustix::fs::removexattr(new, ACL),
        Err(error) => Err(error),
    };
    match kept {
        // There is none to keep, or the file system has none.
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        kept => Ok(kept?),
    }
}

/// Gives free pages back to the file system.
fn in_place(context: &Context) -> Result<Outcome, Failure> {
    let db = context.open_to_write(false)?;
    let given_back = db.give_back()?;
    if context.json {
        let mut out = output();
        serde_json::to_writer(&mut out, &GivenBack { given_back }).map_err(io::Error::from)?;
        writeln!(out)?;
        out.flush()?;
    } else {
        // The work is done even if the report cannot be printed.
        let _ = writeln!(io::stderr(), "gave {} back", BinaryBytes(given_back));
    }
    Ok(Outcome::Done)
}

/// Writes a snapshot of a pool to a file, which it replaces when it is whole and on the medium; until then a crash or
/// an error leaves it as it was. It fails soon after `ended` says so.
pub fn to_file(
    snapshot: &Snapshot,
    pool: &Path,
    file: &Path,
    ended: &dyn Fn() -> bool,
    progress: impl FnMut(&Copied),
) -> Result<Copied, Failure> {
    let pool = fs::canonicalize(pool).map_err(failed(pool))?;
    for name in [file, &beside(file, PART)] {
        // What is not there is not the pool.
        if fs::canonicalize(name).is_ok_and(|name| name == pool) {
            let name = name.display();
            return Err(Failure::Usage(format!(
                "'{name}' is the pool: a backup needs a file of its own"
            )));
        }
    }
    in_its_place(file, PART, replace, |part| {
        let file = File::create_new(part).map_err(failed(part))?;
        // No other opens it to write, so this does not wait.
        file.lock().map_err(failed(part))?;
        let mut out = BufWriter::with_capacity(1 << 18, Ending { file, ended });
        let copied = snapshot.backup(&mut out, progress)?;
        out.into_inner()
            .map_err(|error| failed(part)(error.into_error()))?;
        Ok(copied)
    })
}

/// What a backup's file has behind its name until it is whole.
const PART: &str = ".part";

/// A file whose writes fail once `ended` says so.
struct Ending<'e> {
    file: File,
    ended: &'e dyn Fn() -> bool,
}

impl Write for Ending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self.ended)() {
            true => Err(io::Error::other("given up, as the server ends")),
            false => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// How a file gets its name: in the place of an older one.
fn replace(part: &Path, path: &Path) -> io::Result<()> {
    fs::rename(part, path)
}

/// Makes a file under another name, which `make` has locked while it writes, and gives it its own by `name` when it is
/// whole and on the medium. Where that fails, what there was stays.
fn in_its_place(
    path: &Path,
    suffix: &str,
    name: impl FnOnce(&Path, &Path) -> io::Result<()>,
    make: impl FnOnce(&Path) -> Result<Copied, Failure>,
) -> Result<Copied, Failure> {
    let part = &beside(path, suffix);
    // What an earlier one has left, if it was interrupted.
    match alone(part) {
        Ok(_left_over) => fs::remove_file(part).map_err(failed(part))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(part)(error)),
    }
    let made = make(part).and_then(|copied| {
        // Closing a pool writes it to the medium, but dropping it returns no error, so it is synced once more. From
        // here on the file is locked again until it has its name.
        let file = alone(part).map_err(failed(part))?;
        file.sync_all().map_err(failed(part))?;
        name(part, path).map_err(failed(path))?;
        sync_folder(path).map_err(failed(path))?;
        Ok(copied)
    });
    if made.is_err() && alone(part).is_ok() {
        // The failure is what there is to say; a file that is not there is none.
        let _ = fs::remove_file(part);
    }
    made
}

/// The file, locked: none of its kind is being made under this name by another process.
fn alone(part: &Path) -> io::Result<File> {
    let file = File::open(part)?;
    lock_named(&file, part)?;
    Ok(file)
}

/// What went wrong with a file.
fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let name = format!("'{}'", path.display());
    move |error| Failure::input(name.clone(), error)
}

/// What was done: as JSON on the standard output, or for a person on the error stream.
fn summarize(
    done: &str,
    copied: Copied,
    started: Instant,
    sizes: Option<(u64, u64)>,
    json: bool,
) -> Result<Outcome, Failure> {
    let seconds = started.elapsed().as_secs_f64();
    if json {
        let mut out = output();
        let (before, after) = sizes.unzip();
        let summary = Summary {
            copied,
            seconds,
            before,
            after,
        };
        serde_json::to_writer(&mut out, &summary).map_err(io::Error::from)?;
        writeln!(out)?;
        out.flush()?;
    } else {
        let sizes = sizes.map_or_else(String::new, |(before, after)| {
            format!(": {} before, {} now", BinaryBytes(before), BinaryBytes(after))
        });
        // The work is done even if the report cannot be printed.
        let _ = writeln!(
            io::stderr(),
            "{done} {} of {} maps in {seconds:.2} s{sizes}",
            in_words(copied.entries),
            copied.maps
        );
    }
    Ok(Outcome::Done)
}

fn show(progress: &ProgressBar, copied: &Copied) {
    progress.set_message(format!(
        "{}, {}",
        in_words(copied.entries),
        BinaryBytes(copied.bytes)
    ));
    progress.tick();
}

/// On the error stream; it hides itself where that is no terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    match ProgressStyle::with_template("{spinner} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The same name with something behind it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes what happened to the names in a file's folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn is_std(path: &Path) -> bool {
    path == Path::new("-")
}
