//! Options for opening a database.

use crate::call::call;
use crate::handle::kinds;
use crate::status::{Failure, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_char, c_int};
use std::time::Duration;
use wollemi::{AfterPowerLoss, Durability, IndexKind, Level, Options};

/// The object behind a handle to options.
pub struct Opening(pub Options);

kinds! {
    wollemi_options, Opening, b"opts", "set of options";
}

fn no_meaning(what: &str, number: c_int) -> Failure {
    Failure::argument(format!("{number}: no {what}"))
}

pub fn durability(number: c_int) -> Result<Durability, Failure> {
    match number {
        0 => Ok(Durability::Immediate),
        1 => Ok(Durability::Eventual),
        _ => Err(no_meaning("wollemi_durability", number)),
    }
}

/// Returns the index of this name.
pub fn index(name: &str) -> Result<IndexKind, Failure> {
    let found = name.parse::<IndexKind>();
    found.map_err(|unknown| Failure::argument(unknown.to_string()))
}

/// Changes options.
unsafe fn set(
    options: *mut wollemi_options,
    change: impl FnOnce(Options) -> Result<Options, Failure>,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let mut opening = c.hold::<Opening>(options)?;
            opening.0 = change(opening.0.clone())?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// Creates options with the defaults: level `process`, the index `roart`, one recovery thread, and creation of a
/// missing pool. Free them by wollemi_options_free(); one set of options may serve any number of openings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_new(options: *mut *mut wollemi_options) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.out_handle(options)?.open(Opening(Options::new()))) }
}

/// Frees options. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_free(options: *mut wollemi_options) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Opening>(options)) }
}

/// Sets the minimum level, a wollemi_level. Opening fails with WOLLEMI_ERROR_LEVEL if the file does not support it. A
/// pool that has a log keeps it, whatever this says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_level(
    options: *mut wollemi_options,
    level: c_int,
) -> wollemi_status {
    let wanted = match level {
        0 => Ok(Level::Process),
        1 => Ok(Level::Disk),
        2 => Ok(Level::Power),
        _ => Err(no_meaning("wollemi_level", level)),
    };
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.level(wanted?))) }
}

/// Sets the index for new maps by name: "roart" (the default), "part", "clht", "hot", "masstree", "bwtree", "wort",
/// "woart", "art-cow" or "dptree". An existing map keeps its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_index(
    options: *mut wollemi_options,
    index: *const c_char,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let mut opening = c.hold::<Opening>(options)?;
            opening.0 = opening.0.clone().index(self::index(c.text(index)?)?);
            Ok(WOLLEMI_OK)
        })
    }
}

/// Sets the maximum size of the pool, in bytes. This much address space is reserved; blocks are allocated only when
/// needed. Default: 1 TiB, or what the system allows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_max_size(
    options: *mut wollemi_options,
    bytes: u64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.max_size(bytes))) }
}

/// Sets the heap's page size in bytes, for pools that are created: a power of two from 64 KiB to 128 MiB. Default: 256
/// KiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_page_size(
    options: *mut wollemi_options,
    bytes: u64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.page_size(bytes))) }
}

/// Sets the number of background threads that look for unused space after the opening. With none, space used before the
/// opening is not reused. Default: 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_recovery_threads(
    options: *mut wollemi_options,
    threads: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.recovery_threads(threads))) }
}

/// Sets whether to open the pool read-only: no byte of its file changes, and other processes may read it at the same
/// time. Writes fail with WOLLEMI_ERROR_READ_ONLY. Default: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_read_only(
    options: *mut wollemi_options,
    read_only: bool,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.read_only(read_only))) }
}

/// Sets whether to create the pool if its file is missing. Default: yes. If not, opening fails with
/// WOLLEMI_ERROR_MISSING.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_create(
    options: *mut wollemi_options,
    create: bool,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.create(create))) }
}

/// Sets how long an opening waits, in milliseconds, for other processes that have the pool open. A killed process keeps
/// its pool for some tens of milliseconds. Then it fails with WOLLEMI_ERROR_BUSY. Default: 2000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_lock_wait(
    options: *mut wollemi_options,
    milliseconds: u64,
) -> wollemi_status {
    let wait = Duration::from_millis(milliseconds);
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.lock_wait(wait))) }
}

/// Sets the default durability of writes, at level `disk`: a wollemi_durability. Default: WOLLEMI_IMMEDIATE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_durability(
    options: *mut wollemi_options,
    durability: c_int,
) -> wollemi_status {
    let wanted = self::durability(durability);
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.durability(wanted?))) }
}

/// Sets the time in milliseconds within which WOLLEMI_EVENTUAL writes become durable, at level `disk`. Default: 1000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_sync_within(
    options: *mut wollemi_options,
    milliseconds: u64,
) -> wollemi_status {
    let time = Duration::from_millis(milliseconds);
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.sync_within(time))) }
}

/// Sets the maximum length of the log of a database of level `disk`, in bytes; at least 64 MiB. Default: 256 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_log_limit(
    options: *mut wollemi_options,
    bytes: u64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.log_limit(bytes))) }
}

/// Sets what to do with a pool of level `process` that was open when the machine stopped: a wollemi_after_power_loss.
/// Default: WOLLEMI_REFUSE, with WOLLEMI_ERROR_POWER_LOSS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_options_set_after_power_loss(
    options: *mut wollemi_options,
    what: c_int,
) -> wollemi_status {
    let wanted = match what {
        0 => Ok(AfterPowerLoss::Refuse),
        1 => Ok(AfterPowerLoss::Look),
        2 => Ok(AfterPowerLoss::Accept),
        _ => Err(no_meaning("wollemi_after_power_loss", what)),
    };
    // SAFETY: the caller keeps to the header.
    unsafe { set(options, |options| Ok(options.after_power_loss(wanted?))) }
}
