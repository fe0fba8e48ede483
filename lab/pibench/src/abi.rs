//! The C++ class, laid out by hand.
//!
//! I1 An object begins with a pointer to the first function of its virtual table; the tree follows at an offset that
//!    only this file knows.
//! I2 Every function of a table receives an object that `create_tree` made and that is not yet deleted.
//! I3 No panic crosses the boundary: an `extern "C"` function aborts instead.

use crate::Tree;
use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// PiBench's `tree_options_t`, with its string as libstdc++ lays it out.
#[repr(C)]
#[derive(Debug)]
pub struct Options {
    /// Bytes per key.
    pub key_size: usize,
    /// Bytes per value.
    pub value_size: usize,
    /// The address of the string's bytes.
    pub pool_path: *const u8,
    /// The length of the string.
    pub pool_path_len: usize,
    /// The string's own buffer, or its capacity.
    pub pool_path_rest: [u8; 16],
    /// The maximum size of the pool in bytes; unused, since our pools grow as needed.
    pub pool_size: usize,
    /// The number of threads that will run.
    pub num_threads: usize,
}

/// The object that PiBench uses as a `tree_api`.
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

/// A virtual table as compilers lay it out. The words before the functions state that the object begins at its table
/// pointer, and that it has no type information.
#[repr(C)]
struct Plain {
    offset_to_top: isize,
    type_information: usize,
    destroy: Destroy,
    delete: Destroy,
    functions: Functions,
}

/// The same table for the header with `bulk_load`.
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

/// Creates a tree from PiBench's options. On failure returns null and prints the reason to standard error.
///
/// # Safety
///
/// `options` is PiBench's `tree_options_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn create_tree(options: *const Options) -> *mut Object {
    // SAFETY: the caller passes valid options, which do not change during the call.
    let options = unsafe { &*options };
    // SAFETY: the string's bytes live as long as the options.
    let path = unsafe { bytes(options.pool_path.cast(), options.pool_path_len) };
    let name = std::env::var("WOLLEMI_INDEX").unwrap_or_else(|_| "roart".into());
    let Some(tree) = Tree::new(&name, Path::new(OsStr::from_bytes(path)), options.value_size) else {
        return std::ptr::null_mut();
    };
    let bulk_load = std::env::var_os("WOLLEMI_PIBENCH_BULK_LOAD").is_some_and(|value| value == "1");
    // An object's table pointer points at the first function.
    let table = if bulk_load {
        (&raw const WITH_BULK_LOAD.destroy).cast()
    } else {
        (&raw const PLAIN.destroy).cast()
    };
    Box::into_raw(Box::new(Object { table, tree }))
}

/// Returns the bytes that a caller passed.
///
/// # Safety
///
/// `start` points to `len` bytes that are valid and unchanged for `'a`, or `len` is zero.
unsafe fn bytes<'a>(start: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

/// # Safety
///
/// I2.
unsafe fn tree<'a>(object: *mut Object) -> &'a Tree {
    // SAFETY: the object lives until it is deleted, and is only read before.
    unsafe { &(*object).tree }
}

/// The complete destructor, for an object whose memory the caller owns. There is no such object: all come from
/// [`create_tree`].
unsafe extern "C" fn destroy(_object: *mut Object) {}

unsafe extern "C" fn delete(object: *mut Object) {
    // SAFETY: `create_tree` made the object, and it is not used after this.
    drop(unsafe { Box::from_raw(object) });
}

unsafe extern "C" fn bulk_load(_: *mut Object, _: *const c_char, _: usize, _: usize, _: usize) -> bool {
    false
}

unsafe extern "C" fn find(object: *mut Object, key: *const c_char, len: usize, value: *mut c_char) -> bool {
    // SAFETY: I2.
    let tree = unsafe { tree(object) };
    // SAFETY: PiBench passes a key with its length.
    let key = unsafe { bytes(key, len) };
    // SAFETY: PiBench passes space for a value of its value size, which no other thread uses.
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
    // SAFETY: PiBench passes a key with its length.
    let key = unsafe { bytes(key, len) };
    // SAFETY: PiBench passes a value with its length.
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
    // SAFETY: PiBench passes a key with its length.
    let key = unsafe { bytes(key, len) };
    // SAFETY: PiBench passes a value with its length.
    tree.update(key, unsafe { bytes(value, value_len) })
}

unsafe extern "C" fn remove(object: *mut Object, key: *const c_char, len: usize) -> bool {
    // SAFETY: I2.
    let tree = unsafe { tree(object) };
    // SAFETY: PiBench passes a key with its length.
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
    // SAFETY: PiBench passes a key with its length.
    let key = unsafe { bytes(key, len) };
    let (found, start) = tree.scan(key, usize::try_from(count).unwrap_or(0));
    // SAFETY: PiBench passes a valid reference to a pointer.
    unsafe { *values = start.cast() };
    // At most `count`.
    found as c_int
}
