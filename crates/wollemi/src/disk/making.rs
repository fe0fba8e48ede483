//! Creation of a database of level `disk`: its steps, and what a crash between them leaves.
//!
//! 1. The log, with no record of changes.
//! 2. The manifest of an empty checkpoint, which names the log's end. The database exists once its name is durable, not
//!    before.
//! 3. The pool. Its header has the log position before the file gets the pool's name.
//!
//! M1 A crash before 2 leaves neither manifest nor pool nor run, and at most a log without a record of changes and a
//!    manifest under its temporary name. Such files never belong to a database that has acknowledged anything, since
//!    that has a manifest from 2 on. They are removed, and the database is created again. All other files without
//!    manifest and pool are refused and stay as they are.
//! M2 From 2 on the manifest and the log hold the content of the database: a crash before 3 leaves what an opening
//!    rebuilds after the loss of a pool. The opening first writes the manifest again ([`Manifest::settle`]), because
//!    the medium may lack its name.
//! M3 Creation never leaves a pool without a log position. If a machine crash leaves a pool without one, the pool has
//!    level `process`, or was about to get its log, and may hold data that no log contains.

use crate::disk::beside::clear;
use crate::disk::manifest::{self, Manifest, Run};
use crate::files_error::FilesError;
use log::{Disk, Log, Remains};
use pmem::pool::Uuid;
use std::sync::Arc;

/// Returns whether files of an interrupted creation exist (M1), with neither pool nor manifest.
///
/// # Errors
///
/// Files of a database that has held data, or foreign files with the names of a database's files.
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
        Remains::Used(file) => Err(FilesError::Bereft { file }),
        Remains::Unused => Ok(true),
        Remains::Nothing => Ok(is_aside),
    }
}

/// Creates the log and the manifest of an empty database (steps 1 and 2). Removes what is [`left_over`] first.
pub(crate) fn make<D: Disk>(
    disk: &Arc<D>,
    pool: Uuid,
    options: &log::LogOptions,
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
