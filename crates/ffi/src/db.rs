//! Databases.

use crate::call::{FromC, call};
use crate::handle::{ThreadSafe, kinds};
use crate::memory::copy_text;
use crate::options::Opening;
use crate::status::{Failure, c_string, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_char, c_int, c_void};
use wollemi::{Db, IndexKind, Level, Options};

kinds! {
    wollemi_db, Db, b"data", "database";
}

impl ThreadSafe for Db {}

/// The index of this name.
pub fn index(name: &str) -> Result<IndexKind, Failure> {
    let found = name.parse::<IndexKind>();
    found.map_err(|unknown| Failure::argument(unknown.to_string()))
}

fn level_of(db: &Db) -> wollemi_level {
    match db.level() {
        Level::Process => wollemi_level::WOLLEMI_LEVEL_PROCESS,
        Level::Disk => wollemi_level::WOLLEMI_LEVEL_DISK,
        Level::Power => wollemi_level::WOLLEMI_LEVEL_POWER,
    }
}

/// The version of the library, as "0.1.0". There for good.
#[unsafe(no_mangle)]
pub extern "C" fn wollemi_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Whether the library is one that a program can use that was compiled with a header of this version: pass
/// WOLLEMI_VERSION_MAJOR and WOLLEMI_VERSION_MINOR. Answers WOLLEMI_OK or WOLLEMI_ERROR_UNSUPPORTED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_check_version(major: u32, minor: u32) -> wollemi_status {
    // SAFETY: there is no pointer.
    unsafe {
        call(|_| {
            // Before 1.0.0 a minor version may break what uses it; after it, a newer one has what an older one has.
            let (ours, fits) = (WOLLEMI_VERSION_MINOR, major == WOLLEMI_VERSION_MAJOR);
            if fits && (if major == 0 { minor == ours } else { minor <= ours }) {
                return Ok(WOLLEMI_OK);
            }
            let message = format!(
                "the program was compiled for Wollemi {major}.{minor}, and this library is {}",
                env!("CARGO_PKG_VERSION")
            );
            Err(Failure::new(WOLLEMI_ERROR_UNSUPPORTED, message))
        })
    }
}

/// Opens the database in the file `path`, as `options` say; NULL: with the defaults, so that it is created if it is not
/// there. Close it by wollemi_close().
///
/// One process at a time has a pool open, and that process once. After wollemi_close() of all of its handles, or kill
/// -9, the next opening takes a millisecond, at whatever size (except for a database of level `disk` after a loss of
/// power, which is built anew). Signals are not touched. A program that forks must not use the database in the child.
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

/// Opens a database in memory, which goes with its last handle. `options` as for wollemi_open().
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

/// Closes the handle. The pool itself is closed, and written to its file, when every handle of it is: of its maps, its
/// cursors, batches, transactions, snapshots and sweepers too, in any order. A program that ends without that loses
/// nothing that was acknowledged. NULL is nothing to close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_close(db: *mut wollemi_db) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Db>(db)) }
}

/// What acknowledged writes of this database survive: a wollemi_level in `level`.
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

/// Returns when all writes that have returned are durable at the database's level, those that are WOLLEMI_EVENTUAL too.
/// At the levels `process` and `power` they are already.
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

/// Takes a checkpoint, so that the log can forget what was written before; with `full` of all entries, else of what has
/// changed, where that is less. The database takes them by itself too. Does nothing at other levels than `disk`.
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

/// Waits until the search for unused space that follows an opening has ended. Nothing else needs to wait for it.
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

/// Gives the free pages of the file back to its file system; in `bytes`, which may be NULL, how many bytes these were.
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

/// Numbers of the database. `size` is sizeof(wollemi_numbers): a later version may have more of them, and fills as many
/// as the program knows.
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
                    "{size}: not the size of wollemi_numbers"
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

/// All statistics that the database has without walking its maps, as a JSON object. Give it back by wollemi_free().
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

/// Walks everything and looks for damage: WOLLEMI_OK, or WOLLEMI_ERROR_DAMAGED where some was found. No thread may
/// write meanwhile, or damage may be reported that is none. In `json`, which may be NULL, the report as a JSON object,
/// to be given back by wollemi_free().
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
                    "the check has found damage: see its report",
                )),
            }
        })
    }
}

/// Shows all maps, in the order of their names, until `show` answers something else than 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_maps(
    db: *const wollemi_db,
    show: wollemi_show_map,
    argument: *mut c_void,
) -> wollemi_status {
    let run = |c: &FromC<'_>| {
        let show = show.ok_or_else(|| Failure::argument("NULL in place of a function"))?;
        for map in c.share::<Db>(db)?.maps()? {
            let (name, index) = (c_string(map.name), c_string(map.index));
            // SAFETY: a function of the header's type, as the header asks; both texts outlive the call.
            if unsafe { show(name.as_ptr(), index.as_ptr(), argument) } != 0 {
                break;
            }
        }
        Ok(WOLLEMI_OK)
    };
    // SAFETY: the caller keeps to the header.
    unsafe { call(run) }
}
