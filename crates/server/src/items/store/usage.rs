//! The memory of the items of all databases together, and which of them are asked for.

use crate::items::access::hash;
use crate::items::frequency::Sketch;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// What all stores of a server count into.
#[derive(Debug, Default)]
pub struct Usage {
    bytes: AtomicI64,
    /// Sketches for limits of [a size](Sketch::size_for), there once such a limit has been set. The largest counts.
    sketches: [OnceLock<Sketch>; Sketch::SIZES],
    largest: AtomicUsize,
}

impl Usage {
    /// Bytes that the items take, as far as they are counted.
    pub fn bytes(&self) -> u64 {
        // Below zero for a moment where the edit that follows another is the first to say so.
        self.bytes.load(Ordering::SeqCst).max(0) as u64
    }

    /// Counts that the items take this many bytes more, or fewer.
    pub fn add(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Estimates from now on how often keys are asked for, well enough for a limit of this many bytes. Where the
    /// estimate was for a smaller limit, it begins anew.
    pub fn estimate_for(&self, bytes: u64) {
        let size = Sketch::size_for(bytes);
        self.sketches[size].get_or_init(|| Sketch::new(size));
        self.largest.fetch_max(size, Ordering::Relaxed);
    }

    #[inline]
    fn sketch(&self) -> Option<&Sketch> {
        self.sketches[self.largest.load(Ordering::Relaxed)].get()
    }

    /// Notes that a key was asked for, or stored.
    #[inline]
    pub fn note(&self, key: &[u8]) {
        if let Some(sketch) = self.sketch() {
            sketch.count(hash(key));
        }
    }

    /// How often the key was asked for lately, roughly.
    pub fn frequency(&self, key: &[u8]) -> u64 {
        self.sketch().map_or(0, |sketch| sketch.estimate(hash(key)))
    }
}
