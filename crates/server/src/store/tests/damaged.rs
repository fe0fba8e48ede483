//! Walks in damaged pools: each ends.

use super::*;
use index::{Error, Faults, Value, Visit};

/// No walk of two keys needs so many scans.
const MOST_SCANS: usize = 100;

/// An index whose scans show the items out of order, again and again, wherever they begin.
#[derive(Default)]
struct Damaged {
    index: Model,
    scans: AtomicUsize,
}

impl Index for Damaged {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        self.index.get(key, guard)
    }
    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        self.index.write(key, edit)
    }
    fn scan<'g>(
        &'g self,
        _: Bound<&[u8]>,
        _: Bound<&[u8]>,
        _: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let scans = self.scans.fetch_add(1, Ordering::Relaxed);
        assert!(scans < MOST_SCANS, "there is no end to it");
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
    fn check(&self) -> Result<Faults, Error> {
        self.index.check()
    }
}

/// A store of two items, in a pool that is then damaged.
fn damaged() -> Store {
    let index = Model::new();
    let store = open(&index, NOW);
    set(&store, "a", "one", 0);
    set(&store, "b", "two", 0);
    let index = Damaged {
        index,
        ..Damaged::default()
    };
    let largest = Arc::new(AtomicUsize::new(LARGEST));
    Store::open(Arc::new(index), largest, Arc::default(), NOW).expect("a store's")
}

/// The count ends with an error, and has not counted anything twice.
#[test]
fn keys_out_of_order_end_the_count() {
    let store = damaged();
    while store.count_on(2).is_ok_and(|through| !through) {}
    assert!(store.count_on(2).is_err());
    assert_eq!(store.items(), (2, false));
}

/// So do the rounds of the sweep and of the eviction.
#[test]
fn keys_out_of_order_end_a_round() {
    let (store, mut cursor) = (damaged(), Vec::new());
    while store.sweep(&mut cursor, 2, NOW).is_ok() {}
    let (store, mut cursor) = (damaged(), Vec::new());
    while store.evict(&mut cursor, 2, false, NOW).is_ok() {}
}
