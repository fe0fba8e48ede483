//! Immediate reuse: under media that reuse memory at once ([`Media::REUSES_AT_ONCE`](pmem::Media::REUSES_AT_ONCE)),
//! the chunk freed last is claimed first, and each freed object is reported.

use pmem::Offset;
use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, OnceLock};

/// A line of source.
pub(crate) type Site = &'static Location<'static>;

/// Called with each freed object's offset, its footprint, and the line that retired it.
type OnFreed = dyn Fn(Offset, usize, Site) + Send + Sync;

/// How a heap reuses memory at once.
#[derive(Default)]
pub(crate) struct Reuse {
    /// Freed chunks of each class, in order of their freeing.
    pub freed: Box<[Mutex<Vec<u64>>]>,
    on_freed: OnceLock<Box<OnFreed>>,
}

impl Reuse {
    pub fn new(classes: usize) -> Reuse {
        Reuse {
            freed: (0..classes).map(|_| Mutex::default()).collect(),
            on_freed: OnceLock::new(),
        }
    }

    /// Registers `on_freed`, which is called for each freed object. Only the first registration counts.
    pub fn on_freed(&self, on_freed: impl Fn(Offset, usize, Site) + Send + Sync + 'static) {
        let _ = self.on_freed.set(Box::new(on_freed));
    }

    /// Reports a freed object.
    pub fn report_freed(&self, offset: Offset, len: usize, site: Site) {
        if let Some(on_freed) = self.on_freed.get() {
            on_freed(offset, len, site);
        }
    }
}

impl fmt::Debug for Reuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reuse").finish_non_exhaustive()
    }
}
