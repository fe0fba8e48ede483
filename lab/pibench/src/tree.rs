//! An index with what PiBench needs around it.

use heap::Heap;
use index::{Direction, Index, Value};
use pmem::{Hardware, Pool, PoolOptions};
use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use wollemi::indexes::{Compiled, IndexKind};

/// An index of bytes in a pool of its own. What fails is said on the standard error stream, and answered with `false`.
pub struct Tree {
    index: Box<dyn Index>,
    _heap: Heap<Hardware>,
    value_size: usize,
}

thread_local! {
    /// What this thread's last scan has found: PiBench reads it before the next.
    static FOUND: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn said<T>(result: Result<T, impl std::fmt::Display>) -> Option<T> {
    result.map_err(|error| eprintln!("wollemi: {error}")).ok()
}

impl Tree {
    /// The index of this name in a new pool: a file at `path`, or memory where that is empty.
    pub fn new(name: &str, path: &Path, value_size: usize) -> Option<Tree> {
        let kind: IndexKind = said(name.parse())?;
        let options = PoolOptions {
            huge_pages: true,
            ..PoolOptions::default()
        };
        let media = Hardware::as_persistent();
        let pool = match path.as_os_str().is_empty() {
            true => Pool::anonymous(&options, media),
            false => Pool::create(path, &options, media),
        };
        let heap = said(Heap::new(said(pool)?))?;
        let index = said(Hardware::create(kind, &heap, b"pibench"))?;
        Some(Tree {
            index,
            _heap: heap,
            value_size,
        })
    }

    /// Copies the key's value, cut or followed by zeros to PiBench's size of values; `false` if there is none.
    pub fn find(&self, key: &[u8], value: &mut [u8]) -> bool {
        let guard = heap::pin();
        match said(self.index.get(key, &guard)) {
            Some(Some(found)) => {
                copy(found, value);
                true
            }
            _ => false,
        }
    }

    /// Adds a key; `false` if it is there.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> bool {
        said(self.index.insert(key, value)).unwrap_or(false)
    }

    /// Changes a key's value; `false` if it is not there.
    pub fn update(&self, key: &[u8], value: &[u8]) -> bool {
        said(self.index.update(key, value)).unwrap_or(false)
    }

    /// Removes a key; `false` if it is not there.
    pub fn remove(&self, key: &[u8]) -> bool {
        said(self.index.remove(key)).unwrap_or(false)
    }

    /// The first `count` keys from this one on with their values, one after the other, until this thread's next scan:
    /// how many, and where they lie.
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
                said(self.index.scan(lower, upper, Direction::Forward, &guard, visit));
            }
            (count - left, found.as_mut_ptr())
        })
    }

    /// PiBench's size of values.
    pub fn value_size(&self) -> usize {
        self.value_size
    }
}

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
