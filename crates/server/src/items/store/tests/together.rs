//! Items stored together (`ItemStore::put_many`): each as if it had been stored by itself, whatever becomes of the
//! others.

use super::*;
use index::{Edit, Error};

/// A reference index in which the writes of some keys are decided twice, as when a full pool is given room, and the
/// writes of one of these keys then fail.
#[derive(Default)]
struct Short(ModelIndex);

impl Index for Short {
    index::delegate!(0: get, scan, check);

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        if matches!(key, b"again" | b"fails") {
            edit.decide(self.get(key, &heap::pin())?.as_deref());
        }
        match key {
            b"fails" => Err(Error::Unfinished),
            _ => self.0.write(key, edit),
        }
    }
}

/// Returns the bytes that items of these keys and data take.
fn bytes(items: &[(&str, &str)]) -> u64 {
    let each = items
        .iter()
        .map(|(key, data)| key.len() + item::HEADER + data.len());
    each.map(|bytes| bytes as u64 + crate::items::item::PLACE).sum()
}

/// A put that fails, and a put to a key whose value has no item header, return their own errors and leave the old
/// values. The other items are stored, and the counts are those of the resulting items.
#[test]
fn those_that_fail_leave_the_others_alone() {
    let index = Short::default();
    let old = index.0.clone();
    set(&open(&old, NOW), "fails", "old", 0);
    old.insert(b"foreign", b"short").expect("the model does not fail");
    let usage = Arc::<Usage>::default();
    let largest = Arc::new(AtomicUsize::new(LARGEST));
    let store = ItemStore::open(held(index), Arc::default(), largest, usage.clone(), NOW).expect("a store's");
    while !store.count_on(10).expect("the model does not fail") {}
    let (items, taken) = (store.items(), usage.bytes());
    assert_eq!(items, (2, true));

    let new: Vec<New<'_>> = [
        &b"a"[..],
        b"fails",
        b"again",
        b"foreign",
        b"fails",
        b"b",
        b"again",
    ]
    .iter()
    .map(|&key| (key, 0, &b"new"[..]))
    .collect();
    for round in 0..2 {
        let done = put(&store, &new);
        assert!(
            matches!(
                done[..],
                [
                    Ok(()),
                    Err(Failure::Index(_)),
                    Ok(()),
                    Err(Failure::Foreign),
                    Err(Failure::Index(_)),
                    Ok(()),
                    Ok(())
                ]
            ),
            "{done:?}"
        );
        for (key, data) in [("a", "new"), ("fails", "old"), ("again", "new"), ("b", "new")] {
            let (found, _) = get(&store, key, NOW).expect("it is there");
            assert_eq!(found, data, "{key} in round {round}");
        }
        let guard = heap::pin();
        let foreign = old.get(b"foreign", &guard).expect("the model does not fail");
        assert_eq!(foreign.as_deref(), Some(&b"short"[..]));
        assert_eq!(store.items(), (items.0 + 3, true));
        let more = bytes(&[("a", "new"), ("again", "new"), ("b", "new")]);
        assert_eq!(usage.bytes(), taken + more);
    }
}

/// The last item of a key wins, and its unique grows with each.
#[test]
fn last_item_of_a_key_wins() {
    let usage = Arc::<Usage>::default();
    let largest = Arc::new(AtomicUsize::new(LARGEST));
    let store = ItemStore::open(
        held(ModelIndex::new()),
        Arc::default(),
        largest,
        usage.clone(),
        NOW,
    )
    .expect("it is empty");
    assert!(store.count_on(10).expect("the model does not fail"));
    let mut last = 0;
    for round in 0..3 {
        let new: [New<'_>; 4] = [
            (b"k", 0, b"first"),
            (b"other", 0, b"x"),
            (b"k", NOW, b"dead"),
            (b"k", 0, b"last"),
        ];
        assert!(put(&store, &new).iter().all(Result::is_ok));
        let (data, unique) = get(&store, "k", NOW).expect("it is there");
        let (_, others) = get(&store, "other", NOW).expect("it is there");
        assert_eq!(data, "last", "round {round}");
        // Uniques are given in the order of the items: `other` has the second of four, and `k` in the end the fourth.
        assert!(
            last < others - 1 && unique == others + 2,
            "{last}, {others}, {unique}"
        );
        last = unique;
        assert_eq!(store.items(), (2, true));
        assert_eq!(usage.bytes(), bytes(&[("k", "last"), ("other", "x")]));
    }
}

/// A flush comes before all items of a group or after them, and so does a step of the count.
#[test]
fn a_flush_parts_no_group() {
    for _ in 0..200 {
        let index = ModelIndex::new();
        let store = &open(&index, NOW);
        let keys: [[u8; 1]; 16] = std::array::from_fn(|i| [b'a' + i as u8]);
        let new: Vec<New<'_>> = keys.iter().map(|key| (&key[..], 0, &b"x"[..])).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert!(put(store, &new).iter().all(Result::is_ok));
                }
            });
            scope.spawn(|| store.flush(None).expect("the model does not fail"));
            scope.spawn(|| while !store.count_on(3).expect("the model does not fail") {});
        });
        let live = keys
            .iter()
            .filter(|key| store.read(&key[..], NOW, |_| ()).expect("an item").is_some());
        let live = live.count() as u64;
        assert!(live == 0 || live == 16, "{live}");
        assert_eq!((store.items(), store.keys()), ((live, true), 1 + 16));
    }
}

/// Before a block of uniques is used up by items that are stored together, the next one is reserved in the record.
#[test]
fn uniques_are_reserved_for_all_of_them() {
    let index = ModelIndex::new();
    let store = open(&index, NOW);
    let near_end = store.reserved.load(Ordering::SeqCst) - LOW - 2;
    store.next.store(near_end, Ordering::SeqCst);
    let new = [(&b"k"[..], 0, &b"x"[..]); 64];
    for round in 1..4 {
        assert!(put(&store, &new).iter().all(Result::is_ok));
        let (_, unique) = get(&store, "k", NOW).expect("just set");
        assert_eq!(unique, near_end + 64 * round - 1);
        let guard = heap::pin();
        let record = index.get(record::KEY, &guard).expect("no failure");
        let record = StoreRecord::read(&record.expect("the record")).expect("a record");
        assert!(unique < record.reserved);
    }
}
