//! The C++ class by hand.
//!
//! I1 An object begins with the address of its table; the tree lies behind it, at a place that only this file knows.
//! I2 Every function of a table takes the object that `create_tree` made, and until it is deleted.
//! I3 No panic crosses the boundary: a function that is not `C-unwind` aborts instead.

use crate::Tree;
use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// PiBench's `tree_options_t`, with its string as libstdc++ lays it out.
#[repr(C)]
#[derive(Debug)]
pub struct Options {
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Where the string's bytes are.
    pub pool_path: *const u8,
    /// How many there are.
    pub pool_path_len: usize,
    /// The string's own buffer, or its capacity.
    pub pool_path_rest: [u8; 16],
    /// Bytes that the pool may have; ours grows as it must.
    pub pool_size: usize,
    /// Threads that will run.
    pub num_threads: usize,
}

/// What PiBench holds: a `tree_api`.
#[repr(C)]
pub struct Object {
    table: *const Find,
    tree: Tree,
}

type Destroy = unsafe extern "C" fn(*mut Object);
type BulkLoad = unsafe extern "C" fn(*mut Object, *const c_char, usize, usize, usize) -> bool;
type Find = unsafe extern "C" fn(*mut Object, *const c_char, usize, *mut c_char) -> bool;
type Write = unsafe extern "C" fn(*mut Object, *const c_char, usize, *const c_char, usize) -> bool;
type Remove = unsafe extern "C" fn(*mut Object, *const c_char, usize) -> bool;
type Scan = unsafe extern "C" fn(*mut Object, *const c_char, usize, c_int, *mut *mut c_char) -> c_int;

/// The functions from `find` on.
#[repr(C)]
struct Functions {
    find: Find,
    insert: Write,
    update: Write,
    remove: Remove,
    scan: Scan,
}

/// A table as compilers make it: what comes before the functions says that the object begins here, and that it has no
/// type information.
#[repr(C)]
struct Plain {
    offset_to_top: isize,
    type_information: usize,
    destroy: Destroy,
    delete: Destroy,
    functions: Functions,
}

/// The same for the header that has `bulk_load`.
#[repr(C)]
struct WithBulkLoad {
    offset_to_top: isize,
    type_information: usize,
    destroy: Destroy,
    delete: Destroy,
    bulk_load: BulkLoad,
    functions: Functions,
}

const FUNCTIONS: Functions = Functions {
    find,
    insert,
    update,
    remove,
    scan,
};

static PLAIN: Plain = Plain {
    offset_to_top: 0,
    type_information: 0,
    destroy,
    delete,
    functions: FUNCTIONS,
};

static WITH_BULK_LOAD: WithBulkLoad = WithBulkLoad {
    offset_to_top: 0,
    type_information: 0,
    destroy,
    delete,
    bulk_load,
    functions: FUNCTIONS,
};

/// Makes a tree, as PiBench's options have it; null where that fails, with the reason on the standard error stream.
///
/// # Safety
///
/// `options` is PiBench's `tree_options_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn create_tree(options: *const Options) -> *mut Object {
    // SAFETY: the caller's options, unchanged meanwhile.
    let options = unsafe { &*options };
    // SAFETY: the string's bytes, which live as long as the options.
    let path = unsafe { bytes(options.pool_path.cast(), options.pool_path_len) };
    let name = std::env::var("WOLLEMI_INDEX").unwrap_or_else(|_| "roart".into());
    let Some(tree) = Tree::new(&name, Path::new(OsStr::from_bytes(path)), options.value_size) else {
        return std::ptr::null_mut();
    };
    let bulk_load = std::env::var_os("WOLLEMI_PIBENCH_BULK_LOAD").is_some_and(|value| value == "1");
    // An object points at the first function of its table.
    let table = if bulk_load {
        (&raw const WITH_BULK_LOAD.destroy).cast()
    } else {
        (&raw const PLAIN.destroy).cast()
    };
    Box::into_raw(Box::new(Object { table, tree }))
}

/// The bytes that a caller gives.
///
/// # Safety
///
/// `start` has `len` bytes that live and stay as they are for `'a`, or `len` is zero.
unsafe fn bytes<'a>(start: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

/// # Safety
///
/// I2.
unsafe fn tree<'a>(object: *mut Object) -> &'a Tree {
    // SAFETY: the object lives until it is deleted, and is only read meanwhile.
    unsafe { &(*object).tree }
}

/// The destructor for an object whose memory the caller keeps. There is no such object: all come from [`create_tree`].
unsafe extern "C" fn destroy(_object: *mut Object) {}

unsafe extern "C" fn delete(object: *mut Object) {
    // SAFETY: made by `create_tree`, and it is not used after this.
    drop(unsafe { Box::from_raw(object) });
}

unsafe extern "C" fn bulk_load(_: *mut Object, _: *const c_char, _: usize, _: usize, _: usize) -> bool {
    false
}

unsafe extern "C" fn find(object: *mut Object, key: *const c_char, len: usize, value: *mut c_char) -> bool {
    // SAFETY: I2.
    let tree = unsafe { tree(object) };
    // SAFETY: PiBench gives a key with its length.
    let key = unsafe { bytes(key, len) };
    // SAFETY: PiBench gives room for a value of its size, which no other thread uses.
    let value = unsafe { std::slice::from_raw_parts_mut(value.cast(), tree.value_size()) };
    tree.find(key, value)
}

unsafe extern "C" fn insert(
    object: *mut Object,
    key: *const c_char,
    len: usize,
    value: *const c_char,
    value_len: usize,
) -> bool {
    // SAFETY: I2.
    let tree = unsafe { tree(object) };
    // SAFETY: PiBench gives a key with its length.
    let key = unsafe { bytes(key, len) };
    // SAFETY: as above, a value.
    tree.insert(key, unsafe { bytes(value, value_len) })
}

unsafe extern "C" fn update(
    object: *mut Object,
    key: *const c_char,
    len: usize,
    value: *const c_char,
    value_len: usize,
) -> bool {
    // SAFETY: I2.
    let tree = unsafe { tree(object) };
    // SAFETY: PiBench gives a key with its length.
    let key = unsafe { bytes(key, len) };
    // SAFETY: as above, a value.
    tree.update(key, unsafe { bytes(value, value_len) })
}

unsafe extern "C" fn remove(object: *mut Object, key: *const c_char, len: usize) -> bool {
    // SAFETY: I2.
    let tree = unsafe { tree(object) };
    // SAFETY: PiBench gives a key with its length.
    tree.remove(unsafe { bytes(key, len) })
}

unsafe extern "C" fn scan(
    object: *mut Object,
    key: *const c_char,
    len: usize,
    count: c_int,
    values: *mut *mut c_char,
) -> c_int {
    // SAFETY: I2.
    let tree = unsafe { tree(object) };
    // SAFETY: PiBench gives a key with its length.
    let key = unsafe { bytes(key, len) };
    let (found, start) = tree.scan(key, usize::try_from(count).unwrap_or(0));
    // SAFETY: PiBench's own reference to a pointer.
    unsafe { *values = start.cast() };
    // No more than `count`.
    found as c_int
}
