//! The bytes of the items of all databases together, and how often items are accessed.

use crate::items::access::hash;
use crate::items::frequency::Sketch;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Item bytes and access-frequency sketch, shared by all stores of a server.
#[derive(Debug, Default)]
pub struct Usage {
    bytes: AtomicI64,
    /// One sketch per [size class](Sketch::size_for), created when a memory limit of that class is first set. The
    /// largest is used.
    sketches: [OnceLock<Sketch>; Sketch::SIZES],
    largest: AtomicUsize,
}

impl Usage {
    /// Returns the bytes that the items take, as far as they are counted.
    pub fn bytes(&self) -> u64 {
        // Briefly negative when the later of two consecutive edits is counted first.
        self.bytes.load(Ordering::SeqCst).max(0) as u64
    }

    /// Adds to the bytes that the items take.
    pub fn add(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Starts estimating access frequencies with a sketch sized for this memory limit. A larger sketch replaces a
    /// smaller one and starts empty; a smaller limit changes nothing.
    pub fn estimate_for(&self, bytes: u64) {
        let size = Sketch::size_for(bytes);
        self.sketches[size].get_or_init(|| Sketch::new(size));
        self.largest.fetch_max(size, Ordering::Relaxed);
    }

    #[inline]
    fn sketch(&self) -> Option<&Sketch> {
        self.sketches[self.largest.load(Ordering::Relaxed)].get()
    }

    /// Counts an access of a key.
    #[inline]
    pub fn note(&self, key: &[u8]) {
        if let Some(sketch) = self.sketch() {
            sketch.count(hash(key));
        }
    }

    /// Returns roughly how often the key was accessed lately.
    pub fn frequency(&self, key: &[u8]) -> u64 {
        self.sketch().map_or(0, |sketch| sketch.estimate(hash(key)))
    }
}
