//! Losses of power: a pool of level process is found as its last close has left it, or it is refused.
//!
//! The model is a page cache. A page of the file holds its content at the last sync that covered it, or any content
//! that it has had since, independently of other pages. Only syncs of the mapping count ([`Media::synced`]). The
//! file's name and its length are not in the model.

use super::files::{Place, put};
use super::*;
use crate::Watched;
use crate::watched::{ObservedStep, Observer, StepKind};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// The unit that reaches the medium as a whole.
const PAGE: usize = 4096;

/// Where the test stores: on two pages of the pool's first page, and at its end.
const PLACES: [u64; 3] = [PAGE as u64, 3 * PAGE as u64, (128 << 10) - 16];

/// The page cache above the only file of a directory. Clones share one state.
#[derive(Clone)]
struct PageCache(Arc<Mutex<Cached>>);

struct Cached {
    /// The pool's path, where a new pool appears only when it is whole.
    path: PathBuf,
    /// The contents of each page since its last sync, the durable one first.
    pages: Vec<Vec<Vec<u8>>>,
    /// The images that losses of power may have left since they were last judged.
    images: BTreeSet<Vec<u8>>,
}

impl Observer for PageCache {
    fn after(&self, step: &ObservedStep) {
        if step.what == StepKind::Sync {
            self.cached().sync(step.len);
        } else if step.stores() {
            self.cached().note();
        }
    }
}

impl PageCache {
    /// Creates a cache without dirty pages.
    fn new(place: &Place) -> PageCache {
        let mut cached = Cached {
            path: place.path.clone(),
            pages: Vec::new(),
            images: BTreeSet::new(),
        };
        if let Some((_, bytes)) = cached.file() {
            cached.pages = bytes.chunks(PAGE).map(|page| vec![page.to_vec()]).collect();
        }
        PageCache(Arc::new(Mutex::new(cached)))
    }

    fn media(&self) -> Watched<PageCache> {
        Watched::machine(self.clone())
    }

    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().expect("no panic")
    }

    /// Judges each image that a loss of power since the last judgement may have left.
    fn judge(&self, when: &str, is_right: impl Fn(&Found) -> bool) {
        let images = std::mem::take(&mut self.cached().images);
        for image in images {
            let found = Found::of(&image);
            assert!(is_right(&found), "power lost {when}: {found:?}");
        }
    }

    /// Judges each image that a loss of power may leave now. Forgets those of earlier ones.
    fn judge_now(&self, when: &str, is_right: impl Fn(&Found) -> bool) {
        let mut cached = self.cached();
        cached.images.clear();
        cached.note();
        assert!(!cached.images.is_empty(), "there is a pool");
        drop(cached);
        self.judge(when, is_right);
    }
}

impl Cached {
    /// The file's path and bytes, as processes see them.
    fn file(&self) -> Option<(PathBuf, Vec<u8>)> {
        let folder = self.path.parent().expect("a directory");
        let mut files = std::fs::read_dir(folder).expect("a directory");
        let path = files.next()?.expect("a file").path();
        let bytes = std::fs::read(&path).expect("a file");
        Some((path, bytes))
    }

    /// Notes the pages' contents, and the images that a loss of power may leave now.
    fn note(&mut self) {
        let (path, bytes) = self.file().expect("a pool");
        // A file that grows gets zeros.
        self.pages.resize(bytes.len() / PAGE, vec![vec![0; PAGE]]);
        for (versions, page) in self.pages.iter_mut().zip(bytes.chunks(PAGE)) {
            if versions.last().is_none_or(|newest| newest != page) {
                versions.push(page.to_vec());
            }
        }
        if path == self.path {
            let images = self.all_images();
            self.images.extend(images);
        }
    }

    /// Makes the newest content of the first `len` bytes' pages durable.
    fn sync(&mut self, len: usize) {
        self.note();
        for versions in self.pages.iter_mut().take(len / PAGE) {
            versions.drain(..versions.len() - 1);
        }
        self.note();
    }

    /// Every combination of the pages' versions.
    fn all_images(&self) -> Vec<Vec<u8>> {
        let ways: usize = self.pages.iter().map(Vec::len).product();
        assert!(ways <= 1000, "{ways} images: store to fewer pages");
        self.pages.iter().fold(vec![Vec::new()], |images, versions| {
            let longer = |image: Vec<u8>| versions.iter().map(move |page| [&image[..], page].concat());
            images.into_iter().flat_map(longer).collect()
        })
    }
}

/// What the next boot of the machine finds.
struct Found {
    /// Whether an opening refuses the pool unless its user accepts the loss.
    is_refused: bool,
    log_position: Option<u64>,
    /// The content of [`PLACES`].
    held: Vec<u64>,
    /// The bytes behind the header.
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let refused = if self.is_refused {
            "refused"
        } else {
            "opened as clean"
        };
        write!(f, "{refused}, log {:?}, holds {:?}", self.log_position, self.held)
    }
}

impl Found {
    fn of(image: &[u8]) -> Found {
        let place = Place::new();
        std::fs::write(&place.path, image).expect("written");
        place.change_boot();
        let look = PoolOptions {
            read_only: true,
            after_power_loss: AfterPowerLoss::Look,
            ..small()
        };
        let pool = Pool::open(&place.path, &look, Hardware::detect());
        let pool = pool.unwrap_or_else(|error| panic!("at a pool's path there is no whole pool: {error}"));
        Found {
            is_refused: pool.is_suspect(),
            log_position: pool.log_position(),
            held: PLACES.map(|at| held(image, at)).to_vec(),
            bytes: image[HEADER..].to_vec(),
        }
    }

    /// Whether it is a closed pool with these bytes behind the header.
    fn is_closed_with(&self, bytes: &[u8]) -> bool {
        !self.is_refused && self.bytes == bytes
    }
}

/// The word at `at`; 0 beyond the end.
fn held(image: &[u8], at: u64) -> u64 {
    let word = image[at.min(image.len() as u64) as usize..].first_chunk::<8>();
    word.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A loss of power leaves a pool that is refused while it is open. During a close it leaves all that the pool held, or
/// a refused pool; afterwards it takes nothing, up to the next opening. During that it leaves a pool as the close has
/// left it, or a refused one.
#[test]
fn a_loss_of_power_leaves_a_closed_pool_or_a_refused_one() {
    let place = Place::new();
    let mut closed: Option<Vec<u8>> = None;
    for value in 1..4 {
        let cache = PageCache::new(&place);
        let pool = Pool::open_or_create(&place.path, &small(), cache.media()).expect("the pool");
        let as_before = |found: &Found| closed.as_ref().is_some_and(|bytes| found.is_closed_with(bytes));
        cache.judge("during the opening", |found| found.is_refused || as_before(found));
        cache.judge_now("after the opening", |found| found.is_refused);

        pool.grow(128 << 10).expect("room");
        PLACES.into_iter().for_each(|at| put(&pool, at, value));
        cache.judge("beside stores", |found| found.is_refused);

        let bytes = std::fs::read(&place.path).expect("a file")[HEADER..].to_vec();
        pool.close().expect("closed");
        let is_whole = |found: &Found| found.is_closed_with(&bytes);
        cache.judge("during the close", |found| found.is_refused || is_whole(found));
        cache.judge_now("after the close", is_whole);
        closed = Some(bytes);
        // The next opening notes another boot.
        place.change_boot();
    }
}

/// When the change has returned that gives a pool its log or takes it, a loss of power does not undo it. While a pool
/// closes and loses its log, it has that log, or it is closed.
#[test]
fn a_loss_of_power_leaves_no_doubt_about_the_log() {
    let place = Place::new();
    let cache = PageCache::new(&place);
    let pool = Pool::create(&place.path, &small(), cache.media()).expect("a new pool");
    for position in [Some(4096), None, Some(8192)] {
        pool.set_log_position(position).expect("written");
        cache.judge_now("after the change", |found| found.log_position == position);
    }
    pool.close_without_log().expect("closed");
    cache.judge("during the close", |found| {
        found.log_position == Some(8192) || !found.is_refused
    });
    cache.judge_now("after the close", |found| {
        found.log_position.is_none() && !found.is_refused
    });
}
