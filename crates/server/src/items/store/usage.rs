//! The memory of the items of all databases together, and which of them are asked for.

use crate::items::access::hash;
use crate::items::frequency::Sketch;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// What all stores of a server count into.
#[derive(Debug, Default)]
pub struct Usage {
    bytes: AtomicI64,
    /// There once a limit has been set.
    pub sketch: OnceLock<Sketch>,
}

impl Usage {
    /// Bytes that the items take, as far as they are counted.
    pub fn bytes(&self) -> u64 {
        // Below zero for a moment where the edit that follows another is the first to say so.
        self.bytes.load(Ordering::SeqCst).max(0) as u64
    }

    pub fn add(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Notes that a key was asked for, or stored.
    #[inline]
    pub fn note(&self, key: &[u8]) {
        if let Some(sketch) = self.sketch.get() {
            sketch.count(hash(key));
        }
    }

    /// How often the key was asked for lately, roughly.
    pub fn frequency(&self, key: &[u8]) -> u64 {
        self.sketch.get().map_or(0, |sketch| sketch.estimate(hash(key)))
    }
}
