//! A media that knows what is durable for certain.

use heap::Heap;
use index::conformance::Random;
use pmem::{Hardware, LINE, Media, Purpose};
use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is durable, and when to take images.
#[derive(Default)]
pub struct Durable {
    /// Where the pool is mapped; 0 until the history begins.
    base: usize,
    bytes: Vec<u8>,
    /// Lines written back since the last fence.
    staged: Vec<(usize, [u8; LINE])>,
    /// Takes an image once in so many fences.
    one_in: usize,
    random: Option<Random>,
    path: std::path::PathBuf,
    /// Operations acknowledged.
    pub acknowledged: usize,
    images: Vec<(usize, Vec<u8>)>,
    /// Call sites of fences, in the index's own source.
    pub sites: BTreeSet<Site>,
    /// The site whose write-backs are left out.
    pub mutant: Option<Site>,
}

/// A line of the source.
pub type Site = (&'static str, u32);

#[derive(Clone)]
pub struct Shadow {
    inner: Hardware,
    durable: Arc<Mutex<Durable>>,
}

impl Shadow {
    pub fn new() -> Shadow {
        Shadow {
            inner: Hardware::detect(),
            durable: Arc::default(),
        }
    }

    pub fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on: what the file holds now is durable.
    pub fn begin(&self, heap: &Heap<Shadow>, random: Random, one_in: usize) {
        let pool = heap.pool();
        pool.base().as_ptr().expose_provenance();
        let mut durable = self.durable();
        durable.path = pool.path().expect("a file").to_owned();
        durable.bytes = std::fs::read(&durable.path).expect("the file");
        durable.base = pool.base().as_ptr().addr();
        (durable.random, durable.one_in) = (Some(random), one_in);
    }

    /// No more images.
    pub fn end(&self) -> Vec<(usize, Vec<u8>)> {
        let mut durable = self.durable();
        durable.base = 0;
        std::mem::take(&mut durable.images)
    }
}

impl Durable {
    fn take_image(&mut self) {
        let Some(random) = &mut self.random else { return };
        if !random.one_in(self.one_in) {
            return;
        }
        let all = std::fs::read(&self.path).expect("the file");
        let mut image = self.bytes.clone();
        image.resize(all.len(), 0);
        // None, some, most or all of what is not durable for certain.
        let share = *random.pick(&[0, 1, 4, 7, 8]);
        for (kept, line) in image.chunks_mut(LINE).zip(all.chunks(LINE)) {
            if kept != line && random.below(8) < share {
                kept.copy_from_slice(line);
            }
        }
        self.images.push((self.acknowledged, image));
    }
}

// SAFETY: everything is passed on to the hardware.
unsafe impl Media for Shadow {
    fn load(&self, word: &AtomicU64) -> u64 {
        self.inner.load(word)
    }
    fn store(&self, word: &AtomicU64, value: u64) {
        self.inner.store(word, value);
    }
    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.inner.compare_exchange(word, old, new)
    }
    fn store_nt(&self, word: &AtomicU64, value: u64) {
        self.inner.store(word, value);
        self.write_back(word.as_ptr().cast(), Purpose::Node);
    }
    #[track_caller]
    fn write_back(&self, at: *const u8, purpose: Purpose) {
        let site = Location::caller();
        let mut durable = self.durable();
        if durable.base != 0 && durable.mutant != Some((site.file(), site.line())) {
            let line = at.addr() / LINE * LINE;
            // SAFETY: lines of the pool are written back, and by its one thread.
            let bytes = unsafe { std::ptr::with_exposed_provenance::<[u8; LINE]>(line).read_volatile() };
            let place = line - durable.base;
            durable.staged.push((place, bytes));
        }
        self.inner.write_back(at, purpose);
    }
    #[track_caller]
    fn fence(&self, purpose: Purpose) {
        let site = Location::caller();
        let mut durable = self.durable();
        if durable.base != 0 {
            durable.take_image();
            if site.file().contains("dptree/src") {
                durable.sites.insert((site.file(), site.line()));
            }
            for (place, line) in std::mem::take(&mut durable.staged) {
                if durable.bytes.len() < place + LINE {
                    durable.bytes.resize(place + LINE, 0);
                }
                durable.bytes[place..place + LINE].copy_from_slice(&line);
            }
        }
        self.inner.fence(purpose);
    }
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.inner.load_volatile(word)
    }
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        self.inner.store_volatile(word, value);
    }
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.inner.compare_exchange_volatile(word, old, new)
    }
}
