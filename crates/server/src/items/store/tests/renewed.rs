//! Items that are stored again after an eviction has chosen them and before it removes them.

use super::*;
use index::{Error, Upsert, Visit};
use std::sync::atomic::AtomicBool;

/// Larger than any unique of the tests.
const LATER: u64 = 1 << 40;

/// A reference index in which, once `renews` is set and the next scan has ended, every item that the scan visited is
/// stored again.
struct Renewing {
    index: ModelIndex,
    renews: Arc<AtomicBool>,
}

impl Renewing {
    fn renew(&self, key: &[u8]) -> Result<(), Error> {
        let mut item = Vec::new();
        let header = Header {
            unique: LATER,
            ..Header::default()
        };
        header.begin(&mut item);
        item.extend_from_slice(b"renewed");
        self.index.write(key, &mut Upsert(&item)).map(drop)
    }
}

impl Index for Renewing {
    index::delegate!(index: get, write, check);

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let mut visited = Vec::new();
        let visit_and_note: &mut Visit<'_, 'g> = &mut |key, value| {
            if Item::read(&value).is_some() {
                visited.push(key.to_vec());
            }
            visit(key, value)
        };
        self.index.scan(lower, upper, direction, guard, visit_and_note)?;
        match self.renews.swap(false, Ordering::SeqCst) {
            true => visited.iter().try_for_each(|key| self.renew(key)),
            false => Ok(()),
        }
    }
}

/// An item that was stored again after it was chosen stays.
#[test]
fn an_eviction_leaves_what_was_stored_again() {
    let renews = Arc::new(AtomicBool::new(false));
    let renewing = Renewing {
        index: ModelIndex::new(),
        renews: renews.clone(),
    };
    let largest = Arc::new(AtomicUsize::new(LARGEST));
    let store =
        ItemStore::open(held(renewing), Arc::default(), largest, Arc::default(), NOW).expect("it is empty");
    set(&store, "a", "old", 0);
    set(&store, "b", "old", 0);
    renews.store(true, Ordering::SeqCst);
    let (_, gone) = store.evict(&mut Vec::new(), 10, true, NOW).expect("no failure");
    assert_eq!((gone.evicted, gone.dead), (0, 0));
    for key in ["a", "b"] {
        assert_eq!(get(&store, key, NOW), Some(("renewed".to_owned(), LATER)));
    }
    let (_, gone) = store.evict(&mut Vec::new(), 10, true, NOW).expect("no failure");
    assert!(gone.evicted > 0, "nothing came between");
}
