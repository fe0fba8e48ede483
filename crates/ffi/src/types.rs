//! The types that C knows.

use std::ffi::{c_char, c_int, c_void};

/// The version of this header. wollemi_check_version() compares it with the library's.
pub const WOLLEMI_VERSION_MAJOR: u32 = 0;
/// See WOLLEMI_VERSION_MAJOR.
pub const WOLLEMI_VERSION_MINOR: u32 = 1;
/// See WOLLEMI_VERSION_MAJOR.
pub const WOLLEMI_VERSION_PATCH: u32 = 0;

/// For wollemi_range::flags: the range begins after the key `from`.
pub const WOLLEMI_FROM_EXCLUDED: u32 = 1;
/// For wollemi_range::flags: the range includes the key `to`.
pub const WOLLEMI_TO_INCLUDED: u32 = 2;

/// The failures that acknowledged writes survive.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum wollemi_level {
    /// The end of the process, for whatever reason. Any file supports it.
    WOLLEMI_LEVEL_PROCESS = 0,
    /// Also a loss of power, by a log beside the pool: each write waits for the disk, unless it is WOLLEMI_EVENTUAL.
    WOLLEMI_LEVEL_DISK = 1,
    /// Also a loss of power, on persistent memory, which needs no log.
    WOLLEMI_LEVEL_POWER = 2,
}

/// When a write becomes durable, in a database of level `disk`.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum wollemi_durability {
    /// When it returns.
    WOLLEMI_IMMEDIATE = 0,
    /// Within the time of wollemi_options_set_sync_within(), or when a later wollemi_sync() or immediate write returns,
    /// if that is earlier. It survives the end of the process at once.
    WOLLEMI_EVENTUAL = 1,
}

/// What to do with a pool of level `process` that was open when the machine stopped.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum wollemi_after_power_loss {
    /// Refuse to open it.
    WOLLEMI_REFUSE = 0,
    /// Open it to examine what is left, if it is opened read-only. It stays suspect.
    WOLLEMI_LOOK = 1,
    /// Open it, and allow its use from now on. Check it first.
    WOLLEMI_ACCEPT = 2,
}

/// Options for an opening, from wollemi_options_new(). For one thread at a time.
pub struct wollemi_options {
    _opaque: [u8; 0],
}

/// A database, from wollemi_open(). For any number of threads at once.
pub struct wollemi_db {
    _opaque: [u8; 0],
}

/// A map of a database, from wollemi_map_open(). For any number of threads at once.
pub struct wollemi_map {
    _opaque: [u8; 0],
}

/// A position in a range of entries, from wollemi_map_range() and similar functions. For one thread at a time.
pub struct wollemi_cursor {
    _opaque: [u8; 0],
}

/// Changes that are committed together, from wollemi_batch_new(). For one thread at a time.
pub struct wollemi_batch {
    _opaque: [u8; 0],
}

/// Reads and changes that happen together, from wollemi_transaction_begin(). For one thread at a time.
pub struct wollemi_transaction {
    _opaque: [u8; 0],
}

/// All maps at one moment, from wollemi_snapshot_take(). For any number of threads at once.
pub struct wollemi_snapshot {
    _opaque: [u8; 0],
}

/// A thread that removes expired entries, from wollemi_sweeper_start(). For one thread at a time.
pub struct wollemi_sweeper {
    _opaque: [u8; 0],
}

/// Bytes of the caller, for wollemi_multi_get().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct wollemi_slice {
    /// Their address.
    pub data: *const c_void,
    /// Their number.
    pub len: usize,
}

/// Bytes of the library. Free `data` by wollemi_free(); it is NULL if there is no value, and not NULL for an empty
/// value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct wollemi_bytes {
    /// Their address.
    pub data: *mut c_void,
    /// Their number.
    pub len: usize,
}

/// The keys between two bounds. All zeros, or NULL for a wollemi_range, means all keys.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct wollemi_range {
    /// The lower bound, included unless WOLLEMI_FROM_EXCLUDED is set; NULL: none.
    pub from: *const c_void,
    /// Its length.
    pub from_len: usize,
    /// The upper bound, excluded unless WOLLEMI_TO_INCLUDED is set; NULL: none.
    pub to: *const c_void,
    /// Its length.
    pub to_len: usize,
    /// A prefix of the keys, in addition to the bounds; NULL: none.
    pub prefix: *const c_void,
    /// Its length.
    pub prefix_len: usize,
    /// WOLLEMI_FROM_EXCLUDED, WOLLEMI_TO_INCLUDED, both or 0.
    pub flags: u32,
}

/// Numbers of a database at one moment, from wollemi_stats(). wollemi_stats_json() has more.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct wollemi_numbers {
    /// A wollemi_level.
    pub level: u32,
    /// Number of times the pool has been opened to write.
    pub generation: u32,
    /// Number of times it was not closed properly.
    pub crashes: u64,
    /// Bytes of the pool.
    pub reserved: u64,
    /// Bytes in use.
    pub used: u64,
    /// Free bytes.
    pub free: u64,
    /// Bytes not yet known to be used or free.
    pub unswept: u64,
    /// The maximum size of the pool.
    pub max_size: u64,
    /// Number of maps.
    pub maps: u64,
    /// Duration of the opening, in seconds.
    pub opened_in: f64,
}

/// A callback that gets a value for the duration of the call: wollemi_read().
pub type wollemi_show =
    Option<unsafe extern "C" fn(value: *const c_void, value_len: usize, argument: *mut c_void)>;

/// A callback that gets a map's name and the name of its index: wollemi_maps(). A result other than 0 ends the loop.
pub type wollemi_show_map =
    Option<unsafe extern "C" fn(name: *const c_char, index: *const c_char, argument: *mut c_void) -> c_int>;

/// The body of a transaction: wollemi_transact(). Any result but WOLLEMI_OK abandons it.
pub type wollemi_body =
    Option<unsafe extern "C" fn(transaction: *mut wollemi_transaction, argument: *mut c_void) -> c_int>;
