//! Databases.

use crate::call::{FromC, call};
use crate::handle::{ThreadSafe, kinds};
use crate::memory::copy_text;
use crate::options::Opening;
use crate::status::{Failure, c_string, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_char, c_int, c_void};
use wollemi::{Db, Error, Level, Options};

kinds! {
    wollemi_db, Db, b"data", "database";
}

impl ThreadSafe for Db {}

fn level_of(db: &Db) -> wollemi_level {
    match db.level() {
        Level::Process => wollemi_level::WOLLEMI_LEVEL_PROCESS,
        Level::Disk => wollemi_level::WOLLEMI_LEVEL_DISK,
        Level::Power => wollemi_level::WOLLEMI_LEVEL_POWER,
    }
}

/// Returns the version of the library, as "0.1.0". The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn wollemi_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Checks whether a program compiled with a header of this version can use the library: pass WOLLEMI_VERSION_MAJOR and
/// WOLLEMI_VERSION_MINOR. Returns WOLLEMI_OK or WOLLEMI_ERROR_UNSUPPORTED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_check_version(major: u32, minor: u32) -> wollemi_status {
    // SAFETY: there is no pointer.
    unsafe {
        call(|_| {
            // Before 1.0.0 a minor version may break its users; from 1.0.0 on a newer one includes all of an older one.
            let (ours, fits) = (WOLLEMI_VERSION_MINOR, major == WOLLEMI_VERSION_MAJOR);
            if fits && (if major == 0 { minor == ours } else { minor <= ours }) {
                return Ok(WOLLEMI_OK);
            }
            let message = format!(
                "the program was compiled for Wollemi {major}.{minor}, but this library is {}",
                env!("CARGO_PKG_VERSION")
            );
            Err(Failure::new(WOLLEMI_ERROR_UNSUPPORTED, message))
        })
    }
}

/// Opens the database in the file `path` with these options; NULL: with the defaults, which create a missing file.
/// Close it by wollemi_close().
///
/// Only one process at a time can have a pool open, and only once. After wollemi_close() of all of its handles, or kill
/// -9, the next opening takes a millisecond, at any size (except for a database of level `disk` after a loss of power,
/// which is rebuilt). The library does not touch signals. After fork() the child must not use the database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_open(
    path: *const c_char,
    options: *const wollemi_options,
    db: *mut *mut wollemi_db,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let db = c.out_handle(db)?;
            let path = c.path(path)?;
            if options.is_null() {
                return db.open(Options::new().open(path)?);
            }
            db.open(c.hold::<Opening>(options)?.0.open(path)?)
        })
    }
}

/// Opens a database in memory, which is lost with its last handle. `options` as for wollemi_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_open_in_memory(
    options: *const wollemi_options,
    db: *mut *mut wollemi_db,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let db = c.out_handle(db)?;
            if options.is_null() {
                return db.open(Options::new().anonymous()?);
            }
            db.open(c.hold::<Opening>(options)?.0.anonymous()?)
        })
    }
}

/// Closes the handle. The pool itself is closed, and written to its file, when its last handle is closed, including
/// those of its maps, cursors, batches, transactions, snapshots and sweepers, in any order. A program that ends without
/// closing loses nothing that was acknowledged. Ignores NULL.
///
/// If the handle is the last one, WOLLEMI_OK means that the pool is on the medium. If the medium fails, the call
/// returns WOLLEMI_ERROR_SYSTEM, for example: the handle is closed, the pool counts as one whose process was killed,
/// and which writes reached the medium is unknown. So a program that copies or renames the file next closes this handle
/// last: closing the others reports no such failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_close(db: *mut wollemi_db) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| match c.take::<Db>(db)?.map_or(Ok(()), Db::close) {
            // Another handle keeps the pool open.
            Ok(()) | Err(Error::InUse) => Ok(WOLLEMI_OK),
            Err(failed) => Err(failed.into()),
        })
    }
}

/// Returns in `level` the wollemi_level: which failures acknowledged writes of this database survive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_get_level(db: *const wollemi_db, level: *mut c_int) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let level = c.out(level, 0)?;
            level.set(level_of(c.share::<Db>(db)?) as c_int);
            Ok(WOLLEMI_OK)
        })
    }
}

/// Waits until all writes that have returned are durable at the database's level, including WOLLEMI_EVENTUAL ones. At
/// the levels `process` and `power` they already are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_sync(db: *const wollemi_db) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            c.share::<Db>(db)?.sync()?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// Takes a checkpoint, so that the log can drop older records. Covers all entries if `full`, otherwise only the changes
/// since the last one if these are fewer. The database also takes checkpoints by itself. Has no effect at levels other
/// than `disk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_checkpoint(db: *const wollemi_db, full: bool) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            c.share::<Db>(db)?.checkpoint(full)?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// Waits until the search for unused space that follows an opening has ended. No other call needs it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_wait_recovered(db: *const wollemi_db) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            c.share::<Db>(db)?.wait_recovered();
            Ok(WOLLEMI_OK)
        })
    }
}

/// Returns the file's free pages to its file system; sets `bytes`, which may be NULL, to their number of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_give_back(db: *const wollemi_db, bytes: *mut u64) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let bytes = c.optional_out(bytes, 0);
            bytes.set(c.share::<Db>(db)?.give_back()?);
            Ok(WOLLEMI_OK)
        })
    }
}

/// Returns numbers of the database. `size` is sizeof(wollemi_numbers): a later version may have more of them, and fills
/// as many as the program knows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_stats(
    db: *const wollemi_db,
    numbers: *mut wollemi_numbers,
    size: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            if size != size_of::<wollemi_numbers>() {
                return Err(Failure::argument(format!(
                    "{size} is not the size of wollemi_numbers"
                )));
            }
            let numbers = c.out(numbers, wollemi_numbers::default())?;
            let db = c.share::<Db>(db)?;
            let stats = db.stats()?;
            numbers.set(wollemi_numbers {
                level: level_of(db) as u32,
                generation: stats.generation,
                crashes: stats.crashes,
                reserved: stats.space.reserved,
                used: stats.space.used,
                free: stats.space.free,
                unswept: stats.space.unswept,
                max_size: stats.max_size,
                maps: stats.maps.len() as u64,
                opened_in: stats.opened_in,
            });
            Ok(WOLLEMI_OK)
        })
    }
}

fn json(what: &impl serde::Serialize) -> Result<*mut c_char, Failure> {
    let text = serde_json::to_string(what);
    copy_text(text.map_err(|error| Failure::new(WOLLEMI_ERROR_BUG, error.to_string()))?)
}

/// Returns all statistics that need no walk of the maps, as a JSON object. Free it by wollemi_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_stats_json(db: *const wollemi_db, json: *mut *mut c_char) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let out = c.out(json, std::ptr::null_mut())?;
            out.set(self::json(&c.share::<Db>(db)?.stats()?)?);
            Ok(WOLLEMI_OK)
        })
    }
}

/// Walks the whole pool and looks for damage: returns WOLLEMI_OK, or WOLLEMI_ERROR_DAMAGED if it has found some. No
/// thread may write meanwhile, or the report may contain false faults. Sets `json`, which may be NULL, to the report as
/// a JSON object; free it by wollemi_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_check(db: *const wollemi_db, json: *mut *mut c_char) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let wants = !json.is_null();
            let out = c.optional_out(json, std::ptr::null_mut());
            let check = c.share::<Db>(db)?.check()?;
            if wants {
                out.set(self::json(&check)?);
            }
            match check.is_clean() {
                true => Ok(WOLLEMI_OK),
                false => Err(Failure::new(
                    WOLLEMI_ERROR_DAMAGED,
                    "the check found damage: see its report",
                )),
            }
        })
    }
}

/// Calls `show` for each map, in the order of their names, until it returns a value other than 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_maps(
    db: *const wollemi_db,
    show: wollemi_show_map,
    argument: *mut c_void,
) -> wollemi_status {
    let run = |c: &FromC<'_>| {
        let show = show.ok_or_else(|| Failure::argument("NULL instead of a function"))?;
        for map in c.share::<Db>(db)?.maps()? {
            let (name, index) = (c_string(map.name), c_string(map.index));
            // SAFETY: a function of the header's type, used as the header says; both texts outlive the call.
            if unsafe { show(name.as_ptr(), index.as_ptr(), argument) } != 0 {
                break;
            }
        }
        Ok(WOLLEMI_OK)
    };
    // SAFETY: the caller keeps to the header.
    unsafe { call(run) }
}
