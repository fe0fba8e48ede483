//! Walks in damaged pools: each ends, after it has done its work up to the damage.

use super::*;
use index::{Error, Visit};

/// No walk of two keys needs this many scans.
const MAX_SCANS: usize = 100;

/// An index whose scans show the items out of order, again and again, wherever the scan begins; or, if `torn`, fail
/// behind the last item.
#[derive(Default)]
struct Damaged {
    index: ModelIndex,
    torn: bool,
    scans: AtomicUsize,
}

impl Index for Damaged {
    index::delegate!(index: get, write, check);

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let scans = self.scans.fetch_add(1, Ordering::Relaxed);
        assert!(scans < MAX_SCANS, "the walk does not end");
        if self.torn {
            let mut broken = false;
            self.index
                .scan(lower, upper, direction, guard, &mut |key, value| {
                    let flow = visit(key, value);
                    broken = flow.is_break();
                    flow
                })?;
            return if broken { Ok(()) } else { Err(Error::Unfinished) };
        }
        let (mut items, behind_record) = (Vec::new(), Bound::Excluded(record::KEY));
        self.index.scan(
            behind_record,
            Bound::Unbounded,
            Direction::Reverse,
            guard,
            &mut |key, value| {
                items.push((key, value));
                ControlFlow::Continue(())
            },
        )?;
        let again = items.iter().cycle();
        let _ = again
            .map(|&(key, value)| visit(key, value))
            .find(|flow| flow.is_break());
        Ok(())
    }
}

/// Creates a store of two items, which expire one millisecond later, over a damaged index. Returns also the index under
/// the damage.
fn damaged(torn: bool) -> (ItemStore, ModelIndex) {
    let model = ModelIndex::new();
    let store = open(&model, NOW);
    set(&store, "a", "one", NOW + 1);
    set(&store, "b", "two", NOW + 1);
    let index = Damaged {
        index: model.clone(),
        torn,
        ..Damaged::default()
    };
    let largest = Arc::new(AtomicUsize::new(LARGEST));
    let store = ItemStore::open(held(index), Arc::default(), largest, Arc::default(), NOW);
    (store.expect("a store's"), model)
}

/// The count ends with an error, and has not counted anything twice.
#[test]
fn keys_out_of_order_end_the_count() {
    let (store, _) = damaged(false);
    while store.count_on(2).is_ok_and(|through| !through) {}
    assert!(store.count_on(2).is_err());
    assert_eq!(store.items(), (2, false));
}

/// The rounds of a sweep and of an eviction end with an error, too.
#[test]
fn keys_out_of_order_end_a_round() {
    let ((store, _), mut cursor) = (damaged(false), None);
    while store.sweep(&mut cursor, 2, NOW).is_ok() {}
    let ((store, _), mut cursor) = (damaged(false), Vec::new());
    while store.evict(&mut cursor, 2, false, NOW).is_ok() {}
}

/// The items before a damaged spot are removed, and then the round begins again.
#[test]
fn a_damaged_spot_ends_a_round() {
    type Step = fn(&ItemStore, &mut Vec<u8>) -> bool;
    let steps: [Step; 2] = [
        |store, cursor| {
            let mut place = Some(std::mem::take(cursor));
            let swept = store.sweep(&mut place, 10, NOW + 1);
            *cursor = place.unwrap_or_default();
            swept.is_ok()
        },
        |store, cursor| store.evict(cursor, 10, true, NOW + 1).is_ok(),
    ];
    for step in steps {
        let ((store, model), mut cursor) = (damaged(true), b"a".to_vec());
        let is_there = |key: &[u8]| model.get(key, &heap::pin()).expect("no failure").is_some();
        assert!(!step(&store, &mut cursor));
        assert_eq!((is_there(b"a"), is_there(b"b")), (true, false));
        assert!(!step(&store, &mut cursor));
        assert!(!is_there(b"a"));
    }
}
