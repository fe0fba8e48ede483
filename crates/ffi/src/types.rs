//! The types that C knows.

use std::ffi::{c_char, c_int, c_void};

/// The version of this header. wollemi_check_version() compares it with the library's.
pub const WOLLEMI_VERSION_MAJOR: u32 = 0;
/// See WOLLEMI_VERSION_MAJOR.
pub const WOLLEMI_VERSION_MINOR: u32 = 1;
/// See WOLLEMI_VERSION_MAJOR.
pub const WOLLEMI_VERSION_PATCH: u32 = 0;

/// In wollemi_range::flags: the range begins behind the key `from`.
pub const WOLLEMI_FROM_EXCLUDED: u32 = 1;
/// In wollemi_range::flags: the range ends with the key `to`, and not before it.
pub const WOLLEMI_TO_INCLUDED: u32 = 2;

/// What acknowledged writes survive.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum wollemi_level {
    /// The end of the process, however it comes. Any file will do.
    WOLLEMI_LEVEL_PROCESS = 0,
    /// Also the loss of power, by a log beside the pool: each write waits for the disk, unless it is WOLLEMI_EVENTUAL.
    WOLLEMI_LEVEL_DISK = 1,
    /// Also the loss of power, on persistent memory, which needs no log.
    WOLLEMI_LEVEL_POWER = 2,
}

/// When a write is durable, in a database of level `disk`.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum wollemi_durability {
    /// When it returns.
    WOLLEMI_IMMEDIATE = 0,
    /// Within the time of wollemi_options_set_sync_within(), and when a later wollemi_sync() or immediate write
    /// returns. It survives the end of the process at once.
    WOLLEMI_EVENTUAL = 1,
}

/// What to do with a pool of level `process` that was open when the machine stopped.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum wollemi_after_power_loss {
    /// Refuse to open it.
    WOLLEMI_REFUSE = 0,
    /// Open it to look at what is left, if it is opened to be read. It stays suspect.
    WOLLEMI_LOOK = 1,
    /// Open it, and let it be used from now on. Check it before that.
    WOLLEMI_ACCEPT = 2,
}

/// Options of an opening: wollemi_options_new(). For one thread at a time.
pub struct wollemi_options {
    _opaque: [u8; 0],
}

/// A database: wollemi_open(). For any number of threads at once.
pub struct wollemi_db {
    _opaque: [u8; 0],
}

/// A map of a database: wollemi_map_open(). For any number of threads at once.
pub struct wollemi_map {
    _opaque: [u8; 0],
}

/// A place in a range of entries: wollemi_map_range() and its siblings. For one thread at a time.
pub struct wollemi_cursor {
    _opaque: [u8; 0],
}

/// Changes that are made together: wollemi_batch_new(). For one thread at a time.
pub struct wollemi_batch {
    _opaque: [u8; 0],
}

/// Reads and changes that happen together: wollemi_transaction_begin(). For one thread at a time.
pub struct wollemi_transaction {
    _opaque: [u8; 0],
}

/// All maps at one moment: wollemi_snapshot_take(). For any number of threads at once.
pub struct wollemi_snapshot {
    _opaque: [u8; 0],
}

/// A thread that removes entries past their end: wollemi_sweeper_start(). For one thread at a time.
pub struct wollemi_sweeper {
    _opaque: [u8; 0],
}

/// Bytes of the caller's, for wollemi_multi_get().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct wollemi_slice {
    /// Where they are.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
}

/// Bytes of the library's. `data` is given back by wollemi_free(); it is NULL where there is no value, and not NULL for
/// a value of no bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct wollemi_bytes {
    /// Where they are.
    pub data: *mut c_void,
    /// How many.
    pub len: usize,
}

/// The keys between two bounds. All zeros are all keys, as is NULL in place of a wollemi_range.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct wollemi_range {
    /// The least key, WOLLEMI_FROM_EXCLUDED: the key before the least one; NULL: no bound.
    pub from: *const c_void,
    /// Its bytes.
    pub from_len: usize,
    /// The key behind the greatest one, WOLLEMI_TO_INCLUDED: the greatest one; NULL: no bound.
    pub to: *const c_void,
    /// Its bytes.
    pub to_len: usize,
    /// What the keys begin with, beside the bounds above; NULL: anything.
    pub prefix: *const c_void,
    /// Its bytes.
    pub prefix_len: usize,
    /// WOLLEMI_FROM_EXCLUDED, WOLLEMI_TO_INCLUDED, both or 0.
    pub flags: u32,
}

/// Numbers of a database at one moment: wollemi_stats(). wollemi_stats_json() has more.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct wollemi_numbers {
    /// A wollemi_level.
    pub level: u32,
    /// How often the pool has been opened.
    pub generation: u32,
    /// How often it was not closed properly.
    pub crashes: u64,
    /// Bytes of the pool.
    pub reserved: u64,
    /// Bytes of these in use.
    pub used: u64,
    /// Bytes ready for use.
    pub free: u64,
    /// Bytes of which it is not known yet whether they are used or free.
    pub unswept: u64,
    /// The size up to which the pool may grow.
    pub max_size: u64,
    /// Maps.
    pub maps: u64,
    /// How long the opening took, in seconds.
    pub opened_in: f64,
}

/// Is shown a value, for the time of the call: wollemi_read().
pub type wollemi_show =
    Option<unsafe extern "C" fn(value: *const c_void, value_len: usize, argument: *mut c_void)>;

/// Is shown a map's name and the name of its index: wollemi_maps(). Anything but 0 ends it.
pub type wollemi_show_map =
    Option<unsafe extern "C" fn(name: *const c_char, index: *const c_char, argument: *mut c_void) -> c_int>;

/// The body of a transaction: wollemi_transact(). Anything but WOLLEMI_OK gives it up.
pub type wollemi_body =
    Option<unsafe extern "C" fn(transaction: *mut wollemi_transaction, argument: *mut c_void) -> c_int>;
