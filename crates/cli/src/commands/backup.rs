//! `backup`, `restore` and `compact`: whole pools.

use super::place::{failed, identity, is_replaced, is_std, make_pool, warn_refused, write_file};
use super::{in_words, output};
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use crate::stop::{self, Stoppable};
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use pmem::pool::{Permissions, folder_of, part_of, rename_new};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wollemi::{Copied, Db, Level, Snapshot};

/// The arguments of `backup`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A new file gets the pool's permissions; a replacement keeps those of the file it replaces. Pipes and \
                  devices are written to directly.\n\n\
                  The pool is checked first. If that finds damage, the exit code is 4, and nothing is written unless \
                  --damaged is given."
)]
pub struct Backup {
    /// Write everything readable even if the check finds damage: damaged bytes then get valid checksums in the backup
    #[arg(long)]
    damaged: bool,
    /// The file to write, `-` for the standard output. The file appears under its name only when it is complete
    file: PathBuf,
}

/// The arguments of `restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The pool must not exist. It appears under its name only when it is complete.")]
pub struct Restore {
    /// The file to read, `-` for the standard input
    file: PathBuf,
}

/// The arguments of `compact`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Needs disk space for both files. The old file is only read, and replaced once the new one is complete: \
                  until then a crash, a signal or an error leaves it unchanged. (What a crash has left of a log beside \
                  it is removed first.) The new file gets the old one's owner, \
                  group, mode and access control list, but none of its other extended attributes.\n\n\
                  The pool is checked first. If that finds damage, the exit code is 4, and nothing is changed unless \
                  --damaged is given: the new file has new checksums, so copied damage can no longer be detected."
)]
pub struct Compact {
    /// Only return the blocks of free pages to the file system, without rewriting. Needs no disk space
    #[arg(long)]
    in_place: bool,
    /// Copy everything readable even if the check finds damage: damaged bytes then count as valid, and unreachable
    /// entries are lost
    #[arg(long, conflicts_with = "in_place")]
    damaged: bool,
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    copied: Copied,
    seconds: f64,
    /// Bytes of the file before; only for `compact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
    /// Bytes of the file afterwards; only for `compact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
}

#[derive(Serialize)]
struct GivenBack {
    /// Bytes whose blocks were returned to the file system.
    given_back: u64,
}

impl Backup {
    /// Writes all maps to the file.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        if is_std(&self.file) && context.json {
            return Err(Failure::Usage("--json reports on a backup in a file".into()));
        }
        let db = context.open_to_read()?;
        if !self.damaged && !db.check()?.is_clean() {
            return Err(Failure::DamagedSource {
                pool: context.pool(),
                is_overridable: true,
            });
        }
        let snapshot = db.snapshot()?;
        let started = Instant::now();
        let progress = spinner();
        if is_std(&self.file) {
            let mut out = output();
            snapshot.backup(&mut out, |copied| show(&progress, copied))?;
            progress.finish_and_clear();
            return Ok(Outcome::Done);
        }
        if is_replaced(&self.file) {
            stop::on_signals();
        }
        let pool = context.pool();
        let copied = to_file(&snapshot, &pool, &self.file, &stop::check, |copied| {
            show(&progress, copied)
        })?;
        progress.finish_and_clear();
        summarize("backed up", copied, started, None, context.json)
    }
}

impl Restore {
    /// Restores a pool from a backup.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        let pool = context.pool();
        if pool.exists() {
            return Err(Failure::Usage(format!(
                "'{}' exists: restore creates a new pool (--pool)",
                pool.display()
            )));
        }
        // The target file, if the name is a link.
        let pool = pmem::pool::behind_links(&pool).map_err(failed(&pool))?;
        let log = log_of(&pool);
        if has_files(&log) {
            return Err(Failure::Usage(format!(
                "'{}' exists, and a pool beside it would be rebuilt from it: remove it first, or restore \
                 elsewhere (--pool)",
                log.display()
            )));
        }
        let name = match is_std(&self.file) {
            true => "standard input".to_owned(),
            false => format!("'{}'", self.file.display()),
        };
        let input = match is_std(&self.file) {
            true => Stoppable::stdin(),
            false => File::open(&self.file).map(Stoppable::file),
        };
        let input = input.map_err(|error| Failure::input(name.clone(), error))?;
        let mut input = BufReader::with_capacity(1 << 18, input);
        let started = Instant::now();
        let progress = spinner();
        let options = context.to_write()?;
        let level = context.level();
        // The log begins once the pool has its name.
        let before = match level {
            Level::Disk => Level::Process,
            level => level,
        };
        stop::on_signals();
        let part = &part_of(&pool).map_err(failed(&pool))?;
        let copied = make_pool(&pool, part, rename_new, || {
            let db = options.clone().level(before).open(part)?;
            let copied = db.restore(&mut input, |copied| show(&progress, copied))?;
            refuse_more(&mut input, &name)?;
            db.close()?;
            Ok(copied)
        })?;
        if level == Level::Disk {
            let options = stop::ends_checkpoints(options.create(false));
            options.open(&pool)?.close()?;
        }
        progress.finish_and_clear();
        summarize("restored", copied, started, None, context.json)
    }
}

/// Refuses an input with bytes after the backup's end, such as a second backup.
fn refuse_more(input: &mut impl Read, name: &str) -> Result<(), Failure> {
    let fail = |error| Failure::input(name, error);
    match input.take(1).read_to_end(&mut Vec::new()).map_err(fail)? {
        0 => Ok(()),
        _ => Err(Failure::input(
            name,
            "not a backup: bytes follow its end, perhaps of a second backup",
        )),
    }
}

impl Compact {
    /// Rewrites the pool, in key order and without holes.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        if self.in_place {
            return in_place(context);
        }
        // The file itself, so that a link to it is kept.
        let pool = context.pool();
        let pool = pmem::pool::behind_links(&pool).map_err(failed(&pool))?;
        let options = context.to_write()?;
        if context.level() == Level::Disk {
            return Err(has_no_log_to_keep(&pool));
        }
        let started = Instant::now();
        let progress = spinner();
        let opened = identity(&pool).map_err(failed(&pool))?;
        let mut db = open_to_copy(context, &pool)?;
        // A user without write permission on the file may not replace it.
        File::options().write(true).open(&pool).map_err(failed(&pool))?;
        if !self.damaged && !db.check()?.is_clean() {
            return Err(Failure::DamagedSource {
                pool,
                is_overridable: true,
            });
        }
        stop::on_signals();
        if has_files(&log_of(&pool)) {
            // Leftovers of a log, which name the old pool's id: an opening to write removes them. The new file has
            // another id, so they would count as another pool's.
            drop(db);
            options.clone().create(false).open(&pool)?.close()?;
            db = open_to_copy(context, &pool)?;
        }
        // The old pool stays locked until the new file has its name. An opening that waits for the lock then opens the
        // new file.
        let old = Permissions::of(&pool).map_err(failed(&pool))?;
        let before = fs::metadata(&pool).map_err(failed(&pool))?.len();
        let part = &part_of(&pool).map_err(failed(&pool))?;
        let copied = make_pool(
            &pool,
            part,
            |part, pool| {
                // Another compaction, which reads the same file, may have replaced that file, and the replacement may
                // have been written to since.
                let folder = File::open(folder_of(pool))?;
                folder.lock()?;
                match identity(pool)? == opened {
                    true => fs::rename(part, pool),
                    false => Err(io::Error::other(
                        "another file has taken this name meanwhile: it is kept",
                    )),
                }
            },
            || {
                let new: Db = options.page_size(db.stats()?.page_size).open(part)?;
                // The permissions are set before the file holds data.
                warn_refused(old.give_to(part), part);
                let copied = new.copy_from(&db.snapshot()?, |copied| {
                    if let Some(signal) = stop::signal() {
                        // The old pool was only read, so no other cleanup is needed.
                        let _ = fs::remove_file(part);
                        std::process::exit(128 + signal);
                    }
                    show(&progress, copied);
                })?;
                new.close()?;
                Ok(copied)
            },
        )?;
        progress.finish_and_clear();
        let after = fs::metadata(&pool).map_err(failed(&pool))?.len();
        summarize("compacted", copied, started, Some((before, after)), context.json)
    }
}

/// Opens a pool without a log read-only, to copy it.
fn open_to_copy(context: &Context, pool: &Path) -> Result<Db, Failure> {
    let db = context.to_read().recovery_threads(0).open(pool)?;
    match db.level() {
        Level::Disk => Err(has_no_log_to_keep(pool)),
        _ => Ok(db),
    }
}

fn has_no_log_to_keep(pool: &Path) -> Failure {
    Failure::Usage(format!(
        "'{}': its log would not fit the new file: compact a pool at level `process` (`wollemi level --to process`, and \
         afterwards `--to disk`), or one that has a log with --in-place",
        pool.display()
    ))
}

/// Returns the directory of a pool's log.
pub fn log_of(pool: &Path) -> PathBuf {
    let mut name = pool.as_os_str().to_owned();
    name.push(".disk");
    name.into()
}

/// Returns whether a file has the name of a log's directory, or the directory has files. An empty one is not a log.
fn has_files(log: &Path) -> bool {
    fs::read_dir(log).map_or(log.exists(), |mut files| files.next().is_some())
}

/// Returns free pages to the file system.
fn in_place(context: &Context) -> Result<Outcome, Failure> {
    let db = context.open_to_write(false)?;
    let given_back = db.give_back()?;
    db.close()?;
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

/// Writes a snapshot of a pool to a file. It replaces an existing file once it is complete and on the medium; until
/// then a crash or an error leaves that file unchanged. Fails soon after `ended` does.
pub fn to_file(
    snapshot: &Snapshot,
    pool: &Path,
    file: &Path,
    ended: &dyn Fn() -> io::Result<()>,
    progress: impl FnMut(&Copied),
) -> Result<Copied, Failure> {
    write_file(file, pool, "a backup", ended, |out| {
        Ok(snapshot.backup(out, progress)?)
    })
}

/// Reports the result: as JSON on the standard output, or for the user on the error stream.
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

/// Returns a spinner on the error stream, hidden unless that is a terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    match ProgressStyle::with_template("{spinner} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
