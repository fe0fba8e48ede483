//! Pools as a killed process leaves them, for structures that have files beside their pool.
//!
//! [`Told`] is the hardware media, and calls a function before each store, so that a copy of the pool ([`Image`]) can
//! be taken between any two of them: the content that a process killed there leaves. ([`Crash`](crate::Crash) decides
//! which stores a *loss of power* takes.)

use pmem::watched::{ObservedStep, Observer};
use pmem::{Memory, Watched};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Words in a piece of an image.
const PIECE: usize = 512;

/// The hardware media, with a function that is called before each store.
pub type Told = Watched<Tell>;

/// The function that a [`Told`] calls.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn() + Send + Sync>);

/// Creates the hardware media that calls `before` before each store.
pub fn told(before: impl Fn() + Send + Sync + 'static) -> Told {
    Watched::machine(Tell(Arc::new(before)))
}

impl Observer for Tell {
    fn before(&self, step: &ObservedStep) {
        if step.stores() {
            (self.0)();
        }
    }
}

/// A copy of a memory.
#[derive(Clone, Debug)]
pub struct Image {
    len: u64,
    /// Pieces that are not zeros, with their numbers.
    pieces: Vec<(usize, Box<[u64]>)>,
    hash: u64,
}

impl Image {
    /// Copies a memory. No thread may store into it meanwhile.
    pub fn of(memory: &Memory) -> Image {
        // SAFETY: nothing is changed.
        let words = unsafe { memory.words() };
        let (mut pieces, mut hasher) = (Vec::new(), DefaultHasher::new());
        for (number, piece) in words.chunks(PIECE).enumerate() {
            if piece.iter().any(|word| word.load(Relaxed) != 0) {
                let piece: Box<[u64]> = piece.iter().map(|word| word.load(Relaxed)).collect();
                (number, &piece).hash(&mut hasher);
                pieces.push((number, piece));
            }
        }
        Image {
            len: memory.len(),
            pieces,
            hash: hasher.finish(),
        }
    }

    /// Creates a new memory with this content.
    ///
    /// # Errors
    ///
    /// If the system refuses the memory.
    pub fn memory(&self) -> Result<Memory, pmem::pool::Error> {
        let memory = Memory::new(self.len)?;
        // SAFETY: no pool is open in it yet.
        let words = unsafe { memory.words() };
        for (number, piece) in &self.pieces {
            let place = &words[number * PIECE..];
            for (word, value) in place.iter().zip(piece) {
                word.store(*value, Relaxed);
            }
        }
        Ok(memory)
    }

    /// Returns a hash of the content.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}
