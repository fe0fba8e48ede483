//! Before-images: the values of keys before their first change since a snapshot began.
//!
//! A snapshot begins while the [gate](super::gate) is closed, so no write is in progress. From then on each write
//! records its key's before-image in every snapshot that has no image of that key yet, under the index's lock on the
//! key and before it changes anything. Images are in DRAM only.
//!
//! I1 A snapshot's image of a key is the key's state when the snapshot began, and never changes. The first decision of
//! an edit to change the key records it, whether or not the index carries that decision out.
//! I2 A reader that reads a key in the index and then finds no image of it has read the key's state at the snapshot's
//! beginning, since a change becomes visible after its image. This does not hold once the snapshot is outgrown, so
//! readers check that last.

use crate::Error;
use crate::entry::BATCH_BYTES;
use index::{Direction, Order, OrderedPlace};
use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A key's old value; `None` if it was absent.
pub(crate) type BeforeImage = Option<Arc<[u8]>>;

/// Sorted in the walk order of the map's index.
type ByPlace = BTreeMap<OrderedPlace, BeforeImage>;

/// Approximate memory that an image takes in addition to key and value, in bytes.
const OVERHEAD: u64 = 2 * size_of::<(OrderedPlace, BeforeImage)>() as u64;

/// Maximum number of images that a reader copies under one lock. Bounds how long writers wait for the lock.
const MAX_READ: usize = 512;

/// One snapshot's images.
#[derive(Debug)]
pub(crate) struct Images {
    inner: Mutex<Inner>,
    /// Maximum bytes of all images.
    max: u64,
    /// Whether an image exceeded the limit. From then on no image is recorded, and reads fail.
    outgrown: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    maps: HashMap<Arc<str>, ByPlace>,
    bytes: u64,
}

impl Images {
    fn new(max: u64) -> Images {
        Images {
            inner: Mutex::default(),
            max,
            outgrown: AtomicBool::new(false),
        }
    }

    // An image is one insert, so a panic leaves the map consistent.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(
        &self,
        map: &Arc<str>,
        place: &OrderedPlace,
        current: Option<&[u8]>,
        shared: &mut Option<BeforeImage>,
    ) {
        let inner = &mut *self.lock();
        let images = inner.maps.entry(map.clone()).or_default();
        if self.outgrown.load(Relaxed) || images.contains_key(place) {
            return;
        }
        let bytes = inner.bytes + OVERHEAD + (place.key.len() + current.map_or(0, <[u8]>::len)) as u64;
        if bytes > self.max {
            // The images are freed with the snapshot: freeing them here would delay the writer.
            self.outgrown.store(true, Relaxed);
            return;
        }
        inner.bytes = bytes;
        let before = shared.get_or_insert_with(|| current.map(Arc::from)).clone();
        images.insert(place.clone(), before);
    }

    /// Checks that the data read belongs to the snapshot. Call it after reading the index and the images.
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotOutgrown`]
    pub fn is_whole(&self) -> Result<(), Error> {
        // A reader that has seen a change without an image has taken the images' lock after the writer, and so sees
        // this flag too.
        match self.outgrown.load(Relaxed) {
            true => Err(Error::SnapshotOutgrown(self.max)),
            false => Ok(()),
        }
    }

    /// Returns the image of a key, if there is one.
    pub fn of(&self, map: &str, place: &OrderedPlace) -> Option<BeforeImage> {
        self.lock().maps.get(map)?.get(place).cloned()
    }

    /// Returns the first images between two bounds that do not cross, in order from one end, and whether more follow.
    /// Copies a bounded number, so that writers wait for a bounded time.
    pub fn batch(
        &self,
        map: &str,
        bounds: (Bound<OrderedPlace>, Bound<OrderedPlace>),
        direction: Direction,
    ) -> (Vec<(Vec<u8>, BeforeImage)>, bool) {
        let inner = self.lock();
        let (mut some, mut bytes) = (Vec::new(), 0);
        let mut range = inner.maps.get(map).map(|images| images.range(bounds));
        let mut next = || match direction {
            Direction::Forward => range.as_mut()?.next(),
            Direction::Reverse => range.as_mut()?.next_back(),
        };
        while let Some((OrderedPlace { key, .. }, before)) = next() {
            if some.len() == MAX_READ || bytes >= BATCH_BYTES {
                return (some, true);
            }
            bytes += key.len() + before.as_ref().map_or(0, |bytes| bytes.len());
            some.push((key.to_vec(), before.clone()));
        }
        (some, false)
    }

    /// Returns the approximate bytes that the images take.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }
}

/// The images of all snapshots.
#[derive(Debug, Default)]
pub(crate) struct BeforeImages {
    any: AtomicBool,
    all: RwLock<Vec<Arc<Images>>>,
}

impl BeforeImages {
    /// Returns whether a snapshot exists. A writer asks after it has passed the gate, and so sees each that began
    /// before.
    #[inline]
    pub fn any_snapshot(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Begins a snapshot whose images may take `max` bytes. The caller has closed the gate.
    pub fn begin(&self, max: u64) -> Arc<Images> {
        let images = Arc::new(Images::new(max));
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.push(images.clone());
        self.any.store(true, Relaxed);
        images
    }

    /// Ends a snapshot.
    pub fn end(&self, images: &Arc<Images>) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| !Arc::ptr_eq(other, images));
        self.any.store(!all.is_empty(), Relaxed);
    }

    /// Returns where the value of a key is recorded, if there are snapshots. The caller keeps the gate from closing, so
    /// that no snapshot begins.
    #[inline]
    pub fn of_key<'k>(&'k self, map: &'k Arc<str>, order: Order, key: &'k [u8]) -> Option<KeyImages<'k>> {
        self.any_snapshot().then_some(KeyImages {
            before_images: self,
            map,
            order,
            key,
        })
    }
}

/// The images of a key that is about to be written.
pub(crate) struct KeyImages<'k> {
    before_images: &'k BeforeImages,
    map: &'k Arc<str>,
    order: Order,
    key: &'k [u8],
}

impl KeyImages<'_> {
    /// Records the value that a decision replaces. A repeated decision records nothing more: the first image counts,
    /// and was recorded while the key still had the value from the snapshot's beginning.
    pub fn record(&self, current: Option<&[u8]>) {
        let place = self.order.place(self.key);
        let mut shared = None;
        let all = &self.before_images.all;
        for images in &*all.read().unwrap_or_else(PoisonError::into_inner) {
            images.record(self.map, &place, current, &mut shared);
        }
    }
}
