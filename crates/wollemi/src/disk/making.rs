//! A new database of level `disk`: its steps, and what a crash amid them leaves.
//!
//! 1. The log, which holds no record of changes.
//! 2. The manifest of a checkpoint of nothing, which names the log's end. Its durable name is what makes the database:
//!    before, there is none.
//! 3. The pool. Its header has the log position before the file has the pool's name.
//!
//! M1 A crash before 2 leaves neither manifest nor pool, no run, and a log without a record of changes. Files like that
//!    never belong to a database that has acknowledged anything, since it has a manifest from 2 on: they are removed, and
//!    the database is made anew. All other files without manifest and pool are refused and stay as they are.
//! M2 From 2 on the manifest and the log say what the database holds: a crash before 3 leaves what an opening rebuilds
//!    where a pool was lost. It first writes the manifest again ([`Manifest::settle`]), whose name the medium may lack.
//! M3 A making never leaves a pool without a log position. One that the machine has left without is of level `process`, or
//!    was being given its log, and may hold what no log does.

use crate::disk::manifest::{self, Manifest, Run};
use crate::disk::opening::clear;
use crate::files_error::FilesError;
use log::{Disk, Log, Trace};
use pmem::pool::Uuid;
use std::sync::Arc;

/// Whether there are files that an interrupted making has left (M1), beside neither pool nor manifest.
///
/// # Errors
///
/// Files of a database that has held something, or that have the names of a database's files and are others'.
pub(crate) fn left_over<D: Disk>(disk: &D) -> Result<bool, FilesError> {
    let names = disk.list()?;
    if let Some(run) = names.iter().find(|name| Run::is_name(name)) {
        return Err(FilesError::Bereft { file: run.clone() });
    }
    let is_aside = names.iter().any(|name| name == manifest::NEW);
    if is_aside {
        Manifest::check_aside(disk)?;
    }
    match Log::trace(disk)? {
        Trace::Used(file) => Err(FilesError::Bereft { file }),
        Trace::Unused => Ok(true),
        Trace::Nothing => Ok(is_aside),
    }
}

/// Makes the log and the manifest of a database that holds nothing (steps 1 and 2). What is [`left_over`] goes first.
pub(crate) fn make<D: Disk>(
    disk: &Arc<D>,
    pool: Uuid,
    options: &log::Options,
) -> Result<Manifest, FilesError> {
    clear(&**disk, None)?;
    let log = Log::create(disk.clone(), pool.to_u128(), options.clone())?;
    let end = log.appended().0;
    let manifest = Manifest {
        uuid: pool.to_u128(),
        from: end,
        until: end,
        ..Manifest::default()
    };
    manifest.write(&**disk)?;
    Manifest::put_in_place(&**disk, None)?;
    Ok(manifest)
}
