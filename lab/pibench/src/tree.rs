//! An index behind PiBench's operations.

use heap::Heap;
use index::{Direction, Index, Value};
use pmem::{Hardware, Pool, PoolOptions};
use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use wollemi::indexes::{Compiled, IndexKind};

/// An index in its own pool. A failing call prints the error to standard error and returns `false`; [`new`](Tree::new)
/// returns `None`, and [`scan`](Tree::scan) the pairs read before the error.
pub struct Tree {
    index: Box<dyn Index>,
    _heap: Heap<Hardware>,
    value_size: usize,
}

thread_local! {
    /// The result of this thread's last scan: PiBench reads it before the next.
    static FOUND: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn ok_or_print<T>(result: Result<T, impl std::fmt::Display>) -> Option<T> {
    result.map_err(|error| eprintln!("wollemi: {error}")).ok()
}

impl Tree {
    /// Creates the index of this name in a new pool: a file at `path`, or memory if `path` is empty.
    pub fn new(name: &str, path: &Path, value_size: usize) -> Option<Tree> {
        let kind: IndexKind = ok_or_print(name.parse())?;
        let options = PoolOptions {
            huge_pages: true,
            ..PoolOptions::default()
        };
        let media = Hardware::as_persistent();
        let pool = match path.as_os_str().is_empty() {
            true => Pool::anonymous(&options, media),
            false => Pool::create(path, &options, media),
        };
        let heap = ok_or_print(Heap::new(ok_or_print(pool)?))?;
        let index = ok_or_print(Hardware::create(kind, &heap, b"pibench"))?;
        Some(Tree {
            index,
            _heap: heap,
            value_size,
        })
    }

    /// Copies the key's value, truncated or padded with zeros to PiBench's value size; `false` if the key is absent.
    pub fn find(&self, key: &[u8], value: &mut [u8]) -> bool {
        let guard = heap::pin();
        match ok_or_print(self.index.get(key, &guard)) {
            Some(Some(found)) => {
                copy(found, value);
                true
            }
            _ => false,
        }
    }

    /// Inserts a key; `false` if it exists.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> bool {
        ok_or_print(self.index.insert(key, value)).unwrap_or(false)
    }

    /// Updates a key's value; `false` if the key is absent.
    pub fn update(&self, key: &[u8], value: &[u8]) -> bool {
        ok_or_print(self.index.update(key, value)).unwrap_or(false)
    }

    /// Removes a key; `false` if it is absent.
    pub fn remove(&self, key: &[u8]) -> bool {
        ok_or_print(self.index.remove(key)).unwrap_or(false)
    }

    /// Reads the first `count` keys from this one on, with their values. Returns the number of keys, and the address of
    /// the pairs, which is valid until this thread's next scan.
    pub fn scan(&self, key: &[u8], count: usize) -> (usize, *mut u8) {
        FOUND.with_borrow_mut(|found| {
            found.clear();
            let mut left = count;
            let guard = heap::pin();
            let visit = &mut |key: &[u8], value: Value<'_>| {
                found.extend_from_slice(key);
                let from = found.len();
                found.resize(from + self.value_size, 0);
                copy(value, &mut found[from..]);
                left -= 1;
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            if count > 0 {
                let (lower, upper) = (Bound::Included(key), Bound::Unbounded);
                ok_or_print(self.index.scan(lower, upper, Direction::Forward, &guard, visit));
            }
            (count - left, found.as_mut_ptr())
        })
    }

    /// Returns PiBench's value size.
    pub fn value_size(&self) -> usize {
        self.value_size
    }
}

/// Copies a value, truncated or padded with zeros.
fn copy(from: Value<'_>, to: &mut [u8]) {
    let word;
    let bytes: &[u8] = match from {
        Value::Word(bytes) => {
            word = bytes;
            &word
        }
        Value::Bytes(bytes) => bytes,
    };
    let len = bytes.len().min(to.len());
    to[..len].copy_from_slice(&bytes[..len]);
    to[len..].fill(0);
}
