//! A map whose index does not keep keys in byte order.

use super::*;
use wollemi::IndexKind;

/// The count is exact after items were stored and deleted while it ran, on both sides of its cursor.
#[test]
fn the_count_goes_by_the_order_of_the_index() {
    let kind: IndexKind = "clht".parse().expect("a hash table");
    let db = wollemi::Db::anonymous().expect("memory");
    let open = || {
        let map = db.map_with("items", kind).expect("a map");
        let largest = Arc::new(AtomicUsize::new(LARGEST));
        ItemStore::open(map, Arc::default(), largest, Arc::default(), NOW).expect("a store's")
    };
    let key = |i: u32| format!("key-{i}");
    let store = open();
    (0..300).for_each(|i| set(&store, &key(i), "data", 0));
    drop(store);

    let store = open();
    for step in 0..10 {
        assert!(!store.count_on(20).expect("sound"));
        for i in step * 10..step * 10 + 10 {
            set(&store, &key(i + 1000), "data", 0);
            store.delete(key(i).as_bytes(), NOW).expect("sound");
        }
    }
    while !store.count_on(20).expect("sound") {}
    assert_eq!(store.items(), (300, true));
}
